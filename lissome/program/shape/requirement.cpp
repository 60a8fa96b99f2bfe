// Truth as a number that is at least 0: a < b is b - a - 1, `and` the minimum of both sides, `or` the maximum, `not`
// the negative minus 1. So a requirement is a size like any other, and is evaluated as one.
#include "lissome/program/shape/requirement.h"

#include <array>

#include "lissome/base.h"

namespace lissome {
namespace {

using Operation = Dimension::Operation;

constexpr int kMostNested = 50;
constexpr size_t kMostText = 20'000;

Dimension add(const Dimension& a, const Dimension& b) { return Dimension::combine(Operation::add, a, b); }
Dimension negate(const Dimension& a) { return Dimension::combine(Operation::multiply, -1, a); }
Dimension both(const Dimension& a, const Dimension& b) { return Dimension::combine(Operation::minimum, a, b); }
Dimension either(const Dimension& a, const Dimension& b) { return Dimension::combine(Operation::maximum, a, b); }
Dimension deny(const Dimension& a) { return add(negate(a), -1); }
Dimension at_most(const Dimension& a, const Dimension& b) { return add(b, negate(a)); }
Dimension are_equal(const Dimension& a, const Dimension& b) { return both(at_most(a, b), at_most(b, a)); }

constexpr std::array<std::string_view, 6> kComparisons = {"==", "!=", "<=", ">=", "<", ">"};

Dimension compare(std::string_view comparison, const Dimension& a, const Dimension& b) {
  if (comparison == "==") return are_equal(a, b);
  if (comparison == "!=") return deny(are_equal(a, b));
  if (comparison == "<=") return at_most(a, b);
  if (comparison == ">=") return at_most(b, a);
  return comparison == "<" ? deny(at_most(b, a)) : deny(at_most(a, b));
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// A word or sign outside of brackets, and where it stands; npos where there is none.
struct Found {
  size_t at = std::string_view::npos;
  std::string_view word;
};

template <size_t Count>
Found find_outside(std::string_view text, const std::array<std::string_view, Count>& words) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (depth != 0) continue;
    for (const std::string_view word : words) {
      if (text.substr(i).starts_with(word)) return {i, word};
    }
  }
  return {};
}

// Whether the bracket that opens the text closes it.
bool is_bracketed(std::string_view text) {
  if (text.empty() || text.front() != '(' || text.back() != ')') return false;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return i + 1 == text.size();
  }
  return false;
}

Dimension read(std::string_view text, int depth);

Dimension read_sides(std::string_view text, const Found& found, int depth,
                     Dimension (*combine)(const Dimension&, const Dimension&)) {
  const std::string_view rest = text.substr(found.at + found.word.size());
  return combine(read(text.substr(0, found.at), depth), read(rest, depth));
}

// a < b <= c is a < b and b <= c.
Dimension read_comparisons(std::string_view text, Found found) {
  Dimension left = Dimension::parse(trim(text.substr(0, found.at)));
  std::optional<Dimension> all;
  while (found.at != std::string_view::npos) {
    text = text.substr(found.at + found.word.size());
    const Found next = find_outside(text, kComparisons);
    const Dimension right = Dimension::parse(trim(text.substr(0, next.at)));
    const Dimension one = compare(found.word, left, right);
    all = all ? both(*all, one) : one;
    left = right;
    found = next;
  }
  return *all;
}

Dimension read(std::string_view text, int depth) {
  if (depth > kMostNested)
    throw_error(ErrorKind::invalid_input, "a requirement is nested deeper than ", kMostNested, " levels");
  text = trim(text);
  constexpr std::array<std::string_view, 1> kOr = {" or "}, kAnd = {" and "};
  if (const Found found = find_outside(text, kOr); !found.word.empty())
    return read_sides(text, found, depth + 1, either);
  if (const Found found = find_outside(text, kAnd); !found.word.empty())
    return read_sides(text, found, depth + 1, both);
  if (text.starts_with("not ") || text.starts_with("not(")) return deny(read(text.substr(3), depth + 1));
  if (const Found found = find_outside(text, kComparisons); !found.word.empty()) return read_comparisons(text, found);
  if (is_bracketed(text)) return read(text.substr(1, text.size() - 2), depth + 1);
  throw_error(ErrorKind::invalid_input, "the requirement ", quote(text.substr(0, 80)), " compares nothing");
}

}  // namespace

SizeRequirement SizeRequirement::parse(std::string_view text) {
  if (text.size() > kMostText)
    throw_error(ErrorKind::invalid_input, "a requirement of ", text.size(), " characters; at most ", kMostText,
                " are allowed");
  return {std::string(trim(text)), read(text, 0)};
}

}  // namespace lissome
