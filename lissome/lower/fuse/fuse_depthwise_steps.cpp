#include "lissome/lower/fuse/fuse_depthwise_steps.h"

#include <algorithm>

#include "lissome/lower/plan/plan_links.h"
#include "lissome/runtime/step/conv/conv_f32_steps.h"

namespace lissome {
namespace {

constexpr std::string_view kMark = "joins_next";

// Whether the step had the mark.
bool take_mark(PlanStep& step) {
  return std::erase_if(step.attributes.entries, [](const auto& entry) { return entry.first == kMark; }) > 0;
}

bool all_are(const std::vector<int64_t>& numbers, int64_t wanted) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t number) { return number == wanted; });
}

bool is_product_of_pixels(const ConvF32Step& step) {
  const WindowFields& window = step.window;
  return window.groups == 1 && all_are(window.kernel, 1) && all_are(window.stride, 1) && all_are(window.padding, 0);
}

SeparableF32Step join_steps(const DepthwiseF32Step& first, const ConvF32Step& product) {
  SeparableF32Step joined;
  joined.x = first.x;
  joined.first_weight = first.weight, joined.first_bias = first.bias;
  joined.window = first.window;
  joined.first_activation = {first.activation};
  joined.weight = product.weight, joined.bias = product.bias;
  joined.residual = product.residual, joined.residual_last = product.residual_last;
  joined.activation = product.activation;
  joined.y = product.y;
  return joined;
}

}  // namespace

PlanStep mark_joining(const DepthwiseF32Step& step) {
  PlanStep marked = write_step(step);
  marked.attributes.set(std::string(kMark), int64_t{1});
  return marked;
}

void fuse_depthwise_steps(Plan& plan) {
  const PlanLinks links = link_plan(plan);
  for (PlanStep& step : plan.steps) {
    if (!take_mark(step)) continue;
    const auto first = read_step<DepthwiseF32Step>(step);
    const std::vector<int>& readers = links.readers[static_cast<size_t>(first.y.value)];
    if (readers.size() != 1 || readers.front() < 0 || first.residual) continue;
    PlanStep& reader = plan.steps[static_cast<size_t>(readers.front())];
    if (!is_step<ConvF32Step>(reader)) continue;
    const auto product = read_step<ConvF32Step>(reader);
    if (!is_product_of_pixels(product) || product.x.value != first.y.value) continue;
    reader.origins.insert(reader.origins.begin(), step.origins.begin(), step.origins.end());
    replace_step(reader, join_steps(first, product));
    step = {};
  }
  std::erase_if(plan.steps, [](const PlanStep& step) { return step.kernel.empty(); });
}

}  // namespace lissome
