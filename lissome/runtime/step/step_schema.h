// What a plan may say of each kind of native step: operands, results and attributes by name, with what each may be.
// Plans come from untrusted files, so a step is held against its schema twice: check_step() before anything is bound
// (counts, dtypes, kinds, attributes), check_layouts() once sizes and strides are known. Binders then check only how
// sizes fit each other. One schema for every row of the step table.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "lissome/runtime/plan/plan.h"

namespace lissome {

// More than any machine has; small enough that sums of a few such products do not overflow.
inline constexpr int64_t kLargestBytes = int64_t{1} << 46;

class StepBinder;

class DtypeSet {
 public:
  constexpr DtypeSet(std::initializer_list<Dtype> dtypes) {
    for (const Dtype dtype : dtypes) bits_ |= uint32_t{1} << static_cast<int>(dtype);
  }
  static constexpr DtypeSet all() {
    DtypeSet set({});
    set.bits_ = ~uint32_t{0};
    return set;
  }
  constexpr bool holds(Dtype dtype) const { return (bits_ >> static_cast<int>(dtype) & 1) != 0; }
  std::string describe() const;  // "f32 or bf16"

 private:
  uint32_t bits_ = 0;
};

// How the elements of a value must lie.
enum class ValueLayout : uint8_t {
  row_major,      // dense, last dimension contiguous
  channels_last,  // dense, dimension 1 contiguous
  dense,          // either of the two: the binder knows which
  dense_rows,     // any strides, but the last dimension contiguous
  any,            // any strides inside the memory of the value
};

enum class Presence : uint8_t {
  required,
  optional,  // may be -1, or left out at the end
  absent,    // -1, where other steps of the family have a value
  repeated,  // the last rule of a list: any number of values from here on, none of them absent
};

struct ValueRule {
  std::string_view name;
  DtypeSet dtypes;
  ValueLayout layout = ValueLayout::row_major;
  Presence presence = Presence::required;
  uint32_t open = 0;  // bit d: nothing else of the step fixes the size of dimension d
};

enum class AttributeType : uint8_t { integer, number, text, integers, texts };

// An attribute that is left out has the binder's default unless it is required.
struct AttributeRule {
  std::string_view name;
  AttributeType type;
  bool required = false;
  // Of an integer, each of a list of integers, or a number; both ends included.
  int64_t least = INT64_MIN, most = INT64_MAX;
  double smallest = -std::numeric_limits<double>::infinity(), largest = std::numeric_limits<double>::infinity();
  bool nan_allowed = false;
  bool is_filled = false;                          // a list that must not be empty
  bool (*known)(std::string_view word) = nullptr;  // of a text: whether it is one of those allowed
};

constexpr AttributeRule integer_rule(std::string_view name, int64_t least, int64_t most, bool required = false) {
  return {.name = name, .type = AttributeType::integer, .required = required, .least = least, .most = most};
}
constexpr AttributeRule number_rule(std::string_view name, double smallest, double largest, bool required = false) {
  return {.name = name, .type = AttributeType::number, .required = required, .smallest = smallest, .largest = largest};
}
// Infinities and NaN too.
constexpr AttributeRule any_number_rule(std::string_view name) {
  return {.name = name, .type = AttributeType::number, .nan_allowed = true};
}
constexpr AttributeRule text_rule(std::string_view name, bool (*known)(std::string_view), bool required = false) {
  return {.name = name, .type = AttributeType::text, .required = required, .known = known};
}
constexpr AttributeRule integers_rule(std::string_view name, int64_t least, int64_t most, bool required = false) {
  return {.name = name, .type = AttributeType::integers, .required = required, .least = least, .most = most};
}
constexpr AttributeRule texts_rule(std::string_view name) {
  return {.name = name, .type = AttributeType::texts, .required = true};
}

struct StepSchema {
  std::span<const ValueRule> operands, results;
  std::span<const AttributeRule> attributes;
};

// Throws invalid_input naming the step and the rule: a value that is missing, too many, or of a dtype or kind that the
// step does not take; an attribute that is missing, unknown, of another type or out of range.
void check_step(const Plan& plan, int step);
}  // namespace lissome
