// Text from outside (file names, module names, source lines), made safe to show.
#pragma once

#include <string>
#include <string_view>

namespace lissome {

// UTF-8 without control characters: a control character becomes a space, a byte that is not UTF-8 becomes U+FFFD. So no
// name in a model file can move a terminal's cursor or break a page.
std::string clean_text(std::string_view text);

// Columns that the text takes on a terminal: two for wide (East Asian) characters.
size_t count_columns(std::string_view text);

}  // namespace lissome
