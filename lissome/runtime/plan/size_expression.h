// A size that depends on the named dimensions of a plan: 64, batch, 2*sequence + 1, (n + 3)//4, Max(1, n). The
// runtime's own small reader of what the program module prints, evaluated whenever a plan is bound to input sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lissome {

// A named dimension and the sizes that it may take, both ends included.
struct PlanDimension {
  std::string name;
  int64_t minimum = 0;
  int64_t maximum = INT64_MAX;
};

// By position in Plan::dimensions; negative where unbound.
using DimensionValues = std::vector<int64_t>;

class SizeExpression {
 public:
  SizeExpression(int64_t constant = 0);  // NOLINT: a number is a size
  // Names that are not among `dimensions` make the expression unknown forever. Throws invalid_input.
  static SizeExpression parse(std::string_view text, std::span<const PlanDimension> dimensions);

  // Nothing when a name is unbound, or when the arithmetic overflows or divides by zero.
  std::optional<int64_t> evaluate(const DimensionValues& dimensions) const;
  std::optional<int64_t> constant() const;
  // The single dimension that it depends on, -1 when there is none or several.
  int single_dimension() const;
  const std::string& text() const { return text_; }

 private:
  enum class Operation : uint8_t {
    constant,
    name,
    add,
    subtract,
    multiply,
    floor_divide,
    modulo,
    power,
    maximum,
    minimum
  };
  struct Token {
    Operation operation;
    int64_t number;  // the constant, or the position of the name
  };
  friend class SizeExpressionReader;

  std::vector<Token> postfix_;
  std::string text_;
};

}  // namespace lissome
