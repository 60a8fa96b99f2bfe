// Winograd multiplies transformed windows: 36 or 16 numbers in place of 9, and of 16 bits in place of 8. Only timing
// chooses it, and a finished file holds the larger form, so whoever makes one learns what the speed costs.
#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "lissome/base.h"
#include "lissome/kernel.h"
#include "lissome/lower.h"
#include "lissome/runtime/step/conv/conv_u8s8_steps.h"
#include "lissome/runtime/step/winograd/winograd_steps.h"
#include "lissome/runtime/step/winograd/winograd_u8s8_steps.h"

namespace lissome {
namespace {

// Without the zeros that fill panels: a file leaves them out.
int64_t count_file_bytes(const Array& packed) {
  const std::span bytes(static_cast<const std::byte*>(packed.storage.get()), static_cast<size_t>(packed.bytes()));
  const std::vector<PaddedRun> runs = find_padding(bytes);
  return runs.empty() ? packed.bytes() : measure_padding(runs)->kept;
}

// A step by tiles, with the dtype of the points of its weight.
struct TiledStep {
  PlanValueId x, weight;
  int64_t tile;
  Dtype points;
};

std::optional<TiledStep> read_tiled_step(const PlanStep& step) {
  if (is_step<WinogradU8S8Step>(step)) {
    const auto tiled = read_step<WinogradU8S8Step>(step);
    return TiledStep{tiled.x.value, tiled.weight.value, kWinogradByteTile, Dtype::i16};
  }
  if (is_step<WinogradF32Step>(step)) {
    const auto tiled = read_step<WinogradF32Step>(step);
    return TiledStep{tiled.x.value, tiled.weight.value, tiled.tile, Dtype::f32};
  }
  return std::nullopt;
}

// The weight as another kernel would read it, in the type of x.
int64_t count_plain_bytes(const TiledStep& step, int64_t bytes, Dtype dtype) {
  const int64_t side = step.tile + 2;
  return bytes * 9 / (side * side) * item_size(dtype) / item_size(step.points);
}

// The quickest candidate that keeps the plain form; 0 where none was timed.
double find_plain_time(const PlanChoice& choice) {
  double least = 0;
  for (const PlanCandidate& candidate : choice.candidates) {
    const bool plain = candidate.name.find("winograd") == std::string::npos;
    if (plain && candidate.nanoseconds > 0 && (least == 0 || candidate.nanoseconds < least)) {
      least = candidate.nanoseconds;
    }
  }
  return least;
}

}  // namespace

std::vector<LargerForm> list_larger_forms(const Plan& plan) {
  std::vector<LargerForm> forms;
  std::set<int> listed;  // arrays: a weight that several steps read is held once
  for (const PlanStep& step : plan.steps) {
    const std::optional<TiledStep> tiled = read_tiled_step(step);
    if (!tiled || step.origins.empty()) continue;
    const int array = plan.value(tiled->weight).array;
    if (!listed.insert(array).second) continue;
    LargerForm form{step.origins.front().node, step.kernel,
                    count_file_bytes(plan.arrays[static_cast<size_t>(array)].array)};
    const Dtype dtype = plan.value(tiled->x).dtype;
    form.plain_bytes = count_plain_bytes(*tiled, form.bytes, dtype);
    if (const int made = step.origins.front().choice; made >= 0) {
      const PlanChoice& choice = plan.choices[static_cast<size_t>(made)];
      form.plain_nanoseconds = find_plain_time(choice);
      for (const PlanCandidate& candidate : choice.candidates) {
        if (candidate.name == choice.chosen) form.nanoseconds = candidate.nanoseconds;
      }
    }
    forms.push_back(std::move(form));
  }
  return forms;
}

std::string describe_larger_form(const LargerForm& form) {
  std::string text = "%" + form.node + " on " + form.kernel + ": its weight takes " + format_bytes(form.bytes) +
                     " in the file instead of " + format_bytes(form.plain_bytes);
  if (form.nanoseconds > 0 && form.plain_nanoseconds > 0) {
    text += "; " + format_duration(form.nanoseconds * 1e-9) + " instead of " +
            format_duration(form.plain_nanoseconds * 1e-9);
  }
  return text;
}

}  // namespace lissome
