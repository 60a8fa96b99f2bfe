// See training_bytes.h.
#include "lissome/train/training_bytes.h"

#include <unordered_set>

#include "lissome/train/trainer.h"
#include "lissome/train/update.h"

namespace lissome {
namespace {

int64_t bytes_of(const at::Tensor& tensor) { return tensor.numel() * static_cast<int64_t>(tensor.element_size()); }

}  // namespace

TrainingBytes count_training_bytes(const Program& program, const TrainOptions& options) {
  TrainingBytes bytes;
  std::unordered_set<const void*> seen;
  for (const Weight& weight : program.weights) {
    if (!seen.insert(weight.tensor.const_data_ptr()).second) continue;
    bytes.weights += bytes_of(weight.tensor);
    if (weight.role != WeightRole::parameter || !weight.tensor.is_floating_point()) continue;
    if (!options.update_in_backward) bytes.gradients += bytes_of(weight.tensor);
    if (options.offload.empty()) bytes.states += count_state_bytes(options.optimizer, weight.tensor);
  }
  return bytes;
}

}  // namespace lissome
