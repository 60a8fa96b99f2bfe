// Weights that are kept in a file while a model trains, so that weights which a step does not need yet take no memory.
// A weight moves by giving its storage other memory, so that all tensors that share the storage see the same numbers
// before, during and after the training.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/train/remat/offload_file.h"

namespace lissome {

// The weights of a program that may be kept in a file: parameters that train, of 64 KiB and more. Parameters are left
// out whose storage is shared with anything else, is not dense, or may not be resized because others hold pointers into
// it (NumPy's arrays).
struct OffloadableWeights {
  std::vector<at::Tensor> tensors;  // one for each storage
  int64_t bytes = 0;                // all of them
  int64_t in_step = 0;              // most bytes that a step has in memory at once
  int64_t at_once = 0;              // the same, including a weight that is updated inside the step
};
OffloadableWeights find_offloadable_weights(const Program& program, bool update_in_backward);

class OffloadedWeights {
 public:
  OffloadedWeights() = default;
  // Moves all weights back into memory. If memory runs out, the rest stay in the file.
  ~OffloadedWeights();
  OffloadedWeights(const OffloadedWeights&) = delete;
  OffloadedWeights& operator=(const OffloadedWeights&) = delete;

  // To be called once. Throws the errors of OffloadFile and then changes nothing.
  void move(const OffloadableWeights& weights, const std::string& folder);
  // Removes from memory all weights that were touched since.
  void release() const;

  int64_t metered() const { return metered_; }  // bytes that left metered memory (see is_metered())
  int64_t saved() const { return saved_; }      // bytes that need not be in memory
  int64_t resident() const;                     // bytes that are in memory now

 private:
  std::vector<at::Tensor> tensors_;
  std::shared_ptr<const OffloadFile> file_;
  int64_t metered_ = 0, saved_ = 0;
};

// For one tensor. fetch_weight() and release_weight() do nothing to tensors that are not offloaded.
bool is_offloaded(const at::Tensor& tensor);
void fetch_weight(const at::Tensor& tensor);    // starts to read it ahead of its use
void release_weight(const at::Tensor& tensor);  // removes it from memory until it is touched again

}  // namespace lissome
