// The language in which a kind of step is declared. Each kind is one struct (in *_steps.h beside its binders) with
// named values and attributes, and one function
//
//   template <typename Self, typename Fields>
//   static void describe(Self& step, Fields& fields) {
//     fields.operand("x", step.x, {Dtype::f32});
//     fields.operand("bias", step.bias, {Dtype::f32});                    // optional by its type
//     fields.integer("outputs", step.outputs, 1, kLargestBytes, kRequired);
//     fields.result("y", step.y, {Dtype::f32});
//     fields.reuses(step.bias);                                           // y may take its memory
//     fields.leaves_open(step.x, {1});                                    // any size fits there
//   }
//
// from which follow the schema that plans from files are checked against, the form in a plan (PlanStep), what a binder
// reads, and whose memory a result may take. Operands and results have their places in the order of describe().
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lissome/runtime/step/step_schema.h"

namespace lissome {

// A value of a step.
struct StepValue {
  PlanValueId value = PlanValueId::none;
};
struct Operand : StepValue {};
struct OptionalOperand : StepValue {
  explicit operator bool() const { return is_value(value); }
};
struct Result : StepValue {};
struct OptionalResult : StepValue {
  explicit operator bool() const { return is_value(value); }
};
// All operands from its place on.
struct OperandList {
  std::vector<PlanValueId> values;
};

// An attribute that must be given; others that are left out have the value of a new struct.
struct RequiredAttribute {};
inline constexpr RequiredAttribute kRequired;
// A list that must not be empty where it is given.
struct FilledList {};
inline constexpr FilledList kFilled;

// Collects the rules of a kind of step.
class SchemaFields {
 public:
  std::vector<ValueRule> operands, results;
  std::vector<AttributeRule> attributes;
  uint32_t reusable = 0;  // bit i: a result may take the memory of operand i

  void operand(std::string_view name, const Operand& member, DtypeSet dtypes,
               ValueLayout layout = ValueLayout::row_major) {
    add_operand(&member, {name, dtypes, layout, Presence::required});
  }
  void operand(std::string_view name, const OptionalOperand& member, DtypeSet dtypes,
               ValueLayout layout = ValueLayout::row_major) {
    add_operand(&member, {name, dtypes, layout, Presence::optional});
  }
  void operand(std::string_view name, const OperandList& member, DtypeSet dtypes,
               ValueLayout layout = ValueLayout::row_major) {
    add_operand(&member, {name, dtypes, layout, Presence::repeated});
  }
  void no_operand(std::string_view name) {
    add_operand(nullptr, {name, DtypeSet({}), ValueLayout::row_major, Presence::absent});
  }
  void result(std::string_view name, const Result& member, DtypeSet dtypes,
              ValueLayout layout = ValueLayout::row_major) {
    add_result(&member, {name, dtypes, layout, Presence::required});
  }
  void result(std::string_view name, const OptionalResult& member, DtypeSet dtypes,
              ValueLayout layout = ValueLayout::row_major) {
    add_result(&member, {name, dtypes, layout, Presence::optional});
  }

  template <typename... Required>
  void integer(std::string_view name, int64_t, int64_t least, int64_t most, Required...) {
    attributes.push_back(integer_rule(name, least, most, sizeof...(Required) > 0));
  }
  template <typename... Required>
  void flag(std::string_view name, bool, Required...) {
    attributes.push_back(integer_rule(name, 0, 1, sizeof...(Required) > 0));
  }
  template <typename... Required>
  void number(std::string_view name, double, double smallest, double largest, Required...) {
    attributes.push_back(number_rule(name, smallest, largest, sizeof...(Required) > 0));
  }
  void any_number(std::string_view name, double) { attributes.push_back(any_number_rule(name)); }
  template <typename... Required>
  void text(std::string_view name, const std::string&, bool (*known)(std::string_view), Required...) {
    attributes.push_back(text_rule(name, known, sizeof...(Required) > 0));
  }
  template <typename... Demands>
  void integers(std::string_view name, const std::vector<int64_t>&, int64_t least, int64_t most, Demands...) {
    AttributeRule rule = integers_rule(name, least, most, (std::is_same_v<Demands, RequiredAttribute> || ...));
    rule.is_filled = (std::is_same_v<Demands, FilledList> || ...);
    attributes.push_back(rule);
  }
  void texts(std::string_view name, const std::vector<std::string>&) { attributes.push_back(texts_rule(name)); }

  // A result of the same size may lie in the memory of this operand, which describe() has named before.
  template <typename Member>
  void reuses(const Member& member) {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i] == &member) reusable |= uint32_t{1} << i;
    }
  }
  void reuses(const OperandList& member) {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i] == &member) reusable |= ~uint32_t{0} << i;
    }
  }
  // Dimensions of a value, which describe() has named before, that may have any size whatever the other values have.
  template <typename Member>
  void leaves_open(const Member& member, std::initializer_list<int> dims) {
    uint32_t open = 0;
    for (const int dim : dims) open |= uint32_t{1} << dim;
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i] == &member) operands[i].open = open;
    }
    for (size_t i = 0; i < result_members_.size(); ++i) {
      if (result_members_[i] == &member) results[i].open = open;
    }
  }

 private:
  void add_operand(const void* member, const ValueRule& rule) {
    members_.push_back(member);
    operands.push_back(rule);
  }
  void add_result(const void* member, const ValueRule& rule) {
    result_members_.push_back(member);
    results.push_back(rule);
  }

  std::vector<const void*> members_, result_members_;  // of operands, of results
};

// Writes a struct into the step of a plan. An optional attribute with the value of a new struct is left out, as are
// absent operands at the end.
class StepWriter {
 public:
  explicit StepWriter(PlanStep& step) : step_(step) {}

  void operand(std::string_view, const Operand& member, DtypeSet, ValueLayout = ValueLayout::row_major) {
    add(member.value);
  }
  void operand(std::string_view, const OptionalOperand& member, DtypeSet, ValueLayout = ValueLayout::row_major) {
    add(member.value);
  }
  void operand(std::string_view, const OperandList& member, DtypeSet, ValueLayout = ValueLayout::row_major) {
    for (const PlanValueId value : member.values) add(value);
  }
  void no_operand(std::string_view) { add(PlanValueId::none); }
  void result(std::string_view, const Result& member, DtypeSet, ValueLayout = ValueLayout::row_major) {
    step_.results.push_back(member.value);
  }
  void result(std::string_view, const OptionalResult& member, DtypeSet, ValueLayout = ValueLayout::row_major) {
    step_.results.push_back(member.value);
  }

  template <typename... Required>
  void integer(std::string_view name, int64_t value, int64_t, int64_t, Required...) {
    set(name, value);
  }
  template <typename... Required>
  void flag(std::string_view name, bool value, Required...) {
    set(name, int64_t{value});
  }
  template <typename... Required>
  void number(std::string_view name, double value, double, double, Required...) {
    set(name, value);
  }
  void any_number(std::string_view name, double value) { set(name, value); }
  template <typename... Required>
  void text(std::string_view name, const std::string& value, bool (*)(std::string_view), Required...) {
    set(name, value);
  }
  template <typename... Required>
  void integers(std::string_view name, const std::vector<int64_t>& value, int64_t, int64_t, Required...) {
    set(name, value);
  }
  void texts(std::string_view name, const std::vector<std::string>& value) { set(name, value); }

  template <typename Member>
  void reuses(const Member&) {}
  template <typename Member>
  void leaves_open(const Member&, std::initializer_list<int>) {}

  // Leaves out what `defaults`, the attributes of a new struct, has too, but for those that `rules` require.
  void finish(const PlanStep& defaults, std::span<const AttributeRule> rules);

 private:
  void add(PlanValueId value) { step_.operands.push_back(value); }
  void set(std::string_view name, Attribute value) { step_.attributes.set(std::string(name), std::move(value)); }

  PlanStep& step_;
};

// Reads a step of a plan that check_step() has let pass into a struct; what is left out keeps its value.
class StepReader {
 public:
  explicit StepReader(const PlanStep& step) : step_(step) {}

  void operand(std::string_view, Operand& member, DtypeSet, ValueLayout = ValueLayout::row_major) {
    member.value = next();
  }
  void operand(std::string_view, OptionalOperand& member, DtypeSet, ValueLayout = ValueLayout::row_major) {
    member.value = next();
  }
  void operand(std::string_view, OperandList& member, DtypeSet, ValueLayout = ValueLayout::row_major) {
    while (operand_ < step_.operands.size()) member.values.push_back(next());
  }
  void no_operand(std::string_view) { next(); }
  void result(std::string_view, Result& member, DtypeSet, ValueLayout = ValueLayout::row_major) {
    member.value = next_result();
  }
  void result(std::string_view, OptionalResult& member, DtypeSet, ValueLayout = ValueLayout::row_major) {
    member.value = next_result();
  }

  template <typename... Required>
  void integer(std::string_view name, int64_t& value, int64_t, int64_t, Required...) {
    value = step_.attributes.integer(name, value);
  }
  template <typename... Required>
  void flag(std::string_view name, bool& value, Required...) {
    value = step_.attributes.integer(name, value ? 1 : 0) != 0;
  }
  template <typename... Required>
  void number(std::string_view name, double& value, double, double, Required...) {
    value = step_.attributes.number(name, value);
  }
  void any_number(std::string_view name, double& value) { value = step_.attributes.number(name, value); }
  template <typename... Required>
  void text(std::string_view name, std::string& value, bool (*)(std::string_view), Required...) {
    value = step_.attributes.text(name, value);
  }
  template <typename... Required>
  void integers(std::string_view name, std::vector<int64_t>& value, int64_t, int64_t, Required...) {
    if (step_.attributes.find(name) != nullptr) value = step_.attributes.integers(name);
  }
  void texts(std::string_view name, std::vector<std::string>& value) {
    if (step_.attributes.find(name) != nullptr) value = step_.attributes.texts(name);
  }

  template <typename Member>
  void reuses(const Member&) {}
  template <typename Member>
  void leaves_open(const Member&, std::initializer_list<int>) {}

 private:
  PlanValueId next() { return take(step_.operands, operand_); }
  PlanValueId next_result() { return take(step_.results, result_); }
  static PlanValueId take(const std::vector<PlanValueId>& values, size_t& position) {
    return position < values.size() ? values[position++] : PlanValueId::none;
  }

  const PlanStep& step_;
  size_t operand_ = 0, result_ = 0;
};

template <typename Step>
const SchemaFields& schema_fields() {
  static const SchemaFields fields = [] {
    SchemaFields collected;
    const Step step;
    Step::describe(step, collected);
    return collected;
  }();
  return fields;
}

template <typename Step>
PlanStep write_step(const Step& step) {
  const auto write = [](const Step& from) {
    PlanStep made;
    made.kernel = Step::kKernel;
    StepWriter writer(made);
    Step::describe(from, writer);
    return made;
  };
  static const PlanStep defaults = write(Step());
  PlanStep made = write(step);
  StepWriter(made).finish(defaults, schema_fields<Step>().attributes);
  return made;
}

template <typename Step>
Step read_step(const PlanStep& from) {
  Step step;
  StepReader reader(from);
  Step::describe(step, reader);
  return step;
}

template <typename Step>
bool is_step(const PlanStep& step) {
  return step.kernel == Step::kKernel;
}

// Puts a changed struct back in the place of the step that it was read from, whose origins stay.
template <typename Step>
void replace_step(PlanStep& step, const Step& changed) {
  PlanStep made = write_step(changed);
  made.origins = std::move(step.origins);
  step = std::move(made);
}

}  // namespace lissome
