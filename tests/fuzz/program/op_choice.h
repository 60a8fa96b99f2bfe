// The ops that mutators choose from: those that the gate lets pass. What it refuses is tested by name elsewhere, and
// would end nearly every execution here.
#pragma once

#include <string>
#include <vector>

#include "lissome/program/op.h"

namespace lissome {

const std::vector<Op>& allowed_ops();
// Those that take these arguments by position, one letter each (v value, i integer, f floating, b truth value, l list,
// s text, w other word, n none), and have as many results.
const std::vector<Op>& find_like_ops(const std::string& letters, size_t results);

}  // namespace lissome
