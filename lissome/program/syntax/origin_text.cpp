// Origins as comments. A comment counts as an origin only when it fits the whole form, so people may write others.
#include "lissome/program/syntax/origin_text.h"

#include <algorithm>

#include "lissome/base.h"
#include "lissome/program/syntax/literal.h"
#include "lissome/program/syntax/program_lexer.h"

namespace lissome {
namespace {

class OriginReader {
 public:
  explicit OriginReader(std::string_view text) : text_(text) {}

  std::optional<TextOrigin> read() {
    TextOrigin origin;
    if (!at_keyword("in ") && peek() != '(' && peek() != ':') {
      if (!read_part(origin.source, " ") || !(quoted_ || is_bare_source(origin.source) || trim_colon(origin.source))) {
        return std::nullopt;
      }
    }
    skip_spaces();
    if (at_keyword("in ")) {
      at_ += 3;
      if (!read_part(origin.module, " :") || !(quoted_ || is_bare_name(origin.module))) return std::nullopt;
    }
    skip_spaces();
    if (peek() == '(') {
      ++at_;
      if (!read_part(origin.module_type, ")") || !(quoted_ || is_bare_name(origin.module_type)) || peek() != ')') {
        return std::nullopt;
      }
      ++at_;
    }
    if (peek() == ':') {
      ++at_;
      skip_spaces();
      if (!read_part(origin.code, "") || !quoted_) return std::nullopt;
    }
    skip_spaces();
    const bool empty =
        origin.source.empty() && origin.code.empty() && origin.module.empty() && origin.module_type.empty();
    if (at_ != text_.size() || empty) return std::nullopt;
    return origin;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool at_keyword(std::string_view keyword) const { return text_.substr(at_, keyword.size()) == keyword; }
  void skip_spaces() {
    while (peek() == ' ') ++at_;
  }

  // "encoder.py:88:" before code alone: the last colon is not the source's.
  bool trim_colon(std::string& source) {
    if (!source.ends_with(':') || !is_bare_source(std::string_view(source).substr(0, source.size() - 1))) return false;
    source.pop_back();
    --at_;
    return true;
  }

  // A quoted string, or everything up to one of `ends`. False when nothing is there.
  bool read_part(std::string& part, std::string_view ends) {
    quoted_ = peek() == '"' || peek() == '\'';
    if (quoted_) {
      ProgramLexer lexer(text_.substr(at_));
      try {
        part = lexer.read().text;
      } catch (const Error&) {
        return false;  // an apostrophe in free words
      }
      at_ += lexer.position();
      return true;
    }
    const size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    part = text_.substr(at_, end - at_);
    at_ = end;
    return !part.empty();
  }

  std::string_view text_;
  size_t at_ = 0;
  bool quoted_ = false;
};

}  // namespace

std::string write_origin(const TextOrigin& origin) {
  std::string text;
  if (!origin.source.empty()) {
    text += is_bare_source(origin.source) ? origin.source : write_string(origin.source);
  }
  if (!origin.module.empty()) text += (text.empty() ? "in " : " in ") + write_name(origin.module);
  if (!origin.module_type.empty()) text += (text.empty() ? "(" : " (") + write_name(origin.module_type) + ")";
  if (!origin.code.empty()) text += ": " + write_string(origin.code);
  return text;
}

std::optional<TextOrigin> read_origin(std::string_view comment) { return OriginReader(comment).read(); }

}  // namespace lissome
