// The one gate for programs that come from files or from recorded modules: which ops they may call. Importers ask it
// for each node as they read it, with its place in the user's model at hand; judge_program() (see the face) asks for
// the finished program, bodies included, before anything of it runs.
#pragma once

#include <string>

#include "lissome/program/program.h"

namespace lissome {

// Empty when a program may hold the op. `is_rewritten`: an import turns in-place forms into pure ones before anything
// runs, so that forms which write into an argument given as `out`, or change its sizes, may be read there.
std::string refuse_op(const Op& op, bool is_rewritten);

// Throws invalid_input when a control node's counts or mode do not fit its operands and results.
void judge_control(const Node& node);

}  // namespace lissome
