#include "lissome/lower/fuse/fuse_channel_steps.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lissome/lower/candidate/candidate_rows.h"
#include "lissome/lower/plan/plan_links.h"

namespace lissome {
namespace {

constexpr std::string_view kAffine = "channel_affine", kSums = "channel_sums";
// Operands of channel_affine.
constexpr size_t kAffineX = 0, kAffineScale = 1, kAffineShift = 2, kAffineZ = 3, kAffineMask = 6, kAffineMaskMap = 7,
                 kAffinePooled = 9;
// Operands of channel_sums.
constexpr size_t kSumsX = 0, kSumsDy = 1, kSumsMask = 2, kSumsMaskMap = 4, kSumsPlaces = 6;

bool is_relu(const PlanStep& step) {
  const auto activation = find_activation(step);
  return activation && activation->activation == Activation::relu;
}

bool is_threshold(const PlanStep& step) {
  return is_elementwise(step) && step.attributes.texts("program") == list_threshold_instructions();
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
      if (step.kernel == "max_pool_gradient") give_places(step);
    }
    std::erase_if(plan_.steps, [](const PlanStep& step) { return step.kernel.empty(); });
  }

 private:
  PlanStep& step_of(int at) { return plan_.steps[static_cast<size_t>(at)]; }
  const PlanValue& value_of(int id) const { return plan_.values[static_cast<size_t>(id)]; }

  bool lie_alike(int left, int right) const { return lissome::lie_alike(value_of(left), value_of(right)); }

  // `reader` reads, as operand `position`, what a channel_affine makes for it alone: both become one step there.
  bool absorb_affine(PlanStep& reader, size_t position) {
    const int value = reader.operands[position], maker = maker_[static_cast<size_t>(value)];
    if (maker < 0 || step_of(maker).kernel != kAffine || readers_[static_cast<size_t>(value)].size() != 1) return false;
    PlanStep& affine = step_of(maker);
    if (affine.attributes.find("relu")) return false;
    const bool adds = reader.operands.size() == 2;
    if (adds && (affine.operands[kAffineZ] >= 0 || !lie_alike(value, reader.operands[1 - position]))) return false;
    if (!lie_alike(value, reader.results[0])) return false;
    PlanStep joined = affine;
    if (adds) joined.operands[kAffineZ] = reader.operands[1 - position];
    if (!adds) joined.attributes.set("relu", int64_t{1});
    joined.results = reader.results;
    joined.origins.insert(joined.origins.end(), reader.origins.begin(), reader.origins.end());
    affine = {};
    // What it reads is read here now.
    const int at = static_cast<int>(&reader - plan_.steps.data());
    for (const int operand : joined.operands) {
      if (operand >= 0)
        std::replace(readers_[static_cast<size_t>(operand)].begin(), readers_[static_cast<size_t>(operand)].end(),
                     maker, at);
    }
    reader = std::move(joined);
    maker_[static_cast<size_t>(reader.results[0])] = at;
    return true;
  }

  // The two passes of one batch norm's gradient, when nothing else reads what comes in there; null otherwise.
  std::pair<PlanStep*, PlanStep*> find_norm_gradient(int dy) {
    const std::vector<int>& readers = readers_[static_cast<size_t>(dy)];
    if (readers.size() != 2 || std::find(readers.begin(), readers.end(), -1) != readers.end()) return {};
    PlanStep &sums = step_of(readers[0]), &affine = step_of(readers[1]);
    if (sums.kernel != kSums || sums.operands[kSumsDy] != dy || sums.operands[kSumsMask] >= 0) return {};
    if (affine.kernel != kAffine || affine.operands[kAffineX] != dy || affine.operands[kAffineMask] >= 0) return {};
    return {&sums, &affine};
  }

  // The gradient of relu.
  void give_mask(PlanStep& threshold) {
    const int masked = threshold.results[0], y = threshold.operands[0], dy = threshold.operands[1];
    const auto [sums, affine] = find_norm_gradient(masked);
    if (sums == nullptr || !lie_alike(masked, y) || !lie_alike(masked, dy)) return;
    sums->operands[kSumsDy] = affine->operands[kAffineX] = dy;
    sums->operands[kSumsMask] = affine->operands[kAffineMask] = y;
    threshold = {};
  }

  // The gradient of max pooling.
  void give_places(PlanStep& pool) {
    const int dx = pool.results[0], dy = pool.operands[0], places = pool.operands[1];
    const auto [sums, affine] = find_norm_gradient(dx);
    if (sums == nullptr || !lie_alike(dx, affine->results[0])) return;
    sums->operands.resize(kSumsPlaces, -1), affine->operands.resize(kAffinePooled, -1);
    sums->operands[kSumsDy] = dy, sums->operands.push_back(places);
    affine->operands[kAffineX] = -1;
    affine->operands.insert(affine->operands.end(), {dy, places});
    for (PlanStep* step : {sums, affine}) {
      for (const auto& [name, attribute] : pool.attributes.entries) step->attributes.set(name, attribute);
    }
    pool = {};
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
  bool are_equal(int left, int right) { return number_of(left) == number_of(right); }

 private:
  using Key = std::tuple<std::string, std::vector<std::pair<std::string, Attribute>>, std::vector<int>>;

  int number_of(int value) {
    if (value < 0) return value;
    int& number = numbers_[static_cast<size_t>(value)];
    if (number < 0) number = next_++;
    return number;
  }

  void number(const Plan& plan, const PlanStep& step) {
    if (step.kernel == kReferenceStep) return;
    std::vector<int> read;
    for (const int operand : step.operands) read.push_back(number_of(operand));
    for (const int result : step.results)
      read.push_back(static_cast<int>(plan.values[static_cast<size_t>(result)].format));
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
      if (step.kernel == kSums) ask_input(step, kSumsX, kSumsMask, kSumsMaskMap);
      if (step.kernel == kAffine) ask_input(step, kAffineZ, kAffineMask, kAffineMaskMap);
      for (const int result : step.results) maker_[static_cast<size_t>(result)] = &step;
    }
  }

 private:
  void ask_input(PlanStep& step, size_t input, size_t mask, size_t map) {
    const int x = step.operands[input], y = step.operands[mask];
    if (x < 0 || y < 0) return;
    const PlanStep* norm = maker_[static_cast<size_t>(y)];
    if (norm == nullptr || norm->kernel != kAffine || !norm->attributes.find("relu")) return;
    if (norm->operands[kAffineZ] >= 0 || norm->operands[kAffineMask] >= 0) return;
    // In bf16 the mask was rounded, so that less than the least number became zero.
    const bool wide = plan_.values[static_cast<size_t>(y)].dtype == Dtype::f32;
    if (!wide || !numbering_.are_equal(norm->operands[kAffineX], x)) return;
    step.operands[mask] = x;
    step.operands.resize(std::max(step.operands.size(), map + 2), -1);
    step.operands[map] = norm->operands[kAffineScale], step.operands[map + 1] = norm->operands[kAffineShift];
  }

  Plan& plan_;
  Numbering numbering_;
  std::vector<const PlanStep*> maker_;  // by value: the step before that makes it
};

}  // namespace

void fuse_channel_steps(Plan& plan) {
  const auto is_channel_step = [](const PlanStep& step) { return step.kernel == kSums || step.kernel == kAffine; };
  if (std::none_of(plan.steps.begin(), plan.steps.end(), is_channel_step)) return;
  ChannelFuser(plan).run();
  MaskRebuilder(plan).run();
}

}  // namespace lissome
