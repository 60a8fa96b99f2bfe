// Precedence climbing into postfix order, and a stack machine with checked arithmetic.
#include "lissome/runtime/plan/size_expression.h"

#include <array>
#include <charconv>

#include "lissome/base.h"

namespace lissome {

class SizeExpressionReader {
 public:
  SizeExpressionReader(std::string_view text, std::span<const PlanDimension> dimensions)
      : text_(text), dimensions_(dimensions) {}

  SizeExpression read() {
    read_sum(0);
    skip_spaces();
    if (at_ != text_.size()) refuse("an operator");
    result_.text_ = std::string(text_);
    return std::move(result_);
  }

 private:
  using Operation = SizeExpression::Operation;
  static constexpr int kDeepest = 64;

  [[noreturn]] void refuse(std::string_view wanted) const {
    throw_error(ErrorKind::invalid_input, "size ", quote(text_), ": ", wanted, " should stand at position ", at_);
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    if (word == "*" && text_.substr(at_).starts_with("**")) return false;
    at_ += word.size();
    return true;
  }
  void add(Operation operation, int64_t number = 0) { result_.postfix_.push_back({operation, number}); }

  void read_sum(int depth) {
    if (depth > kDeepest) refuse("a simpler expression");
    read_product(depth);
    while (true) {
      if (accept("+")) {
        read_product(depth);
        add(Operation::add);
      } else if (accept("-")) {
        read_product(depth);
        add(Operation::subtract);
      } else {
        return;
      }
    }
  }
  void read_product(int depth) {
    read_signed(depth);
    while (true) {
      if (accept("//")) {
        read_signed(depth);
        add(Operation::floor_divide);
      } else if (accept("%")) {
        read_signed(depth);
        add(Operation::modulo);
      } else if (accept("*")) {
        read_signed(depth);
        add(Operation::multiply);
      } else {
        return;
      }
    }
  }
  void read_signed(int depth) {
    if (depth > kDeepest) refuse("a simpler expression");
    if (accept("-")) {
      add(Operation::constant, 0);
      read_signed(depth + 1);
      add(Operation::subtract);
      return;
    }
    read_atom(depth);
    if (accept("**")) {
      read_signed(depth + 1);
      add(Operation::power);
    }
  }
  void read_atom(int depth) {
    skip_spaces();
    if (accept("(")) {
      read_sum(depth + 1);
      if (!accept(")")) refuse("')'");
      return;
    }
    if (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      int64_t number = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
      if (error != std::errc()) refuse("a number of 63 bits");
      at_ = static_cast<size_t>(end - text_.data());
      add(Operation::constant, number);
      return;
    }
    const std::string_view name = read_name();
    if (name.empty()) refuse("a number, a name or '('");
    skip_spaces();
    if ((name == "Max" || name == "Min") && at_ < text_.size() && text_[at_] == '(') {
      read_extreme(name == "Max" ? Operation::maximum : Operation::minimum, depth);
      return;
    }
    int64_t position = -1;
    for (size_t i = 0; i < dimensions_.size(); ++i) {
      if (dimensions_[i].name == name) position = static_cast<int64_t>(i);
    }
    add(Operation::name, position);
  }
  void read_extreme(Operation operation, int depth) {
    accept("(");
    read_sum(depth + 1);
    while (accept(",")) {
      read_sum(depth + 1);
      add(operation);
    }
    if (!accept(")")) refuse("')'");
  }
  std::string_view read_name() {
    const size_t first = at_;
    const auto in_name = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    };
    while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    return text_.substr(first, at_ - first);
  }

  std::string_view text_;
  std::span<const PlanDimension> dimensions_;
  size_t at_ = 0;
  SizeExpression result_ = make_empty();
  static SizeExpression make_empty() {
    SizeExpression empty;
    empty.postfix_.clear();
    return empty;
  }
};

namespace {

std::optional<int64_t> raise(int64_t base, int64_t exponent) {
  if (exponent < 0 || exponent > 64) return std::nullopt;
  int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
  }
  return result;
}

}  // namespace

SizeExpression::SizeExpression(int64_t constant)
    : postfix_{{Operation::constant, constant}}, text_(std::to_string(constant)) {}

SizeExpression SizeExpression::parse(std::string_view text, std::span<const PlanDimension> dimensions) {
  return SizeExpressionReader(text, dimensions).read();
}

std::optional<int64_t> SizeExpression::constant() const {
  if (postfix_.size() == 1 && postfix_[0].operation == Operation::constant) return postfix_[0].number;
  return std::nullopt;
}

int SizeExpression::single_dimension() const {
  int found = -1;
  for (const Token& token : postfix_) {
    if (token.operation != Operation::name) continue;
    if (token.number < 0 || (found >= 0 && found != token.number)) return -1;
    found = static_cast<int>(token.number);
  }
  return found;
}

std::optional<int64_t> SizeExpression::evaluate(const DimensionValues& dimensions) const {
  std::array<int64_t, 96> stack;
  size_t depth = 0;
  for (const Token& token : postfix_) {
    if (token.operation == Operation::constant || token.operation == Operation::name) {
      int64_t number = token.number;
      if (token.operation == Operation::name) {
        if (number < 0 || dimensions[static_cast<size_t>(number)] < 0) return std::nullopt;
        number = dimensions[static_cast<size_t>(number)];
      }
      if (depth == stack.size()) return std::nullopt;
      stack[depth++] = number;
      continue;
    }
    const int64_t right = stack[--depth];
    int64_t& left = stack[depth - 1];
    bool overflow = false;
    switch (token.operation) {
      case Operation::add: overflow = __builtin_add_overflow(left, right, &left); break;
      case Operation::subtract: overflow = __builtin_sub_overflow(left, right, &left); break;
      case Operation::multiply: overflow = __builtin_mul_overflow(left, right, &left); break;
      case Operation::floor_divide:
      case Operation::modulo: {
        if (right == 0 || (left == INT64_MIN && right == -1)) return std::nullopt;
        int64_t quotient = left / right;
        int64_t rest = left % right;
        if (rest != 0 && (rest < 0) != (right < 0)) --quotient, rest += right;
        left = token.operation == Operation::modulo ? rest : quotient;
        break;
      }
      case Operation::power: {
        const auto power = raise(left, right);
        if (!power) return std::nullopt;
        left = *power;
        break;
      }
      case Operation::maximum: left = left > right ? left : right; break;
      case Operation::minimum: left = left < right ? left : right; break;
      default: return std::nullopt;
    }
    if (overflow) return std::nullopt;
  }
  return stack[0];
}

}  // namespace lissome
