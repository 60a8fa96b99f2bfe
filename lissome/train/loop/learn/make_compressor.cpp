// See gradient_compressor.h.
#include "lissome/train/loop/learn/gradient_compressor.h"
#include "lissome/train/loop/learn/power_sgd_compressor.h"
#include "lissome/train/loop/learn/top_k_compressor.h"

namespace lissome {

std::unique_ptr<GradientCompressor> make_compressor(const GradientCompression& compression,
                                                    const NamedTensors& parameters, const OptimizerOptions& optimizer,
                                                    double clip_norm) {
  if (const auto* top = std::get_if<TopKGradients>(&compression))
    return std::make_unique<TopKCompressor>(*top, parameters, optimizer, clip_norm);
  if (const auto* power = std::get_if<PowerSgdGradients>(&compression))
    return std::make_unique<PowerSgdCompressor>(*power, parameters);
  return nullptr;
}

int64_t count_exchange_bytes(const GradientCompression& compression, const OptimizerOptions& optimizer,
                             int64_t elements, int ranks) {
  const auto* dense = std::get_if<DenseGradients>(&compression);
  int64_t numbers = 1, halves = dense != nullptr && dense->dtype != Dtype::f32 ? 1 : 0;
  if (std::holds_alternative<PowerSgdGradients>(compression)) numbers += 1 + ranks;
  if (std::holds_alternative<TopKGradients>(compression)) {
    const auto* sgd = std::get_if<Sgd>(&optimizer);
    numbers += (sgd != nullptr && sgd->momentum > 0 ? 2 : 1) * (1 + ranks) + 1;  // the last: magnitudes to select by
  }
  return elements * (numbers * static_cast<int64_t>(sizeof(float)) + halves * 2);
}

}  // namespace lissome
