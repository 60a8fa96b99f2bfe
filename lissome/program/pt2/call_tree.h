// How flat inputs and outputs nest in the Python call: the tree that torch.export wrote, and the stable names that come
// from it ("ids", "options.mask", "output.0"). Torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lissome/program/pt2/fields.h"

namespace lissome {

// `signature` is the root entry of module_call_graph; null when the archive has none.
// One name per leaf of the call's arguments, in order: positional arguments by the names of forward's parameters, then
// keyword arguments. Empty when the tree is missing or unlike what torch writes; then the graph's own names serve.
std::vector<std::string> name_call_inputs(const Json* signature);
// The same for what the call returns: "output" for one tensor, "output.0" in a tuple, the key in a dict.
std::vector<std::string> name_call_outputs(const Json* signature);

// For Program::call_tree: {"spec": <torch's tree>, "leaves": [...]} as text. A leaf is the name of a program input or
// output, or {"fixed": 3} for an argument that the export froze and for a text that the model returns.
std::string print_call_tree(const Json* signature, std::string_view spec_key, const Json& leaves);

}  // namespace lissome
