// See training_bytes.h.
#include "lissome/train/budget/training_bytes.h"

#include <algorithm>
#include <unordered_set>

#include "lissome/distributed.h"
#include "lissome/train/loop/learn/gradient_compressor.h"
#include "lissome/train/loop/trainer.h"
#include "lissome/train/optim/update.h"
#include "lissome/train/remat/offload_weights.h"
#include "lissome/train/rewrite/training_passes.h"

namespace lissome {
namespace {

// Each weight, its gradients and its states fill whole lines of the cache; of sessions and losses 5 KiB were measured.
int64_t count_rounding(const Program& program) {
  constexpr int64_t kLine = 64, kTensors = 6, kOwn = 8 << 10;
  return static_cast<int64_t>(program.weights.size()) * kTensors * kLine + kOwn;
}

int64_t bytes_of(const at::Tensor& tensor) { return tensor.numel() * static_cast<int64_t>(tensor.element_size()); }

}  // namespace

TrainingBytes count_training_bytes(const Program& program, const TrainOptions& options, WeightPlace place) {
  TrainingBytes bytes;
  bytes.rounding = count_rounding(program);
  std::unordered_set<const void*> seen;
  for (const Weight& weight : program.weights) {
    if (!seen.insert(weight.tensor.const_data_ptr()).second) continue;
    bytes.weights += bytes_of(weight.tensor);
    if (weight.role != WeightRole::parameter || !weight.tensor.is_floating_point()) continue;
    if (!options.update_in_backward) bytes.gradients += bytes_of(weight.tensor);
    if (options.offload.empty()) bytes.states += count_state_bytes(options.optimizer, weight.tensor);
    bytes.update = std::max(bytes.update, count_update_bytes(options.optimizer, weight.tensor));
    if (options.group != nullptr)
      bytes.exchange +=
          count_exchange_bytes(options.compression, options.optimizer, weight.tensor, options.group->ranks());
  }
  if (place == WeightPlace::memory) return bytes;
  const OffloadableWeights found = find_offloadable_weights(program, options.update_in_backward);
  bytes.offloaded = found.bytes, bytes.offloaded_at_once = found.at_once;
  bytes.weights -= bytes.saved();
  return bytes;
}

std::vector<WeightPlace> list_weight_places(const Program& program, const TrainOptions& options) {
  std::vector<WeightPlace> places = {WeightPlace::memory};
  if (options.memory == 0 || options.offload.empty()) return places;
  const OffloadableWeights found = find_offloadable_weights(program, options.update_in_backward);
  if (found.at_once < found.bytes) places.push_back(WeightPlace::file);
  return places;
}

StreamedWeights find_streamed_weights(const Program& program, const TrainOptions& options, WeightPlace place) {
  if (place == WeightPlace::memory) return {};
  const OffloadableWeights found = find_offloadable_weights(program, options.update_in_backward);
  return {found.bytes, found.in_step};
}

StepBudget open_budget(const Program& program, const TrainOptions& options, WeightPlace place) {
  return {.recompute = options.recompute,
          .memory = options.memory,
          .sizes = {},
          .lossy = options.lossy_activations,
          .offload_folder = options.offload,
          .weights = find_streamed_weights(program, options, place),
          .split_scores = !is_disabled(options.disabled_passes, "split_scores"),
          .on_progress = options.callbacks.on_planning};
}

std::string describe_offloaded(const TrainingBytes& bytes) {
  if (bytes.offloaded == 0) return "";
  return "weights of " + format_bytes(bytes.offloaded) + " are kept in a file, at most " +
         format_bytes(bytes.offloaded_at_once) + " of them in memory at once";
}

}  // namespace lissome
