#include "lissome/lower/fuse/fuse_depthwise_steps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lissome/lower/plan/plan_links.h"

namespace lissome {
namespace {

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

InvertedF32Step join_steps(const ConvF32Step& widening, const DepthwiseF32Step& first, const ConvF32Step& product) {
  InvertedF32Step joined;
  static_cast<SeparableF32Step&>(joined) = join_steps(first, product);
  joined.x = widening.x;
  joined.widen_weight = widening.weight, joined.widen_bias = widening.bias;
  joined.widen_activation = {widening.activation};
  return joined;
}

// The step that alone reads a value, if it is of this kind.
template <typename Step>
PlanStep* find_reader(Plan& plan, const PlanLinks& links, PlanValueId value) {
  const std::vector<int>& readers = links.readers[static_cast<size_t>(value)];
  if (readers.size() != 1 || readers.front() < 0) return nullptr;
  PlanStep& reader = plan.steps[static_cast<size_t>(readers.front())];
  return is_step<Step>(reader) ? &reader : nullptr;
}

// A depthwise convolution and the product that alone reads it.
struct Separable {
  DepthwiseF32Step first;
  ConvF32Step product;
  PlanStep* last;  // of `product`
};
std::optional<Separable> find_separable(Plan& plan, const PlanLinks& links, const PlanStep& step) {
  const auto first = read_step<DepthwiseF32Step>(step);
  PlanStep* reader = find_reader<ConvF32Step>(plan, links, first.y.value);
  if (reader == nullptr || first.residual) return std::nullopt;
  const auto product = read_step<ConvF32Step>(*reader);
  if (!is_product_of_pixels(product) || product.x.value != first.y.value) return std::nullopt;
  return Separable{first, product, reader};
}

// `step` goes; what it did happens in `last`.
template <typename Step>
void replace_both(PlanStep& step, PlanStep& last, const Step& joined) {
  last.origins.insert(last.origins.begin(), step.origins.begin(), step.origins.end());
  replace_step(last, joined);
  step = {};
}

void join_widened(Plan& plan, const PlanLinks& links, PlanStep& step) {
  const auto widening = read_step<ConvF32Step>(step);
  PlanStep* between = find_reader<DepthwiseF32Step>(plan, links, widening.y.value);
  if (between == nullptr || widening.residual || widening.planes || !is_product_of_pixels(widening)) return;
  const std::optional<Separable> rest = find_separable(plan, links, *between);
  if (!rest || rest->first.x.value != widening.y.value) return;
  PlanStep& last = *rest->last;
  last.origins.insert(last.origins.begin(), between->origins.begin(), between->origins.end());
  *between = {};
  replace_both(step, last, join_steps(widening, rest->first, rest->product));
}

template <typename Step>
PlanStep mark(const Step& step) {
  PlanStep marked = write_step(step);
  marked.joins_next = true;
  return marked;
}

}  // namespace

PlanStep mark_joining(const DepthwiseF32Step& step) { return mark(step); }
PlanStep mark_joining(const ConvF32Step& step) { return mark(step); }

void fuse_depthwise_steps(Plan& plan) {
  const PlanLinks links = link_plan(plan);
  std::vector<PlanStep*> marked;
  for (PlanStep& step : plan.steps) {
    if (std::exchange(step.joins_next, false)) marked.push_back(&step);
  }
  for (PlanStep* step : marked) {
    if (is_step<ConvF32Step>(*step)) join_widened(plan, links, *step);
  }
  for (PlanStep* step : marked) {
    if (!is_step<DepthwiseF32Step>(*step)) continue;
    if (const std::optional<Separable> pair = find_separable(plan, links, *step))
      replace_both(*step, *pair->last, join_steps(pair->first, pair->product));
  }
  std::erase_if(plan.steps, [](const PlanStep& step) { return step.kernel.empty(); });
}

}  // namespace lissome
