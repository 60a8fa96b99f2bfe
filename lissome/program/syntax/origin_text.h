// Where a node comes from, as the comment behind it: `# encoder.py:88 in encoder.layer.0 (BertLayer): "x =
// self.fc(x)"`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lissome/program/syntax/program_text.h"

namespace lissome {

// Parts that are empty are left out, odd ones quoted; empty when nothing is known.
std::string write_origin(const TextOrigin& origin);
// The origin that a comment (without its #) spells, or nothing when it is free words.
std::optional<TextOrigin> read_origin(std::string_view comment);

}  // namespace lissome
