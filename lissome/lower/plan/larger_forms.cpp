// Winograd multiplies transformed windows: 36 or 16 numbers in place of 9, and of 16 bits in place of 8. Only timing
// chooses it, and a finished file holds the larger form, so whoever makes one is told what the speed costs.
#include <algorithm>
#include <set>
#include <span>

#include "lissome/base.h"
#include "lissome/kernel.h"
#include "lissome/lower.h"

namespace lissome {
namespace {

// Without the zeros that fill panels: a file leaves them out.
int64_t count_file_bytes(const Array& packed) {
  const std::span bytes(static_cast<const std::byte*>(packed.storage.get()), static_cast<size_t>(packed.bytes()));
  const std::vector<PaddedRun> runs = find_padding(bytes);
  return runs.empty() ? packed.bytes() : measure_padding(runs)->kept;
}

// The weight as another kernel would read it, in the type of what it multiplies.
int64_t count_plain_bytes(const PlanStep& step, int64_t bytes, Dtype dtype) {
  if (step.kernel == "winograd_u8s8") {
    constexpr int64_t kPoints = (kWinogradByteTile + 2) * (kWinogradByteTile + 2);
    return bytes * 9 / (kPoints * 2);  // points of 16 bits
  }
  const int64_t side = step.attributes.integer("tile") + 2;  // transformed in f32
  return bytes * 9 / (side * side) * item_size(dtype) / item_size(Dtype::f32);
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
  std::set<int> listed;  // a weight that several steps read is held once
  for (const PlanStep& step : plan.steps) {
    if (!step.kernel.starts_with("winograd") || step.origins.empty()) continue;
    const int array = plan.values[static_cast<size_t>(step.operands.at(1))].array;
    if (!listed.insert(array).second) continue;
    LargerForm form{step.origins.front().node, step.kernel,
                    count_file_bytes(plan.arrays[static_cast<size_t>(array)].array)};
    const Dtype dtype = plan.values[static_cast<size_t>(step.operands.front())].dtype;
    form.plain_bytes = count_plain_bytes(step, form.bytes, dtype);
    for (const PlanChoice& choice : plan.choices) {
      if (choice.node != form.node) continue;
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
