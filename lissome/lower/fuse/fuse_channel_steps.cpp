#include "lissome/lower/fuse/fuse_channel_steps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "lissome/lower/candidate/norm/norm_candidates.h"
#include "lissome/lower/plan/plan_links.h"
#include "lissome/runtime/step/elementwise/elementwise_steps.h"
#include "lissome/runtime/step/norm/channel_steps.h"
#include "lissome/runtime/step/pool/pool_steps.h"

namespace lissome {
namespace {

bool is_relu(const PlanStep& step) {
  const auto activation = find_activation(step);
  return activation && activation->activation == Activation::relu;
}

bool is_threshold(const PlanStep& step) {
  return is_elementwise(step) && read_step<ElementwiseStep>(step).program == list_threshold_instructions();
}

class ChannelFuser {
 public:
  explicit ChannelFuser(Plan& plan)
      : plan_(plan), links_(link_plan(plan)), readers_(links_.readers), maker_(links_.makers) {}

  void run() {
    for (PlanStep& step : plan_.steps) {
      if (is_sum_of_two(step)) absorb_affine(step, 0) || absorb_affine(step, 1);
      if (is_relu(step)) absorb_affine(step, 0);
      if (is_threshold(step)) give_mask(step);
      if (is_step<MaxPoolGradientStep>(step)) give_indices(step);
    }
    std::erase_if(plan_.steps, [](const PlanStep& step) { return step.kernel.empty(); });
  }

 private:
  PlanStep& step_of(int at) { return plan_.steps[static_cast<size_t>(at)]; }
  const PlanValue& value_of(PlanValueId id) const { return plan_.value(id); }

  bool lie_alike(PlanValueId left, PlanValueId right) const {
    return lissome::lie_alike(value_of(left), value_of(right));
  }

  // The element-wise `reader` reads, as operand `position`, what a channel_affine makes for it alone: both become one
  // step there.
  bool absorb_affine(PlanStep& reader, size_t position) {
    const auto absorbing = read_step<ElementwiseStep>(reader);
    const std::vector<PlanValueId>& read = absorbing.operands.values;
    const PlanValueId value = read[position], result = absorbing.y.value;
    const int maker = maker_[static_cast<size_t>(value)];
    if (maker < 0 || !is_step<ChannelAffineStep>(step_of(maker))) return false;
    if (readers_[static_cast<size_t>(value)].size() != 1) return false;
    PlanStep& affine = step_of(maker);
    ChannelAffineStep joined = read_step<ChannelAffineStep>(affine);
    if (joined.relu) return false;
    const bool adds = read.size() == 2;
    if (adds && (joined.z || !lie_alike(value, read[1 - position]))) return false;
    if (!lie_alike(value, result)) return false;
    if (adds) joined.z = {read[1 - position]};
    if (!adds) joined.relu = true;
    joined.y = {result};
    reader.origins.insert(reader.origins.begin(), affine.origins.begin(), affine.origins.end());
    replace_step(reader, joined);
    affine = {};
    // Links follow: all operands are read at this place from now on.
    const int at = static_cast<int>(&reader - plan_.steps.data());
    for (const PlanValueId operand : reader.operands) {
      if (!is_value(operand)) continue;
      std::vector<int>& readers = readers_[static_cast<size_t>(operand)];
      std::replace(readers.begin(), readers.end(), maker, at);
    }
    maker_[static_cast<size_t>(result)] = at;
    return true;
  }

  // The two passes of a batch norm's gradient over what comes in there.
  struct NormGradient {
    PlanStep &sums_step, &affine_step;
    ChannelSumsStep sums;
    ChannelAffineStep affine;

    void put_back() {
      replace_step(sums_step, sums);
      replace_step(affine_step, affine);
    }
  };

  // Found when these two passes alone read dy, without a mask.
  std::optional<NormGradient> find_norm_gradient(PlanValueId dy) {
    const std::vector<int>& readers = readers_[static_cast<size_t>(dy)];
    if (readers.size() != 2 || std::find(readers.begin(), readers.end(), -1) != readers.end()) return std::nullopt;
    PlanStep &first = step_of(readers[0]), &second = step_of(readers[1]);
    if (!is_step<ChannelSumsStep>(first) || !is_step<ChannelAffineStep>(second)) return std::nullopt;
    NormGradient found{first, second, read_step<ChannelSumsStep>(first), read_step<ChannelAffineStep>(second)};
    if (found.sums.dy.value != dy || found.sums.mask) return std::nullopt;
    if (found.affine.x.value != dy || found.affine.mask) return std::nullopt;
    return found;
  }

  // The gradient of relu.
  void give_mask(PlanStep& step) {
    const auto threshold = read_step<ElementwiseStep>(step);
    const PlanValueId masked = threshold.y.value, y = threshold.operands.values[0], dy = threshold.operands.values[1];
    std::optional<NormGradient> norm = find_norm_gradient(masked);
    if (!norm || !lie_alike(masked, y) || !lie_alike(masked, dy)) return;
    norm->sums.dy = {dy}, norm->affine.x = {dy};
    norm->sums.mask = {y}, norm->affine.mask = {y};
    norm->put_back();
    step = {};
  }

  // The gradient of max pooling.
  void give_indices(PlanStep& step) {
    const auto pool = read_step<MaxPoolGradientStep>(step);
    std::optional<NormGradient> norm = find_norm_gradient(pool.dx.value);
    if (!norm || !lie_alike(pool.dx.value, norm->affine.y.value)) return;
    norm->sums.dy = {pool.dy}, norm->sums.indices = {pool.indices};
    norm->affine.x = {}, norm->affine.pooled = {pool.dy}, norm->affine.indices = {pool.indices};
    norm->sums.window = norm->affine.window = pool.window;
    norm->put_back();
    step = {};
  }

  Plan& plan_;
  PlanLinks links_;
  std::vector<std::vector<int>>& readers_;
  std::vector<int>& maker_;
};

// Which values are equal bit by bit because equal steps made them of equal values: what runs again to save memory.
class Numbering {
 public:
  explicit Numbering(const Plan& plan) : numbers_(plan.values.size(), -1) {
    for (const PlanStep& step : plan.steps) number(plan, step);
  }
  bool are_equal(PlanValueId left, PlanValueId right) { return number_of(left) == number_of(right); }

 private:
  using Key = std::tuple<std::string, std::vector<std::pair<std::string, Attribute>>, std::vector<int>>;

  int number_of(PlanValueId value) {
    if (!is_value(value)) return -1;
    int& number = numbers_[static_cast<size_t>(value)];
    if (number < 0) number = next_++;
    return number;
  }

  void number(const Plan& plan, const PlanStep& step) {
    if (step.kernel == kReferenceStep) return;
    std::vector<int> read;
    for (const PlanValueId operand : step.operands) read.push_back(number_of(operand));
    for (const PlanValueId result : step.results) read.push_back(static_cast<int>(plan.value(result).format));
    const auto [found, is_new] = made_.try_emplace({step.kernel, step.attributes.entries, std::move(read)}, next_);
    if (is_new) next_ += static_cast<int>(step.results.size());
    for (size_t i = 0; i < step.results.size(); ++i)
      numbers_[static_cast<size_t>(step.results[i])] = found->second + static_cast<int>(i);
  }

  std::vector<int> numbers_;  // by value, -1 where it has none yet
  std::map<Key, int> made_;   // by what a step does: the number of its first result
  int next_ = 0;
};

// Masks that are ReLU of a batch norm whose input the same step reads: the step asks that input instead, so that the
// mask is neither read nor kept for it.
class MaskRebuilder {
 public:
  explicit MaskRebuilder(Plan& plan) : plan_(plan), numbering_(plan), maker_(plan.values.size(), nullptr) {}

  void run() {
    for (PlanStep& step : plan_.steps) {
      if (is_step<ChannelSumsStep>(step)) ask_input(step, &ChannelSumsStep::x);
      if (is_step<ChannelAffineStep>(step)) ask_input(step, &ChannelAffineStep::z);
      for (const PlanValueId result : step.results) maker_[static_cast<size_t>(result)] = &step;
    }
  }

 private:
  template <typename Step>
  void ask_input(PlanStep& step, OptionalOperand Step::* input) {
    Step asking = read_step<Step>(step);
    const OptionalOperand x = asking.*input, y = asking.mask;
    if (!x || !y) return;
    const PlanStep* maker = maker_[static_cast<size_t>(y.value)];
    if (maker == nullptr || !is_step<ChannelAffineStep>(*maker)) return;
    const auto norm = read_step<ChannelAffineStep>(*maker);
    if (!norm.relu || norm.z || norm.mask) return;
    // In bf16 the mask was rounded, so that less than the least number became zero.
    const bool wide = plan_.value(y.value).dtype == Dtype::f32;
    if (!wide || !numbering_.are_equal(norm.x.value, x.value)) return;
    asking.mask = x;
    asking.mask_scale = {norm.scale}, asking.mask_shift = {norm.shift};
    replace_step(step, asking);
  }

  Plan& plan_;
  Numbering numbering_;
  std::vector<const PlanStep*> maker_;  // by value: the step before that makes it
};

}  // namespace

void fuse_channel_steps(Plan& plan) {
  const auto is_channel_step = [](const PlanStep& step) {
    return is_step<ChannelSumsStep>(step) || is_step<ChannelAffineStep>(step);
  };
  if (std::none_of(plan.steps.begin(), plan.steps.end(), is_channel_step)) return;
  ChannelFuser(plan).run();
  MaskRebuilder(plan).run();
}

}  // namespace lissome
