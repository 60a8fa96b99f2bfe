// Reads the text of a size: our own spelling, which is Python's ("(n + 3)//4", "Max(1, n)"), and sympy's, in which .pt2
// files write it ("Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))"). The text may come
// from a hostile file: length and depth are bounded.
#include <charconv>

#include "lissome/base.h"
#include "lissome/program/shape/dimension.h"

namespace lissome {
namespace {

using Operation = Dimension::Operation;

constexpr size_t kMaxParsedText = 20'000;
constexpr int kMaxParsedDepth = 100;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Function {
  std::string_view name;
  Operation operation;
};

// Of two operands, or more where the operation is associative.
constexpr Function kFunctions[] = {
    {"Add", Operation::add},
    {"Mul", Operation::multiply},
    {"Pow", Operation::power},
    {"PowByNatural", Operation::power},
    {"Max", Operation::maximum},
    {"Min", Operation::minimum},
    {"max", Operation::maximum},
    {"min", Operation::minimum},
    {"FloorDiv", Operation::floor_divide},
    {"CleanDiv", Operation::floor_divide},
    {"Mod", Operation::modulo},
    {"PythonMod", Operation::modulo},
};

class DimensionReader {
 public:
  explicit DimensionReader(std::string_view text) : text_(text) {}

  Dimension read() {
    if (text_.size() > kMaxParsedText) {
      throw_error(ErrorKind::invalid_input, "a dimension of ", text_.size(), " characters; at most ", kMaxParsedText,
                  " are allowed");
    }
    Dimension result = read_sum();
    skip_spaces();
    if (at_ != text_.size()) refuse("an operator or the end");
    return result;
  }

 private:
  [[noreturn]] void refuse(std::string_view allowed) const {
    throw_error(ErrorKind::invalid_input, "dimension '", text_.substr(0, 80), text_.size() > 80 ? "..." : "",
                "' at character ", at_ + 1, ": ",
                at_ < text_.size() ? "'" + std::string(1, text_[at_]) + "'" : std::string("the end"), " where only ",
                allowed, " may stand");
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool take(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!take(token)) refuse("'" + std::string(token) + "'");
  }

  Dimension read_sum() {
    if (++depth_ > kMaxParsedDepth) {
      throw_error(ErrorKind::invalid_input, "a dimension is nested deeper than ", kMaxParsedDepth, " levels");
    }
    Dimension result = read_product();
    while (true) {
      if (take("+")) {
        result = Dimension::combine(Operation::add, result, read_product());
      } else if (take("-")) {
        result =
            Dimension::combine(Operation::add, result, Dimension::combine(Operation::multiply, -1, read_product()));
      } else {
        --depth_;
        return result;
      }
    }
  }

  Dimension read_product() {
    if (take("-")) {  // as in Python, -n//2 is (-n)//2 and -2**n is -(2**n)
      skip_spaces();
      if (const size_t start = at_; start < text_.size() && is_digit(text_[start])) {
        Dimension number = read_number(true);  // the smallest number has no positive counterpart
        if (!take("**")) return read_rest_of_product(number);
        at_ = start;
      }
      return read_rest_of_product(Dimension::combine(Operation::multiply, -1, read_power()));
    }
    return read_rest_of_product(read_power());
  }

  Dimension read_rest_of_product(Dimension result) {
    while (true) {
      if (take("//")) {
        result = Dimension::combine(Operation::floor_divide, result, read_power());
      } else if (take("*")) {
        result = Dimension::combine(Operation::multiply, result, read_power());
      } else if (take("%")) {
        result = Dimension::combine(Operation::modulo, result, read_power());
      } else {
        return result;
      }
    }
  }

  Dimension read_power() {
    Dimension base = read_atom();
    if (!take("**")) return base;
    return Dimension::combine(Operation::power, base, read_atom());
  }

  Dimension read_atom() {
    if (take("(")) {
      Dimension result = read_sum();
      expect(")");
      return result;
    }
    if (at_ < text_.size() && is_digit(text_[at_])) return read_number(false);
    const std::string_view word = read_word();
    if (at_ < text_.size() && text_[at_] == '(') return read_call(word);
    return Dimension::named(std::string(word));
  }

  Dimension read_number(bool negative) {
    const size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    const std::string digits = (negative ? "-" : "") + std::string(text_.substr(start, at_ - start));
    int64_t value = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (failure != std::errc() || end != digits.data() + digits.size()) {
      throw_error(ErrorKind::invalid_input, "dimension '", digits.substr(0, 80), "' does not fit 64 bits");
    }
    return value;
  }

  std::string_view read_word() {
    skip_spaces();
    const size_t start = at_;
    if (at_ < text_.size() && !is_letter(text_[at_])) refuse("a number, a name or '('");
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    if (start == at_) refuse("a number, a name or '('");
    return text_.substr(start, at_ - start);
  }

  // Symbol('s77', positive=True, integer=True)
  Dimension read_symbol() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') refuse("a quoted name");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) refuse("a quoted name");
    const std::string name(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    while (take(",")) {
      read_word();
      expect("=");
      read_word();
    }
    expect(")");
    return Dimension::named(name);
  }

  // math.ceil(n / 2), of which sizes know the floor alone.
  Dimension read_rounded(bool up) {
    const Dimension sign(up ? -1 : 1);
    const Dimension dividend = Dimension::combine(Operation::multiply, sign, read_product());
    expect("/");
    const Dimension floor = Dimension::combine(Operation::floor_divide, dividend, read_power());
    expect(")");
    return Dimension::combine(Operation::multiply, sign, floor);
  }

  // math.trunc(2.0*torch.sym_float(n)): what an upsampling by a whole number gives.
  Dimension read_scaled() {
    skip_spaces();
    if (at_ >= text_.size() || !is_digit(text_[at_])) refuse("a number");
    const Dimension factor = read_number(false);
    expect(".");
    while (at_ < text_.size() && text_[at_] == '0') ++at_;
    expect("*");
    if (read_word() != "torch.sym_float") refuse("torch.sym_float");
    expect("(");
    const Dimension size = read_sum();
    expect(")");
    expect(")");
    return Dimension::combine(Operation::multiply, factor, size);
  }

  Dimension read_call(std::string_view word) {
    ++at_;  // the bracket
    if (const size_t dot = word.rfind('.'); dot != std::string_view::npos) word.remove_prefix(dot + 1);
    if (word == "Symbol") return read_symbol();
    if (word == "ceil" || word == "floor") return read_rounded(word == "ceil");
    if (word == "trunc") return read_scaled();
    if (word == "Integer") {
      const bool negative = take("-");
      skip_spaces();
      if (at_ >= text_.size() || !is_digit(text_[at_])) refuse("a number");
      Dimension result = read_number(negative);
      expect(")");
      return result;
    }
    const Function* function = nullptr;
    for (const Function& candidate : kFunctions) {
      if (candidate.name == word) function = &candidate;
    }
    if (function == nullptr) {
      throw_error(ErrorKind::invalid_input, "dimension '", text_.substr(0, 80), "': unknown function '", word,
                  "'; known are Max, Min, Mod, FloorDiv, Add, Mul, Pow");
    }
    Dimension result = read_sum();
    int operands = 1;
    for (; take(","); ++operands) result = Dimension::combine(function->operation, result, read_sum());
    expect(")");
    const Operation operation = function->operation;
    const bool associative = operation == Operation::add || operation == Operation::multiply ||
                             operation == Operation::maximum || operation == Operation::minimum;
    if (operands < 2 || (operands > 2 && !associative)) {
      throw_error(ErrorKind::invalid_input, "dimension '", text_.substr(0, 80), "': ", word, " with ", operands,
                  " operands; 2 are allowed");
    }
    return result;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Dimension Dimension::parse(std::string_view text) { return DimensionReader(text).read(); }

}  // namespace lissome
