// What the pages share: text made safe, numbers, bars, the frame.
#pragma once

#include <cstddef>
#include <string>

namespace lissome {

inline constexpr size_t kMostBytesOfText = 280;  // of one name, reason or line
inline constexpr size_t kMostPoints = 400;       // of a curve

// Safe in text and in attributes. Longer text is cut between characters: whatever a model's names are, the page keeps
// its size.
std::string escape_html(const std::string& text, size_t most = kMostBytesOfText);
std::string print_number(double number, int digits);
// A bar of a share of the width, class `kind`, with a label that is HTML.
std::string make_bar(const std::string& kind, double value, double largest, const std::string& label);
// A key figure; all three are HTML.
std::string make_tile(const std::string& name, const std::string& now, const std::string& was, bool lead);
// The whole document around `body`, headed by the answer.
std::string make_page(const std::string& title, const std::string& answer, const std::string& body);

}  // namespace lissome
