// See gradient_compressor.h.
#include <algorithm>

#include "lissome/train/loop/learn/gradient_compressor.h"
#include "lissome/train/loop/learn/power_sgd_compressor.h"
#include "lissome/train/loop/learn/top_k_compressor.h"

namespace lissome {

std::unique_ptr<GradientCompressor> make_compressor(const GradientCompression& compression,
                                                    const NamedTensors& parameters,
                                                    const CompressedOptimizer& optimizer) {
  if (const auto* top = std::get_if<TopKGradients>(&compression))
    return std::make_unique<TopKCompressor>(*top, parameters, optimizer);
  if (const auto* power = std::get_if<PowerSgdGradients>(&compression))
    return std::make_unique<PowerSgdCompressor>(*power, parameters);
  return nullptr;
}

int64_t count_exchange_bytes(const GradientCompression& compression, const OptimizerOptions& optimizer,
                             const at::Tensor& parameter, int ranks) {
  constexpr int64_t kBytes = sizeof(float);
  const int64_t elements = parameter.numel(), flat = elements * kBytes;
  if (const auto* dense = std::get_if<DenseGradients>(&compression))
    return flat + (dense->dtype == Dtype::f32 ? 0 : elements * 2);
  if (const auto* power = std::get_if<PowerSgdGradients>(&compression)) {
    const int64_t columns = parameter.dim() < 2 ? 0 : elements / std::max<int64_t>(parameter.size(0), 1);
    const int64_t narrow = parameter.dim() < 2 ? 0 : (parameter.size(0) + columns) * power->rank * kBytes;
    return narrow < flat ? flat * (2 + ranks) + 2 * narrow : flat;  // twice: one prepared for each product
  }
  if (const auto* top = std::get_if<TopKGradients>(&compression)) {
    const auto* sgd = std::get_if<Sgd>(&optimizer);
    const int64_t kept = (sgd != nullptr && sgd->momentum > 0 ? 2 : 1) * (1 + ranks);
    // Messages of all ranks, i64 indices and values of a selection; magnitudes to select by.
    const int64_t chosen = count_top_elements(elements, top->share) * (2 * kBytes * (1 + ranks) + 12);
    return flat * (2 + kept) + chosen;
  }
  return flat;
}

}  // namespace lissome
