// Cuts program text into tokens, one at a time. Used by program_text.cpp alone.
#pragma once

#include <string>
#include <string_view>

#include "lissome/program/syntax/program_text.h"

namespace lissome {

struct TextToken {
  enum class Kind : uint8_t {
    end,       // of the text
    line_end,  // a newline or ';'
    comment,   // from # to the end of the line, without #; text is trimmed
    value,     // %name
    weight,    // @name
    word,      // aten::add.Tensor, channels_last, cuda:0
    integer,
    floating,
    string,
    punctuation,  // ( ) [ ] { } , : = <- ..
  };
  Kind kind = Kind::end;
  std::string text;  // without % @ and quotes, escapes resolved
  int64_t integer = 0;
  double floating = 0;
  TextPlace place;
};

class ProgramLexer {
 public:
  explicit ProgramLexer(std::string_view text) : text_(text) {}

  TextToken read();
  // "[...]" as written, brackets off, when the next character opens it; for sizes, which have an arithmetic of their
  // own.
  bool read_bracketed(std::string& content);
  size_t position() const { return at_; }
  TextPlace place() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  TextToken read_number(TextToken token);
  TextToken read_word(TextToken token);
  void read_name(TextToken& token);
  std::string read_string();
  char read_escape();

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

[[noreturn]] void refuse_text(TextPlace place, const std::string& message);

}  // namespace lissome
