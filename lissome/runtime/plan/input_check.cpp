#include "lissome/runtime/plan/input_check.h"

#include <set>

namespace lissome {
namespace {

const PlanValue& value_of(const Plan& plan, const PlanInput& input) { return plan.value(input.value); }

class InputMatcher {
 public:
  InputMatcher(const Plan& plan, std::span<const TensorView> inputs)
      : plan_(plan), inputs_(inputs), bound_(plan.dimensions.size(), -1), bound_by_(plan.dimensions.size()) {}

  DimensionValues match() {
    if (inputs_.size() != plan_.inputs.size()) {
      throw_error(ErrorKind::invalid_input, inputs_.size(), " inputs were given, the model takes ", plan_.inputs.size(),
                  ": ", list_inputs());
    }
    for (size_t i = 0; i < inputs_.size(); ++i) check_form(i);
    // Plain names first, then what depends on one unbound name alone: 2*batch.
    for (const bool plain : {true, false}) {
      for (size_t i = 0; i < inputs_.size(); ++i) bind_sizes(i, plain);
    }
    for (size_t i = 0; i < inputs_.size(); ++i) check_sizes(i);
    for (const PlanRequirement& requirement : plan_.requirements) check_requirement(requirement);
    return bound_;
  }

 private:
  std::string list_inputs() const {
    std::string text;
    for (const PlanInput& input : plan_.inputs) {
      if (!text.empty()) text += ", ";
      text += input.name + " " + describe_input(plan_, input);
    }
    return text;
  }
  // `why`: "; n is 9 by input 'x'", or empty.
  [[noreturn]] void refuse(size_t i, const std::string& why = {}) const {
    const TensorView& seen = inputs_[i];
    const bool converts = seen.dtype != value(i).dtype && seen.sizes.size() == value(i).sizes.size();
    throw_error(ErrorKind::invalid_input, "input ", quote(plan_.inputs[i].name), " is ", dtype_name(seen.dtype),
                format_sizes(seen.sizes), ", must be ", describe_input(plan_, plan_.inputs[i]),
                converts ? "; convert its elements to " + std::string(dtype_name(value(i).dtype)) : why);
  }
  const PlanValue& value(size_t i) const { return value_of(plan_, plan_.inputs[i]); }

  void check_form(size_t i) const {
    const TensorView& seen = inputs_[i];
    if (seen.dtype != value(i).dtype || seen.sizes.size() != value(i).sizes.size()) refuse(i);
    if (!seen.is_contiguous()) {
      throw_error(ErrorKind::invalid_input, "input ", quote(plan_.inputs[i].name), " is ", dtype_name(seen.dtype),
                  format_sizes(seen.sizes), " with strides ", format_sizes(seen.strides),
                  "; it must be dense in row order: copy it first");
    }
  }

  void bind_sizes(size_t i, bool plain) {
    for (size_t k = 0; k < value(i).sizes.size(); ++k) {
      const SizeExpression& size = value(i).sizes[k];
      const int dimension = size.single_dimension();
      if (dimension < 0 || bound_[static_cast<size_t>(dimension)] >= 0) continue;
      const PlanDimension& named = plan_.dimensions[static_cast<size_t>(dimension)];
      if (plain != (size.text() == named.name)) continue;
      const auto solved = plain ? inputs_[i].sizes[k] : solve(size, dimension, inputs_[i].sizes[k]);
      if (solved < named.minimum || solved > named.maximum) refuse(i);
      bound_[static_cast<size_t>(dimension)] = solved;
      bound_by_[static_cast<size_t>(dimension)] = {i, k};
    }
  }

  // The x with a*x + b == wanted, -1 when the expression is not of that form.
  int64_t solve(const SizeExpression& size, int dimension, int64_t wanted) const {
    DimensionValues trial = bound_;
    const auto at = [&](int64_t x) {
      trial[static_cast<size_t>(dimension)] = x;
      return size.evaluate(trial);
    };
    const auto zero = at(0), one = at(1);
    int64_t factor = 0, rest = 0;
    if (!zero || !one || __builtin_sub_overflow(*one, *zero, &factor) || __builtin_sub_overflow(wanted, *zero, &rest)) {
      return -1;
    }
    if (factor == 0 || (factor == -1 && rest == INT64_MIN)) return -1;
    const int64_t x = rest / factor;
    return x >= 0 && at(x) == wanted ? x : -1;
  }

  void check_sizes(size_t i) const {
    for (size_t k = 0; k < value(i).sizes.size(); ++k) {
      const auto wanted = value(i).sizes[k].evaluate(bound_);
      if (wanted && *wanted != inputs_[i].sizes[k]) refuse(i, explain(i, value(i).sizes[k]));
    }
  }

  // Which other input gave the dimension that a size follows from.
  std::string explain(size_t i, const SizeExpression& size) const {
    const int dimension = size.single_dimension();
    if (dimension < 0) return {};
    const auto at = static_cast<size_t>(dimension);
    const size_t other = bound_by_[at].input;
    if (bound_[at] < 0 || other == i) return {};
    return "; " + plan_.dimensions[at].name + " is " + std::to_string(bound_[at]) + " by input " +
           quote(plan_.inputs[other].name) + ", " + std::string(dtype_name(inputs_[other].dtype)) +
           format_sizes(inputs_[other].sizes);
  }

  void check_requirement(const PlanRequirement& requirement) const {
    const auto slack = requirement.slack.evaluate(bound_);
    if (slack && *slack >= 0) return;
    std::vector<std::string> seen;
    for (size_t i = 0; i < bound_.size(); ++i) {
      if (bound_[i] < 0) {
        seen.push_back(plan_.dimensions[i].name + " = unknown");
      } else {
        const auto [input, place] = bound_by_[i];
        seen.push_back(plan_.dimensions[i].name + " = " + std::to_string(bound_[i]) + " (dimension " +
                       std::to_string(place) + " of " + quote(plan_.inputs[input].name) + ")");
      }
    }
    throw_error(ErrorKind::invalid_input, "the model was exported for sizes where ", requirement.text, ", not for ",
                join(seen, ", "), ".\n      Export it at such sizes too, or give others.");
  }

  const Plan& plan_;
  std::span<const TensorView> inputs_;
  DimensionValues bound_;
  struct Place {
    size_t input = 0, size = 0;
  };
  std::vector<Place> bound_by_;  // by dimension: the input's size that it was read from
};

}  // namespace

std::string describe_input(const Plan& plan, const PlanInput& input) {
  const PlanValue& value = value_of(plan, input);
  std::vector<std::string> sizes;
  std::set<int> named;
  for (const SizeExpression& size : value.sizes) {
    sizes.push_back(size.text());
    if (size.single_dimension() >= 0) named.insert(size.single_dimension());
  }
  std::string text = std::string(dtype_name(value.dtype)) + "[" + join(sizes, ", ") + "]";
  std::string_view separator = " with ";
  for (const int position : named) {
    const PlanDimension& dimension = plan.dimensions[static_cast<size_t>(position)];
    text += std::string(separator) + dimension.name + " in " + std::to_string(dimension.minimum) + "..";
    if (dimension.maximum != INT64_MAX) text += std::to_string(dimension.maximum);
    separator = ", ";
  }
  return text;
}

DimensionValues match_inputs(const Plan& plan, std::span<const TensorView> inputs) {
  return InputMatcher(plan, inputs).match();
}

}  // namespace lissome
