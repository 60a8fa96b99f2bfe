// See training_bytes.h.
#include "lissome/train/training_bytes.h"

#include <unordered_set>

namespace lissome {
namespace {

constexpr int64_t kLeastByteElements = 4096, kScaledTogether = 256;  // as Optimizer has them

int64_t bytes_of(const at::Tensor& tensor) { return tensor.numel() * static_cast<int64_t>(tensor.element_size()); }

int64_t count_moments(const at::Tensor& weight, bool byte_states) {
  if (!byte_states || weight.numel() < kLeastByteElements || weight.scalar_type() != at::kFloat)
    return 2 * bytes_of(weight);
  const int64_t scales = (weight.numel() + kScaledTogether - 1) / kScaledTogether;
  return 2 * (weight.numel() + scales * static_cast<int64_t>(sizeof(float)));
}

int64_t count_states(const at::Tensor& weight, const OptimizerOptions& optimizer) {
  if (const auto* adamw = std::get_if<AdamW>(&optimizer)) return count_moments(weight, adamw->byte_states);
  if (const auto* adam = std::get_if<Adam>(&optimizer)) return count_moments(weight, adam->byte_states);
  if (const auto* sgd = std::get_if<Sgd>(&optimizer)) return sgd->momentum != 0 ? bytes_of(weight) : 0;
  if (std::holds_alternative<Lion>(optimizer)) return bytes_of(weight);
  // Adafactor: a row and a column of a matrix, all of anything less.
  if (weight.dim() < 2) return bytes_of(weight);
  return bytes_of(weight) / weight.size(-1) + bytes_of(weight) / weight.size(-2);
}

}  // namespace

TrainingBytes count_training_bytes(const Program& program, const OptimizerOptions& optimizer) {
  TrainingBytes bytes;
  std::unordered_set<const void*> seen;
  for (const Weight& weight : program.weights) {
    if (!seen.insert(weight.tensor.const_data_ptr()).second) continue;
    bytes.weights += bytes_of(weight.tensor);
    if (weight.role != WeightRole::parameter || !weight.tensor.is_floating_point()) continue;
    bytes.gradients += bytes_of(weight.tensor);
    bytes.states += count_states(weight.tensor, optimizer);
  }
  return bytes;
}

}  // namespace lissome
