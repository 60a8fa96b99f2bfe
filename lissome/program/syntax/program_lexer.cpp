// Tokens of program text. Every read moves forward by at least one character or returns `end`.
#include "lissome/program/syntax/program_lexer.h"

#include <charconv>
#include <limits>

#include <algorithm>

#include "lissome/base.h"
#include "lissome/program/syntax/literal.h"

namespace lissome {
namespace {

using Kind = TextToken::Kind;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_character(char c) { return is_letter(c) || is_digit(c); }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

void refuse_text(TextPlace place, const std::string& message) {
  throw_error(ErrorKind::invalid_input, "program text, line ", place.line, ", column ", place.column, ": ", message);
}

TextToken ProgramLexer::read() {
  while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++at_;
  TextToken token;
  token.place = place();
  if (at_ >= text_.size()) return token;
  const char c = peek();
  if (c == '\n' || c == ';') {
    ++at_;
    if (c == '\n') {
      ++line_;
      line_start_ = at_;
    }
    token.kind = Kind::line_end;
    return token;
  }
  if (c == '#') {
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view comment = text_.substr(at_ + 1, end - at_ - 1);
    while (!comment.empty() && (comment.back() == ' ' || comment.back() == '\r')) comment.remove_suffix(1);
    while (!comment.empty() && comment.front() == ' ') comment.remove_prefix(1);
    token.kind = Kind::comment;
    token.text = comment;
    at_ = end;
    return token;
  }
  if (c == '%' || c == '@') {
    ++at_;
    token.kind = c == '%' ? Kind::value : Kind::weight;
    read_name(token);
    return token;
  }
  if (c == '"' || c == '\'') {
    token.kind = Kind::string;
    token.text = read_string();
    return token;
  }
  if (is_digit(c) || (c == '-' && (is_digit(peek(1)) || text_.substr(at_ + 1, 3) == "inf"))) {
    return read_number(std::move(token));
  }
  if (is_letter(c)) return read_word(std::move(token));
  for (const std::string_view sign : {"<-", "..", "(", ")", "[", "]", "{", "}", ",", ":", "="}) {
    if (text_.substr(at_, sign.size()) != sign) continue;
    token.kind = Kind::punctuation;
    token.text = sign;
    at_ += sign.size();
    return token;
  }
  refuse_text(token.place, "the character " + write_string(std::string_view(&c, 1)) + " has no meaning here");
}

bool ProgramLexer::read_bracketed(std::string& content) {
  if (peek() != '[') return false;
  const size_t end = text_.find_first_of("]\n", at_);
  if (end == std::string_view::npos || text_[end] == '\n') refuse_text(place(), "'[' without ']' on the same line");
  content = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
  return true;
}

void ProgramLexer::read_name(TextToken& token) {
  if (peek() == '"' || peek() == '\'') {
    token.text = read_string();
    return;
  }
  const size_t start = at_;
  while (is_name_character(peek()) || (peek() == '.' && is_name_character(peek(1)))) ++at_;
  token.text = text_.substr(start, at_ - start);
  if (token.text.empty())
    refuse_text(token.place, "a name must follow % or @; odd names stand in quotes: %\"odd name\"");
}

TextToken ProgramLexer::read_number(TextToken token) {
  const size_t start = at_;
  if (peek() == '-') ++at_;
  bool is_floating = peek() == 'i';
  if (is_floating) {
    at_ += 3;
    token.kind = Kind::floating;
    token.floating = -std::numeric_limits<double>::infinity();
    return token;
  }
  while (is_digit(peek())) ++at_;
  if (peek() == '.' && peek(1) != '.') {
    is_floating = true;
    ++at_;
    while (is_digit(peek())) ++at_;
  }
  if ((peek() == 'e' || peek() == 'E') &&
      (is_digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && is_digit(peek(2))))) {
    is_floating = true;
    at_ += 2;
    while (is_digit(peek())) ++at_;
  }
  const std::string_view digits = text_.substr(start, at_ - start);
  const char* const end = digits.data() + digits.size();
  token.kind = is_floating ? Kind::floating : Kind::integer;
  const auto result = is_floating ? std::from_chars(digits.data(), end, token.floating)
                                  : std::from_chars(digits.data(), end, token.integer);
  if (result.ec != std::errc() || result.ptr != end) {
    refuse_text(token.place, "the number " + std::string(digits.substr(0, 60)) + " does not fit 64 bits");
  }
  return token;
}

// Letters, digits, _ with dots and :: inside: aten::add.Tensor; and a device's number: cuda:0.
TextToken ProgramLexer::read_word(TextToken token) {
  const size_t start = at_;
  while (true) {
    if (is_name_character(peek())) {
      ++at_;
    } else if (peek() == '.' && is_name_character(peek(1))) {
      ++at_;
    } else if (peek() == ':' && peek(1) == ':' && is_letter(peek(2))) {
      at_ += 2;
    } else if (peek() == ':' && is_digit(peek(1))) {
      ++at_;
    } else {
      break;
    }
  }
  token.kind = Kind::word;
  token.text = text_.substr(start, at_ - start);
  return token;
}

std::string ProgramLexer::read_string() {
  const TextPlace start = place();
  const char quote = peek();
  ++at_;
  std::string result;
  while (peek() != quote) {
    if (at_ >= text_.size() || peek() == '\n') refuse_text(start, "a string without its closing quote");
    if (peek() == '\\') {
      ++at_;
      result += read_escape();
    } else {
      result += peek();
      ++at_;
    }
  }
  ++at_;
  return result;
}

char ProgramLexer::read_escape() {
  const char c = peek();
  const TextPlace start = place();
  ++at_;
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '\\':
    case '"':
    case '\'': return c;
    case 'x':
      if (const int high = hex_digit(peek()), low = hex_digit(peek(1)); high >= 0 && low >= 0) {
        at_ += 2;
        return static_cast<char>(high * 16 + low);
      }
      [[fallthrough]];
    default: refuse_text(start, "an unknown escape in a string; \\n \\t \\r \\\\ \\\" \\' and \\xNN are known");
  }
}

}  // namespace lissome
