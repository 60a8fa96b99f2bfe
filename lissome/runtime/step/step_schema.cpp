#include "lissome/runtime/step/step_schema.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "lissome/runtime/step/step_binder.h"

namespace lissome {
namespace {

constexpr std::array kTypeNames = {"an integer", "a number", "a text", "a list of integers", "a list of texts"};

// What a message says once it is written: the checks below are asked of every value and nearly never fail.
struct Quoted {
  std::string_view text;
  friend std::ostream& operator<<(std::ostream& out, const Quoted& quoted) { return out << quote(quoted.text); }
};
struct Described {
  const DtypeSet& dtypes;
  friend std::ostream& operator<<(std::ostream& out, const Described& described) {
    return out << described.dtypes.describe();
  }
};

// Holds one step against its schema.
class StepChecker {
 public:
  StepChecker(const Plan& plan, int position, const StepSchema& schema)
      : plan_(plan), step_(plan.steps[static_cast<size_t>(position)]), position_(position), schema_(schema) {}

  void check() const {
    check_values("operand", step_.operands, schema_.operands);
    check_values("result", step_.results, schema_.results);
    for (const AttributeRule& rule : schema_.attributes) check_attribute(rule);
    for (const auto& [name, value] : step_.attributes.entries) {
      const bool is_known = std::any_of(schema_.attributes.begin(), schema_.attributes.end(),
                                        [&](const AttributeRule& rule) { return rule.name == name; });
      require(is_known, "it has no attribute ", Quoted{name});
    }
  }

 private:
  template <typename... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (!condition) throw_error(ErrorKind::invalid_input, "plan: ", describe_step(step_, position_), ": ", parts...);
  }

  void check_values(std::string_view what, const std::vector<PlanValueId>& values,
                    std::span<const ValueRule> rules) const {
    for (size_t i = 0; i < rules.size(); ++i) {
      const ValueRule& rule = rules[i];
      if (rule.presence == Presence::repeated) {
        for (size_t k = i; k < values.size(); ++k) check_value(what, rule, values[k]);
        return;
      }
      const bool is_given = i < values.size() && is_value(values[i]);
      if (rule.presence == Presence::absent) {
        require(!is_given, what, " ", Quoted{rule.name}, " is given, it takes none");
      } else if (is_given) {
        check_value(what, rule, values[i]);
      } else {
        require(rule.presence == Presence::optional, what, " ", Quoted{rule.name}, " is missing");
      }
    }
    require(values.size() <= rules.size(), values.size(), " ", what, "s are given, it takes ", rules.size());
  }

  void check_value(std::string_view what, const ValueRule& rule, PlanValueId id) const {
    require(is_value(id), what, " ", Quoted{rule.name}, " is missing");
    const PlanValue& value = plan_.value(id);
    require(value.kind == PlanKind::tensor, what, " ", Quoted{rule.name}, " is of kind ", plan_kind_name(value.kind),
            ", must be a tensor");
    require(value.sized, what, " ", Quoted{rule.name}, " has no dtype and sizes");
    require(rule.dtypes.holds(value.dtype), what, " ", Quoted{rule.name}, " is ", dtype_name(value.dtype), ", must be ",
            Described{rule.dtypes});
  }

  void check_attribute(const AttributeRule& rule) const {
    const Attribute* attribute = step_.attributes.find(rule.name);
    if (attribute == nullptr) return require(!rule.required, "attribute ", Quoted{rule.name}, " is missing");
    require(has_type(*attribute, rule.type), "attribute ", Quoted{rule.name}, " must be ",
            kTypeNames[static_cast<size_t>(rule.type)]);
    const auto check_integer = [&](int64_t number) {
      require(number >= rule.least && number <= rule.most, "attribute ", Quoted{rule.name}, " is ", number,
              ", must lie in ", rule.least, "..", rule.most);
    };
    if (rule.type == AttributeType::integer) check_integer(std::get<int64_t>(*attribute));
    if (rule.type == AttributeType::integers) {
      if (const auto* numbers = std::get_if<std::vector<int64_t>>(attribute)) {
        require(!rule.is_filled || !numbers->empty(), "attribute ", Quoted{rule.name}, " has no numbers");
        for (const int64_t number : *numbers) check_integer(number);
      }
    }
    if (rule.type == AttributeType::number) {
      const double number = step_.attributes.number(rule.name, 0);
      require(rule.nan_allowed || (number >= rule.smallest && number <= rule.largest), "attribute ", Quoted{rule.name},
              " is ", number, ", must lie in ", rule.smallest, "..", rule.largest);
    }
    if (rule.type == AttributeType::text && rule.known != nullptr) {
      const std::string& word = std::get<std::string>(*attribute);
      require(rule.known(word), "attribute ", Quoted{rule.name}, " is ", Quoted{word}, ", which is unknown");
    }
  }

  static bool has_type(const Attribute& attribute, AttributeType type) {
    const auto* numbers = std::get_if<std::vector<int64_t>>(&attribute);
    switch (type) {
      case AttributeType::integer: return std::holds_alternative<int64_t>(attribute);
      case AttributeType::number:
        return std::holds_alternative<int64_t>(attribute) || std::holds_alternative<double>(attribute);
      case AttributeType::text: return std::holds_alternative<std::string>(attribute);
      case AttributeType::integers: return numbers != nullptr;
      // A file says nothing about what an empty list holds.
      case AttributeType::texts:
        return std::holds_alternative<std::vector<std::string>>(attribute) || (numbers != nullptr && numbers->empty());
    }
    return false;
  }

  const Plan& plan_;
  const PlanStep& step_;
  const int position_;
  const StepSchema& schema_;
};

bool lies_as(const PlacedValue& value, ValueLayout layout) {
  switch (layout) {
    case ValueLayout::row_major: return value.is_row_major();
    case ValueLayout::channels_last: return value.is_dense(Format::channels_last);
    case ValueLayout::dense: return value.is_row_major() || value.is_dense(Format::channels_last);
    case ValueLayout::dense_rows: return value.sizes.empty() || value.sizes.back() <= 1 || value.strides.back() == 1;
    case ValueLayout::any: return true;
  }
  return false;
}

std::string_view describe_layout(ValueLayout layout) {
  switch (layout) {
    case ValueLayout::row_major: return "dense in row order";
    case ValueLayout::channels_last: return "dense with channels last";
    case ValueLayout::dense: return "dense";
    default: return "dense along its last dimension";
  }
}

}  // namespace

std::string DtypeSet::describe() const {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(Dtype::f8_e5m2fnuz); ++i) {
    if (holds(static_cast<Dtype>(i))) names.emplace_back(dtype_name(static_cast<Dtype>(i)));
  }
  return join(names, " or ");
}

void check_step(const Plan& plan, int step) {
  const StepRow& row = find_step_row(plan.steps[static_cast<size_t>(step)].kernel);
  StepChecker(plan, step, row.schema).check();
}

void check_layouts(const StepBinder& binder, const StepSchema& schema) {
  const auto check = [&](std::string_view what, const ValueRule& rule, PlanValueId id) {
    const PlacedValue& value = binder.value(StepValue{id});
    binder.require(lies_as(value, rule.layout), what, " ", quote(rule.name), " of ", format_sizes(value.sizes),
                   " with strides ", format_sizes(value.strides), " is not ", describe_layout(rule.layout));
  };
  const PlanStep& step = binder.step();
  for (size_t i = 0; i < step.operands.size(); ++i) {
    const size_t rule = std::min(i, schema.operands.size() - 1);  // of repeated ones the last
    if (is_value(step.operands[i])) check("operand", schema.operands[rule], step.operands[i]);
  }
  for (size_t i = 0; i < step.results.size(); ++i) check("result", schema.results[i], step.results[i]);
}

}  // namespace lissome
