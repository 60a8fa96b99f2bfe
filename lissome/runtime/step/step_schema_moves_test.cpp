// Plans of one step each for the steps that move, normalize, attend and differentiate. Each runs as it is; then every
// rule of its schema is broken once, by going through the schema, and each time the plan is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lissome/runtime/step/step_binder.h"
#include "lissome/runtime/step/step_test_cases.h"
#include "tests/expect_error.h"

using namespace lissome;
using namespace lissome::step_cases;

namespace {

const ValueRule& rule_of(std::span<const ValueRule> rules, size_t position) {
  return rules[std::min(position, rules.size() - 1)];
}

bool is_dense(const Sizes& sizes, const Sizes& strides, Format format) {
  return PlacedValue{Dtype::f32, sizes, strides}.is_dense(format);
}

void break_dtypes(const StepCase& from, const std::vector<PlanValueId>& ids, std::span<const ValueRule> rules) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!is_value(ids[i])) continue;
    const ValueRule& rule = rule_of(rules, i);
    for (int dtype = 0; dtype <= static_cast<int>(Dtype::f8_e5m2fnuz); ++dtype) {
      if (rule.dtypes.holds(static_cast<Dtype>(dtype))) continue;
      StepCase broken = from;
      set_dtype(broken, ids[i], static_cast<Dtype>(dtype));
      // A ticket of the wrong dtype is refused where it is given.
      if (from.name == "reload" && ids[i] == from.step().operands[0]) broken.at = 0;
      expect_refusal(broken, quote(rule.name) + " is " + std::string(dtype_name(static_cast<Dtype>(dtype))));
    }
    StepCase broken = from;
    broken.value(ids[i]).kind = PlanKind::integer;
    if (from.name == "reload" && ids[i] == from.step().operands[0]) broken.at = 0;
    expect_refusal(broken, quote(rule.name) + " is of kind integer");
  }
}

void break_operand_counts(const StepCase& from) {
  const std::span<const ValueRule> rules = from.schema().operands;
  for (size_t i = 0; i < from.step().operands.size(); ++i) {
    if (rule_of(rules, i).presence == Presence::optional) continue;
    StepCase broken = from;
    broken.step().operands[i] = PlanValueId::none;
    if (from.step().kernel == "view" && i == 0) {
      EXPECT_ERROR(invalid_input, run(broken.plan), "is a view of nothing");
    } else {
      expect_refusal(broken, quote(rule_of(rules, i).name) + " is missing");
    }
  }
  if (rules.back().presence == Presence::repeated) return;
  StepCase broken = from;
  broken.step().operands.resize(rules.size(), PlanValueId::none);
  broken.step().operands.push_back(from.step().operands.back());
  expect_refusal(broken, "operands are given, it takes " + std::to_string(rules.size()));
}

void break_result_counts(const StepCase& from) {
  const std::span<const ValueRule> rules = from.schema().results;
  for (size_t i = 1; i < rules.size(); ++i) {
    if (rules[i].presence != Presence::required) continue;
    StepCase broken = from;
    broken.step().results.resize(i);
    expect_refusal(broken, quote(rules[i].name) + " is missing");
  }
  StepCase broken = from;
  while (broken.step().results.size() <= rules.size()) {
    const PlanValue& last = broken.value(from.step().results.back());
    broken.step().results.push_back(
        add_result(broken.plan, {last.dtype, sizes_of(from, from.step().results.back()), last.format}, last.storage));
  }
  expect_refusal(broken, "results are given, it takes " + std::to_string(rules.size()));
}

void break_layouts(const StepCase& from) {
  for (size_t i = 0; i < from.step().operands.size(); ++i) {
    const PlanValueId id = from.step().operands[i];
    const ValueRule& rule = rule_of(from.schema().operands, i);
    if (!is_value(id) || rule.layout == ValueLayout::any) continue;
    const Sizes sizes = sizes_of(from, id);
    if (count_elements(sizes) < 2 || (rule.layout == ValueLayout::dense_rows && sizes.back() == 1)) continue;
    StepCase broken = from;
    expand_operand(broken, i, sizes);
    expect_refusal(broken, quote(rule.name) + " of " + format_sizes(sizes) + " with strides");
  }
  for (size_t i = 0; i < from.step().results.size(); ++i) {
    const PlanValueId id = from.step().results[i];
    const ValueRule& rule = rule_of(from.schema().results, i);
    if (rule.layout != ValueLayout::row_major && rule.layout != ValueLayout::channels_last) continue;
    const Sizes sizes = sizes_of(from, id);
    const Format right = rule.layout == ValueLayout::row_major ? Format::row_major : kLast,
                 wrong = rule.layout == ValueLayout::row_major ? kLast : Format::row_major;
    if (is_dense(sizes, dense_strides(sizes, wrong), right)) continue;
    StepCase broken = from;
    broken.value(id).format = wrong;
    expect_refusal(broken, quote(rule.name) + " of " + format_sizes(sizes) + " with strides");
  }
}

std::vector<Attribute> list_wrong_values(const AttributeRule& rule) {
  std::vector<Attribute> wrong;
  const auto add_integers = [&](const auto& wrap) {
    if (rule.least > INT64_MIN) wrong.push_back(wrap(rule.least - 1));
    if (rule.most < INT64_MAX) wrong.push_back(wrap(rule.most + 1));
  };
  if (rule.type == AttributeType::integer) add_integers([](int64_t value) { return Attribute(value); });
  if (rule.type == AttributeType::integers) add_integers([](int64_t value) { return list({value}); });
  if (rule.type == AttributeType::number && !rule.nan_allowed) {
    wrong.emplace_back(std::nextafter(rule.smallest, -INFINITY));
    wrong.emplace_back(std::nextafter(rule.largest, INFINITY));
    wrong.emplace_back(std::nan(""));
  }
  if (rule.type == AttributeType::text) {
    wrong.emplace_back(int64_t{1});
    if (rule.known != nullptr) wrong.emplace_back(std::string("nonsense"));
  } else {
    wrong.emplace_back(std::string("nonsense"));
  }
  if (rule.type == AttributeType::integer || rule.type == AttributeType::integers) wrong.emplace_back(0.5);
  return wrong;
}

void break_attributes(const StepCase& from) {
  for (const AttributeRule& rule : from.schema().attributes) {
    for (const Attribute& value : list_wrong_values(rule)) {
      StepCase broken = from;
      broken.step().attributes.set(std::string(rule.name), value);
      expect_refusal(broken, "attribute " + quote(rule.name));
    }
    if (!rule.required) continue;
    StepCase broken = from;
    std::erase_if(broken.step().attributes.entries, [&](const auto& entry) { return entry.first == rule.name; });
    expect_refusal(broken, "attribute " + quote(rule.name) + " is missing");
  }
  StepCase broken = from;
  broken.step().attributes.set("colour", int64_t{1});
  expect_refusal(broken, "it has no attribute " + quote("colour"));
}

}  // namespace

TEST_CASE("the plan of each case runs soon") {
  for (const StepCase& one : list_cases()) expect_quick(one);
}

TEST_CASE("operands and results that are missing, too many, or of another dtype or kind are refused") {
  for (const StepCase& one : list_cases()) {
    break_operand_counts(one);
    break_result_counts(one);
    break_dtypes(one, one.step().operands, one.schema().operands);
    break_dtypes(one, one.step().results, one.schema().results);
  }
}

TEST_CASE("values that lie in another order than their step takes are refused") {
  for (const StepCase& one : list_cases()) break_layouts(one);
}

TEST_CASE("attributes that are missing, unknown, of another type or out of range are refused") {
  for (const StepCase& one : list_cases()) break_attributes(one);
}

TEST_CASE("dtypes that must be alike are") {
  for (const StepCase& one : list_cases()) {
    for (const bool results : {false, true}) {
      const std::vector<PlanValueId>& ids = results ? one.step().results : one.step().operands;
      const auto rules = results ? one.schema().results : one.schema().operands;
      for (size_t i = 0; i < ids.size(); ++i) {
        // Broadcast operands, masks and indices may differ from the others.
        const std::string_view name = rule_of(rules, i).name;
        const bool free = one.step().kernel == "elementwise" || name == "mask" || name == "index" ||
                          name == "another index" || name == "indices" || name == "measured";
        const bool alone = one.step().kernel == "batch_norm_gradients" ||
                           one.step().kernel == "batch_norm_statistics" || one.name == "channel_sums alone" ||
                           one.step().kernel == "offload";
        if (!is_value(ids[i]) || alone || (free && one.step().kernel.rfind("channel", 0) != 0)) continue;
        for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
          if (one.value(ids[i]).dtype == dtype || !rule_of(rules, i).dtypes.holds(dtype)) continue;
          StepCase broken = one;
          set_dtype(broken, ids[i], dtype);
          expect_refusal(broken, "");
        }
      }
    }
  }
}

TEST_CASE("sizes that do not fit each other are refused") {
  // Sizes that say how much there is to choose from, or to cut from, or that nothing depends on.
  const std::set<std::string> free = {"gather_rows operand 0 dim 0",
                                      "gather operand 0 dim 0",
                                      "gather operand 0 dim 1",
                                      "gather along operand 0 dim 0",
                                      "gather along operand 0 dim 1",
                                      "embedding_gradient result 0 dim 0",
                                      "view slice operand 0 dim 1",
                                      "view select operand 0 dim 1",
                                      "view expand result 0 dim 0",
                                      "view expand result 0 dim 1",
                                      "find_largest operand 0 dim 1",
                                      "reduce operand 0 dim 1",
                                      "reduce narrow operand 0 dim 2",
                                      "reduce narrow operand 0 dim 3",
                                      "interpolate operand 0 dim 2",
                                      "interpolate operand 0 dim 3",
                                      "interpolate result 0 dim 2",
                                      "interpolate result 0 dim 3",
                                      "interpolate_bf16 operand 0 dim 2",
                                      "interpolate_bf16 operand 0 dim 3",
                                      "interpolate_bf16 result 0 dim 2",
                                      "interpolate_bf16 result 0 dim 3",
                                      "batch_norm_statistics operand 1 dim 0",
                                      "batch_norm_statistics operand 1 dim 2",
                                      "batch_norm_statistics operand 1 dim 3",
                                      "batch_norm_gradients operand 3 dim 0",
                                      "batch_norm_gradients operand 3 dim 2",
                                      "batch_norm_gradients operand 3 dim 3",
                                      "channel_sums alone operand 0 dim 0",
                                      "channel_sums alone operand 0 dim 2",
                                      "channel_sums alone operand 0 dim 3",
                                      "nll_loss images operand 0 dim 1",
                                      "nll_loss operand 0 dim 1",
                                      "elementwise operand 0 dim 1",
                                      "elementwise result 0 dim 1",
                                      "gather operand 1 dim 1",
                                      "view expand operand 0 dim 0"};
  std::set<std::string> accepted;
  for (const StepCase& one : list_cases()) {
    for (const bool results : {false, true}) {
      const std::vector<PlanValueId>& ids = results ? one.step().results : one.step().operands;
      for (size_t i = 0; i < ids.size(); ++i) {
        const Sizes sizes = is_value(ids[i]) ? sizes_of(one, ids[i]) : Sizes{};
        for (size_t dim = 0; dim < sizes.size(); ++dim) {
          StepCase broken = one;
          Sizes larger = sizes;
          ++larger[dim];
          set_sizes(broken, ids[i], larger);
          const std::string name =
              one.name + (results ? " result " : " operand ") + std::to_string(i) + " dim " + std::to_string(dim);
          try {
            run(broken.plan);
            accepted.insert(name);
          } catch (const Error& error) {
            CHECK_MESSAGE(error.kind() == ErrorKind::invalid_input, name, ": ", error.what());
          }
        }
      }
    }
  }
  for (const std::string& name : accepted) CHECK_MESSAGE(free.count(name) == 1, name, " is not held against anything");
  for (const std::string& name : free) CHECK_MESSAGE(accepted.count(name) == 1, name, " is held against something");
}

TEST_CASE("operands of sizes that nothing holds are refused at once") {
  for (const StepCase& one : list_cases()) {
    for (size_t i = 0; i < one.step().operands.size(); ++i) {
      const PlanValueId id = one.step().operands[i];
      if (!is_value(id) || one.value(id).sizes.empty()) continue;
      StepCase broken = one;
      Sizes sizes = sizes_of(one, id);
      sizes.back() = int64_t{1} << 38;
      expand_operand(broken, i, sizes);
      const double seconds = measure_seconds([&] {
        try {
          run(broken.plan);
        } catch (const Error& error) {
          const bool known = error.kind() == ErrorKind::invalid_input || error.kind() == ErrorKind::over_budget;
          CHECK_MESSAGE(known, error.what());
        }
      });
      CAPTURE(one.name);
      CHECK(seconds < kSoon);
    }
  }
}
