// Weights that lie in a file while a model trains: what a step does not need for a while takes no memory. A weight is
// moved by giving its storage other memory, so that all tensors that share it see the same numbers before, meanwhile
// and after.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/train/remat/offload_file.h"

namespace lissome {

// What of a program's weights may lie in a file: parameters that train, of 64 KiB and more. Not those whose storage is
// shared with anything else, is not dense, or may not be resized, because others hold pointers into it (NumPy's
// arrays).
struct WaitingWeights {
  std::vector<at::Tensor> tensors;  // one of each storage
  int64_t bytes = 0;                // of them
  int64_t in_step = 0;              // of these, what a step has in memory at once, at most
  int64_t at_once = 0;              // the same beside a weight that is updated inside the step
};
WaitingWeights find_waiting_weights(const Program& program, bool update_in_backward);

class OffloadedWeights {
 public:
  OffloadedWeights() = default;
  // All lie in memory again; where there is not enough, those left go on in the file.
  ~OffloadedWeights();
  OffloadedWeights(const OffloadedWeights&) = delete;
  OffloadedWeights& operator=(const OffloadedWeights&) = delete;

  // Once. Throws what OffloadFile throws; then all is as before.
  void move(const WaitingWeights& weights, const std::string& folder);
  // What was touched since, by whom ever, leaves the memory.
  void release() const;

  int64_t metered() const { return metered_; }  // bytes that is_metered() memory has been relieved of
  int64_t saved() const { return saved_; }      // bytes that need not be in memory
  int64_t resident() const;                     // bytes that are, now

 private:
  std::vector<at::Tensor> tensors_;
  std::shared_ptr<const OffloadFile> file_;
  int64_t metered_ = 0, saved_ = 0;
};

// Of one tensor; nothing is done to those that lie in no such file.
bool waits_in_file(const at::Tensor& tensor);
void fetch_weight(const at::Tensor& tensor);    // starts to read it ahead of its use
void release_weight(const at::Tensor& tensor);  // out of memory, until it is touched again

}  // namespace lissome
