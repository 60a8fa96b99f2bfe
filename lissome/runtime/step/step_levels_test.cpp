// The steps of hand-made cases give what their portable form gives on each level of instruction sets that this
// processor has, with one part and three: on the cases that its checks are tested with, filled with random numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/kernel/isa/convert_element.h"
#include "lissome/runtime/step/step_binder.h"
#include "lissome/runtime/step/step_product_cases.h"
#include "lissome/runtime/step/step_test_cases.h"

using namespace lissome;

namespace {

constexpr const char* kLevels[] = {"avx2", "avx512", "vnni", "bf16", "amx"};

struct NamedPlan {
  std::string name;
  Plan plan;
};

std::vector<NamedPlan> list_plans() {
  std::vector<NamedPlan> plans;
  for (const step_cases::StepCase& one : step_cases::list_cases()) plans.push_back({one.name, one.plan});
  for (const StepCase& one : list_product_cases()) plans.push_back({one.kernel, make_plan(one)});
  return plans;
}

// Indices stay below 3, the smallest size that a case has; numbers are positive, as variances must be.
void fill(Array& array, std::mt19937& random) {
  const auto real = [&] { return std::uniform_real_distribution<float>(0.1F, 1)(random); };
  const auto integer = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int64_t i = 0; i < array.elements(); ++i) {
    switch (array.dtype) {
      case Dtype::f32: array.data<float>()[i] = real(); break;
      case Dtype::f64: array.data<double>()[i] = static_cast<double>(real()); break;
      case Dtype::bf16: array.data<uint16_t>()[i] = narrow_bf16(real()); break;
      case Dtype::i64: array.data<int64_t>()[i] = integer(3); break;
      case Dtype::i32: array.data<int32_t>()[i] = integer(3); break;
      case Dtype::i16: array.data<int16_t>()[i] = static_cast<int16_t>(integer(64) - 32); break;
      case Dtype::i8: array.data<int8_t>()[i] = static_cast<int8_t>(integer(64) - 32); break;
      case Dtype::u8: array.data<uint8_t>()[i] = static_cast<uint8_t>(integer(4)); break;
      case Dtype::boolean: array.data<uint8_t>()[i] = static_cast<uint8_t>(integer(2)); break;
      default: break;
    }
  }
}

// Convolutions read zeros outside of the image, and pixels of conv_u8s8 have bytes between them that meet weights of
// zero, which only packing puts in their places: linear_u8s8_test packs real ones.
bool stays_zero(const PlanStep& step, const ValueRule& rule) {
  return rule.name == "zeros" || (step.kernel == "conv_u8s8" && rule.name == "weight");
}

void fill(Plan& plan, std::mt19937& random) {
  for (PlanArray& array : plan.arrays) {
    array.array = make_array(array.array.dtype, array.array.sizes);  // cases share theirs
    fill(array.array, random);
  }
  for (const PlanStep& step : plan.steps) {
    const auto rules = find_step_row(step.kernel).schema.operands;
    for (size_t i = 0; i < std::min(rules.size(), step.operands.size()); ++i) {
      if (!is_value(step.operands[i]) || !stays_zero(step, rules[i])) continue;
      const int array = plan.value(step.operands[i]).array;
      if (array < 0) continue;
      Array& zeros = plan.arrays[static_cast<size_t>(array)].array;
      zeros = make_array(zeros.dtype, zeros.sizes);
    }
  }
}

// How a gradient is spread over its splits is open; their sum is not.
Array add_splits(const PlanStep& step, const Array& array) {
  if (!step.kernel.starts_with("conv_weight") || step.attributes.find("splits") == nullptr) return array;
  Array sum = make_array(array.dtype, Sizes(array.sizes.begin() + 1, array.sizes.end()));
  for (int64_t i = 0; i < array.elements(); ++i) {
    sum.data<float>()[i % sum.elements()] += array.data<float>()[i];
  }
  return sum;
}

double read(const Array& array, int64_t i) {
  switch (array.dtype) {
    case Dtype::f32: return static_cast<double>(array.data<float>()[i]);
    case Dtype::f64: return array.data<double>()[i];
    case Dtype::bf16: return static_cast<double>(widen_bf16(array.data<uint16_t>()[i]));
    case Dtype::i64: return static_cast<double>(array.data<int64_t>()[i]);
    case Dtype::i32: return static_cast<double>(array.data<int32_t>()[i]);
    case Dtype::i16: return static_cast<double>(array.data<int16_t>()[i]);
    case Dtype::i8: return static_cast<double>(array.data<int8_t>()[i]);
    default: return static_cast<double>(array.data<uint8_t>()[i]);
  }
}

// Of the largest element: sums in another order, numbers rounded once more to bf16, or one step of int8.
double tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::f64: return 1e-5;
    case Dtype::bf16: return 1.0 / 64;
    default: return 0;
  }
}

// The largest difference of one output, as a share of its largest element; int8 may differ by one.
double find_difference(const Array& wanted, const Array& seen) {
  double largest = 0, off = 0;
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    const double expected = read(wanted, i), got = read(seen, i);
    largest = std::max(largest, std::abs(expected));
    if (!(std::abs(expected - got) <= 0))
      off = std::max(off, std::isnan(expected - got) ? 1e9 : std::abs(expected - got));
  }
  if (wanted.dtype == Dtype::u8) return off <= 1 ? 0 : off;
  return largest > 0 ? off / largest : off;
}

struct Masked {
  explicit Masked(const char* level) { mask_features(level); }
  Masked(const Masked&) = delete;
  Masked& operator=(const Masked&) = delete;
  ~Masked() { mask_features("amx"); }
};

}  // namespace

TEST_CASE("every kind of step gives on each level of instruction sets what its portable form gives") {
  std::mt19937 random(3);
  std::set<std::string> seen;
  for (NamedPlan& one : list_plans()) {
    fill(one.plan, random);
    for (const PlanStep& step : one.plan.steps) seen.insert(step.kernel);
    std::vector<Array> wanted;
    {
      const Masked portable("none");
      wanted = step_cases::run(one.plan, 1);
    }
    for (const char* level : kLevels) {
      const Masked masked(level);
      for (const int threads : {1, 3}) {
        const std::vector<Array> got = step_cases::run(one.plan, threads);
        REQUIRE(got.size() == wanted.size());
        for (size_t i = 0; i < got.size(); ++i) {
          const PlanStep& step = one.plan.steps.back();
          INFO(one.name, " on ", std::string(level), " with ", threads, " threads, output ", i, " ",
               dtype_name(got[i].dtype));
          CHECK(find_difference(add_splits(step, wanted[i]), add_splits(step, got[i])) <= tolerance(got[i].dtype));
        }
      }
    }
  }
  CHECK(seen.size() >= 70);  // tests/cases holds every kind, against ATen
}
