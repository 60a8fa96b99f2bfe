// A size that may depend on named dimensions: 64, batch, 2*sequence + 1. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lissome {

// A named dimension of a program's inputs and the sizes that it may take, both ends included.
struct NamedDimension {
  std::string name;
  int64_t minimum = 0;
  int64_t maximum = INT64_MAX;
};

using DimensionBindings = std::map<std::string, int64_t, std::less<>>;

// An immutable integer expression, simplified to a normal form (n + n is 2*n, (4*n + 6)//2 is 2*n + 3); copies are
// cheap. Division is Python's floor division, modulo is never negative for a positive divisor. Arithmetic is
// overflow-checked (invalid_input).
class Dimension {
 public:
  enum class Operation : uint8_t { constant, name, add, multiply, floor_divide, modulo, power, maximum, minimum };

  Dimension(int64_t constant = 0);  // NOLINT: an integer is a dimension
  static Dimension named(std::string name);
  static Dimension combine(Operation operation, Dimension left, Dimension right);  // simplifies constants
  // "2*sequence + 1", "(n + 3)//4", "Max(1, n)", sympy's spelling in .pt2 files included; invalid_input otherwise.
  static Dimension parse(std::string_view text);

  Operation operation() const;
  std::optional<int64_t> constant() const;
  const std::string& name() const;                            // of a named dimension
  std::pair<Dimension, Dimension> operands() const;           // of an operation
  int64_t evaluate(const DimensionBindings& bindings) const;  // internal error when a name is unbound
  std::optional<int64_t> try_evaluate(const DimensionBindings& bindings) const;
  std::vector<std::string> names() const;
  std::string print() const;                      // parse(print()) gives an equal expression
  bool operator==(const Dimension& other) const;  // of the normal forms

 private:
  struct Expression;
  friend struct DimensionAlgebra;
  std::shared_ptr<const Expression> expression_;
};

}  // namespace lissome
