// Dimension expressions, kept in one normal form so that equal sizes compare equal: a sum is `c1*t1 + c2*t2 + constant`
// with its terms in alphabetical order, a product carries its constant in front, a division by a constant holds no
// part that divides evenly. Text is made once per expression; since it is read back to the same normal form, two
// expressions are equal exactly when their texts are.
#include "lissome/program/shape/dimension.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "lissome/base.h"

namespace lissome {

struct Dimension::Expression {
  Operation operation = Operation::constant;
  int64_t value = 0;  // of a constant
  std::string name;   // of a named dimension
  std::shared_ptr<const Expression> left, right;
  int depth = 1;
  std::string text;
};

namespace {

using Operation = Dimension::Operation;

constexpr int kMaxDepth = 200;       // evaluate() and print() walk by recursion
constexpr size_t kMaxText = 10'000;  // of one expression; the normal form of a longer one is no use to a reader

[[noreturn]] void throw_overflow(std::string_view what) {
  throw_error(ErrorKind::invalid_input, "a dimension overflows 64 bits: ", what);
}

int64_t add_checked(int64_t left, int64_t right) {
  int64_t result = 0;
  if (__builtin_add_overflow(left, right, &result)) throw_overflow("sum");
  return result;
}

int64_t multiply_checked(int64_t left, int64_t right) {
  int64_t result = 0;
  if (__builtin_mul_overflow(left, right, &result)) throw_overflow("product");
  return result;
}

int64_t floor_divide(int64_t left, int64_t right) {
  if (right == 0) throw_error(ErrorKind::invalid_input, "a dimension divides by zero: ", left, "//0");
  if (right == -1) return multiply_checked(left, -1);
  const int64_t quotient = left / right;
  return left % right != 0 && (left < 0) != (right < 0) ? quotient - 1 : quotient;
}

int64_t modulo(int64_t left, int64_t right) {
  if (right == 0) throw_error(ErrorKind::invalid_input, "a dimension divides by zero: ", left, " % 0");
  if (right == -1) return 0;
  const int64_t rest = left % right;
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

int64_t raise(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    throw_error(ErrorKind::invalid_input, "a dimension has a negative exponent: ", base, "**", exponent);
  }
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) result = multiply_checked(result, base);  // overflows by step 63
  return result;
}

int64_t apply(Operation operation, int64_t left, int64_t right) {
  switch (operation) {
    case Operation::add: return add_checked(left, right);
    case Operation::multiply: return multiply_checked(left, right);
    case Operation::floor_divide: return floor_divide(left, right);
    case Operation::modulo: return modulo(left, right);
    case Operation::power: return raise(left, right);
    case Operation::maximum: return std::max(left, right);
    case Operation::minimum: return std::min(left, right);
    case Operation::constant:
    case Operation::name: break;
  }
  throw_error(ErrorKind::internal, "a constant or a name takes no operands");
}

bool is_identifier(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !is_letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

}  // namespace

// The arithmetic of the normal form. Nested so that it sees Expression, which no header shows.
struct DimensionAlgebra {
  using Expression = Dimension::Expression;
  using Pointer = std::shared_ptr<const Expression>;

  // constant + sum of coefficient * term; terms are neither constants nor sums and carry no coefficient.
  struct Sum {
    std::vector<std::pair<int64_t, Pointer>> terms;
    int64_t constant = 0;
  };
  // coefficient * product of factors, which are no products.
  struct Product {
    int64_t coefficient = 1;
    std::vector<Pointer> factors;
  };

  static Pointer make_constant(int64_t value) {
    auto made = std::make_shared<Expression>();
    made->value = value;
    made->text = std::to_string(value);
    return made;
  }

  static Pointer make(Operation operation, const Pointer& left, const Pointer& right) {
    auto made = std::make_shared<Expression>();
    made->operation = operation;
    made->left = left;
    made->right = right;
    made->depth = 1 + std::max(left->depth, right->depth);
    made->text = make_text(operation, *left, *right);
    if (made->depth > kMaxDepth || made->text.size() > kMaxText) {
      throw_error(ErrorKind::invalid_input, "a dimension is too long an expression: ", made->text.substr(0, 60),
                  "...; at most ", kMaxDepth, " levels and ", kMaxText, " characters are allowed");
    }
    return made;
  }

  // How tightly an expression binds: sum 1, product and division 2, power 3, name and number 4.
  static int binding_of(const Expression& expression) {
    switch (expression.operation) {
      case Operation::add: return 1;
      case Operation::multiply:
      case Operation::floor_divide:
      case Operation::modulo: return expression.text[0] == '-' ? 1 : 2;
      case Operation::power: return 3;
      case Operation::constant: return expression.value < 0 ? 1 : 4;
      default: return 4;
    }
  }

  static std::string wrap(const Expression& expression, int binding) {
    return binding_of(expression) < binding ? "(" + expression.text + ")" : expression.text;
  }

  static std::string make_text(Operation operation, const Expression& left, const Expression& right) {
    switch (operation) {
      case Operation::add:
        if (right.text[0] == '-') return left.text + " - " + right.text.substr(1);
        return left.text + " + " + right.text;
      case Operation::multiply: {
        const bool coefficient = left.operation == Operation::constant;
        if (coefficient) {
          return (left.value == -1 ? "-" : left.text + "*") +
                 (right.operation == Operation::multiply ? right.text : wrap(right, 3));
        }
        return (left.operation == Operation::multiply ? left.text : wrap(left, 3)) + "*" + wrap(right, 3);
      }
      case Operation::floor_divide: return wrap(left, 3) + "//" + wrap(right, 4);
      case Operation::modulo: return wrap(left, 3) + " % " + wrap(right, 4);
      case Operation::power: return wrap(left, 4) + "**" + wrap(right, 4);
      case Operation::maximum: return "Max(" + left.text + ", " + right.text + ")";
      case Operation::minimum: return "Min(" + left.text + ", " + right.text + ")";
      default: throw_error(ErrorKind::internal, "a constant or a name takes no operands");
    }
  }

  static Product split_product(const Pointer& expression) {
    Product product;
    Pointer rest = expression;
    if (rest->operation == Operation::multiply && rest->left->operation == Operation::constant) {
      product.coefficient = rest->left->value;
      rest = rest->right;
    }
    const auto take = [&product](const Pointer& factor) {
      const int64_t content = find_content(factor);
      product.coefficient = multiply_checked(product.coefficient, content);
      product.factors.push_back(content == 1 ? factor : divide_sum(factor, content));
    };
    for (; rest->operation == Operation::multiply; rest = rest->left) take(rest->right);
    take(rest);
    return product;
  }

  // What every part of a sum can be divided by, with the sign of its first term: 2 for 2*n + 4. Taken out of factors,
  // so that 2*(n + 2)*m and (2*n + 4)*m are one.
  static int64_t find_content(const Pointer& factor) {
    if (factor->operation != Operation::add) return 1;
    const Sum sum = split_sum(factor);
    int64_t content = 0;
    const auto join = [&content](int64_t part) { content = part == INT64_MIN ? 1 : std::gcd(content, part); };
    join(sum.constant);
    for (const auto& term : sum.terms) join(term.first);
    const auto first = std::min_element(sum.terms.begin(), sum.terms.end(),
                                        [](const auto& a, const auto& b) { return a.second->text < b.second->text; });
    return first->first < 0 && first->first != INT64_MIN ? -content : content;
  }

  static Pointer divide_sum(const Pointer& expression, int64_t divisor) {
    Sum sum = split_sum(expression);
    for (auto& term : sum.terms) term.first = lissome::floor_divide(term.first, divisor);
    sum.constant = lissome::floor_divide(sum.constant, divisor);
    return join_sum(std::move(sum));
  }

  static Pointer join_factors(std::vector<Pointer> factors) {
    std::sort(factors.begin(), factors.end(), [](const auto& a, const auto& b) { return a->text < b->text; });
    Pointer result = factors[0];
    for (size_t i = 1; i < factors.size(); ++i) result = make(Operation::multiply, result, factors[i]);
    return result;
  }

  static Sum split_sum(const Pointer& expression) {
    Sum sum;
    Pointer rest = expression;
    const auto take = [&sum](const Pointer& part) {
      if (part->operation == Operation::constant) {
        sum.constant = add_checked(sum.constant, part->value);
      } else if (part->operation == Operation::multiply && part->left->operation == Operation::constant) {
        sum.terms.emplace_back(part->left->value, part->right);
      } else {
        sum.terms.emplace_back(1, part);
      }
    };
    for (; rest->operation == Operation::add; rest = rest->left) take(rest->right);
    take(rest);
    return sum;
  }

  static Pointer join_sum(Sum sum) {
    std::sort(sum.terms.begin(), sum.terms.end(),
              [](const auto& a, const auto& b) { return a.second->text < b.second->text; });
    std::vector<std::pair<int64_t, Pointer>> merged;
    for (auto& term : sum.terms) {
      if (!merged.empty() && merged.back().second->text == term.second->text) {
        merged.back().first = add_checked(merged.back().first, term.first);
      } else {
        merged.push_back(std::move(term));
      }
    }
    Pointer result;
    for (const auto& [coefficient, term] : merged) {
      if (coefficient == 0) continue;
      Pointer part = coefficient == 1 ? term : make(Operation::multiply, make_constant(coefficient), term);
      result = result ? make(Operation::add, result, part) : part;
    }
    if (!result) return make_constant(sum.constant);
    return sum.constant == 0 ? result : make(Operation::add, result, make_constant(sum.constant));
  }

  static Pointer add(const Pointer& left, const Pointer& right) {
    Sum sum = split_sum(left);
    Sum other = split_sum(right);
    sum.constant = add_checked(sum.constant, other.constant);
    sum.terms.insert(sum.terms.end(), other.terms.begin(), other.terms.end());
    return join_sum(std::move(sum));
  }

  static Pointer scale(const Pointer& expression, int64_t factor) {
    Sum sum = split_sum(expression);
    for (auto& term : sum.terms) term.first = multiply_checked(term.first, factor);
    sum.constant = multiply_checked(sum.constant, factor);
    return join_sum(std::move(sum));
  }

  static Pointer multiply(const Pointer& left, const Pointer& right) {
    if (left->operation == Operation::constant) return scale(right, left->value);
    if (right->operation == Operation::constant) return scale(left, right->value);
    Product product = split_product(left);
    Product other = split_product(right);
    product.factors.insert(product.factors.end(), other.factors.begin(), other.factors.end());
    return scale(join_factors(std::move(product.factors)), multiply_checked(product.coefficient, other.coefficient));
  }

  // left / right where every term of left holds right's factors; null when one does not.
  static Pointer divide_evenly(const Pointer& left, const Pointer& right) {
    if (right->operation == Operation::constant || right->operation == Operation::add) return nullptr;
    const Product divisor = split_product(right);
    Sum sum = split_sum(left);
    if (sum.constant != 0 || divisor.coefficient == 0) return nullptr;
    Sum quotient;
    for (const auto& [coefficient, term] : sum.terms) {
      if (coefficient % divisor.coefficient != 0) return nullptr;
      std::vector<Pointer> factors = split_product(term).factors;
      for (const Pointer& wanted : divisor.factors) {
        const auto found = std::find_if(factors.begin(), factors.end(),
                                        [&](const Pointer& factor) { return factor->text == wanted->text; });
        if (found == factors.end()) return nullptr;
        factors.erase(found);
      }
      const int64_t rest = coefficient / divisor.coefficient;
      if (factors.empty()) {
        quotient.constant = add_checked(quotient.constant, rest);
      } else {
        quotient.terms.emplace_back(rest, join_factors(std::move(factors)));
      }
    }
    return join_sum(std::move(quotient));
  }

  // Cuts a sum into the part that `divisor` divides evenly (returned as the quotient) and the rest.
  static std::pair<Sum, Sum> split_by(const Pointer& expression, int64_t divisor) {
    Sum sum = split_sum(expression), quotient, rest;
    for (auto& [coefficient, term] : sum.terms) {
      if (modulo(coefficient, divisor) == 0) {
        quotient.terms.emplace_back(lissome::floor_divide(coefficient, divisor), term);
      } else {
        rest.terms.emplace_back(coefficient, term);
      }
    }
    quotient.constant = lissome::floor_divide(sum.constant, divisor);
    rest.constant = modulo(sum.constant, divisor);
    return {std::move(quotient), std::move(rest)};
  }

  static Pointer floor_divide(const Pointer& left, const Pointer& right) {
    if (right->operation != Operation::constant) {
      const Pointer even = divide_evenly(left, right);
      return even ? even : make(Operation::floor_divide, left, right);
    }
    auto [quotient, rest] = split_by(left, right->value);
    if (!rest.terms.empty()) {
      quotient.terms.emplace_back(1, make(Operation::floor_divide, join_sum(std::move(rest)), right));
    } else {
      quotient.constant = add_checked(quotient.constant, lissome::floor_divide(rest.constant, right->value));
    }
    return join_sum(std::move(quotient));
  }

  static Pointer take_modulo(const Pointer& left, const Pointer& right) {
    if (right->operation != Operation::constant) return make(Operation::modulo, left, right);
    Sum rest = split_by(left, right->value).second;
    if (rest.terms.empty()) return make_constant(rest.constant);
    return make(Operation::modulo, join_sum(std::move(rest)), right);
  }

  static Pointer raise_power(const Pointer& base, const Pointer& exponent) {
    if (exponent->operation != Operation::constant) return make(Operation::power, base, exponent);
    if (exponent->value < 0) {
      throw_error(ErrorKind::invalid_input, "a dimension has a negative exponent: ", base->text, "**", exponent->text);
    }
    if (exponent->value == 0) return make_constant(1);
    return exponent->value == 1 ? base : make(Operation::power, base, exponent);
  }

  static Pointer choose(Operation operation, Pointer left, Pointer right) {
    if (left->text == right->text) return left;
    const bool left_constant = left->operation == Operation::constant;
    const bool right_constant = right->operation == Operation::constant;
    if (left_constant != right_constant ? right_constant : right->text < left->text) std::swap(left, right);
    return make(operation, left, right);
  }

  static Pointer combine(Operation operation, const Pointer& left, const Pointer& right) {
    if (left->operation == Operation::constant && right->operation == Operation::constant) {
      return make_constant(apply(operation, left->value, right->value));
    }
    switch (operation) {
      case Operation::add: return add(left, right);
      case Operation::multiply: return multiply(left, right);
      case Operation::floor_divide: return floor_divide(left, right);
      case Operation::modulo: return take_modulo(left, right);
      case Operation::power: return raise_power(left, right);
      case Operation::maximum:
      case Operation::minimum: return choose(operation, left, right);
      default: throw_error(ErrorKind::internal, "a constant or a name takes no operands");
    }
  }

  static std::optional<int64_t> evaluate(const Expression& expression, const DimensionBindings& bindings) {
    if (expression.operation == Operation::constant) return expression.value;
    if (expression.operation == Operation::name) {
      const auto found = bindings.find(expression.name);
      return found == bindings.end() ? std::nullopt : std::optional(found->second);
    }
    const auto left = evaluate(*expression.left, bindings);
    const auto right = evaluate(*expression.right, bindings);
    if (!left || !right) return std::nullopt;
    return apply(expression.operation, *left, *right);
  }

  static void collect_names(const Expression& expression, std::set<std::string>& names) {
    if (expression.operation == Operation::name) names.insert(expression.name);
    if (expression.left) collect_names(*expression.left, names);
    if (expression.right) collect_names(*expression.right, names);
  }
};

Dimension::Dimension(int64_t constant) : expression_(DimensionAlgebra::make_constant(constant)) {}

Dimension Dimension::named(std::string name) {
  if (!is_identifier(name)) {
    throw_error(ErrorKind::invalid_input, "'", name,
                "' is no name for a dimension: letters, digits, _ and . are allowed, a letter first");
  }
  auto made = std::make_shared<Expression>();
  made->operation = Operation::name;
  made->name = name;
  made->text = std::move(name);
  Dimension dimension;
  dimension.expression_ = std::move(made);
  return dimension;
}

Dimension Dimension::combine(Operation operation, Dimension left, Dimension right) {
  Dimension dimension;
  dimension.expression_ = DimensionAlgebra::combine(operation, left.expression_, right.expression_);
  return dimension;
}

Dimension::Operation Dimension::operation() const { return expression_->operation; }

std::optional<int64_t> Dimension::constant() const {
  return expression_->operation == Operation::constant ? std::optional(expression_->value) : std::nullopt;
}

const std::string& Dimension::name() const {
  LISSOME_CHECK(expression_->operation == Operation::name, "dimension ", expression_->text, " is not a plain name");
  return expression_->name;
}

std::pair<Dimension, Dimension> Dimension::operands() const {
  LISSOME_CHECK(expression_->left && expression_->right, "dimension ", expression_->text, " is no operation");
  std::pair<Dimension, Dimension> operands;
  operands.first.expression_ = expression_->left;
  operands.second.expression_ = expression_->right;
  return operands;
}

std::optional<int64_t> Dimension::try_evaluate(const DimensionBindings& bindings) const {
  return DimensionAlgebra::evaluate(*expression_, bindings);
}

int64_t Dimension::evaluate(const DimensionBindings& bindings) const {
  const auto value = try_evaluate(bindings);
  LISSOME_CHECK(value.has_value(), "dimension ", expression_->text, " has a name without a size");
  return *value;
}

std::vector<std::string> Dimension::names() const {
  std::set<std::string> names;
  DimensionAlgebra::collect_names(*expression_, names);
  return {names.begin(), names.end()};
}

std::string Dimension::print() const { return expression_->text; }

bool Dimension::operator==(const Dimension& other) const {
  return expression_ == other.expression_ || expression_->text == other.expression_->text;
}

}  // namespace lissome
