#include "lissome/lower/fuse/fuse_depthwise_steps.h"

#include <algorithm>

#include "lissome/lower/plan/plan_links.h"

namespace lissome {
namespace {

// Operands of depthwise_f32 and conv_f32.
constexpr size_t kX = 0, kWeight = 1, kBias = 2, kResidual = 3;

bool all_numbers_are(const PlanStep& step, std::string_view name, int64_t wanted) {
  const std::vector<int64_t> numbers = step.attributes.integers(name);
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t number) { return number == wanted; });
}

bool is_product_of_pixels(const PlanStep& step) {
  return step.kernel == "conv_f32" && step.attributes.integer("groups") == 1 && all_numbers_are(step, "kernel", 1) &&
         all_numbers_are(step, "stride", 1) && all_numbers_are(step, "padding", 0);
}

PlanStep join_steps(const PlanStep& first, const PlanStep& product) {
  PlanStep joined;
  joined.kernel = "separable_f32";
  for (const char* name : {"kernel", "stride", "padding", "dilation"})
    joined.attributes.set(name, first.attributes.integers(name));
  for (const std::string name : {"activation", "alpha", "beta"}) {
    if (const Attribute* found = first.attributes.find(name)) joined.attributes.set("first_" + name, *found);
    if (const Attribute* found = product.attributes.find(name)) joined.attributes.set(name, *found);
  }
  if (const Attribute* found = product.attributes.find("residual_last")) joined.attributes.set("residual_last", *found);
  joined.operands = {first.operands[kX],          product.operands[kWeight], product.operands[kBias],
                     product.operands[kResidual], first.operands[kWeight],   first.operands[kBias]};
  joined.results = product.results;
  joined.origins = first.origins;
  joined.origins.insert(joined.origins.end(), product.origins.begin(), product.origins.end());
  return joined;
}

}  // namespace

void fuse_depthwise_steps(Plan& plan) {
  const PlanLinks links = link_plan(plan);
  for (PlanStep& first : plan.steps) {
    const auto is_mark = [](const auto& entry) { return entry.first == kJoinsNext; };
    if (std::erase_if(first.attributes.entries, is_mark) == 0) continue;
    const int between = first.results[0];
    const std::vector<int>& readers = links.readers[static_cast<size_t>(between)];
    if (readers.size() != 1 || readers.front() < 0 || first.operands[kResidual] >= 0) continue;
    PlanStep& product = plan.steps[static_cast<size_t>(readers.front())];
    if (!is_product_of_pixels(product) || product.operands[kX] != between) continue;
    product = join_steps(first, product);
    first = {};
  }
  std::erase_if(plan.steps, [](const PlanStep& step) { return step.kernel.empty(); });
}

}  // namespace lissome
