// Face of base for ops of the user's own: which of them model files may call. It holds for the process, as the library
// that defines them does: the user names them, a file never can.
#pragma once

#include <string>
#include <string_view>

namespace lissome {

// "mylib::my_op" or "mylib::my_op.overload", exactly this one. Throws usage for anything else, and for a name in one of
// PyTorch's own namespaces: those of its ops that a file may call are on a list that nothing extends.
void allow_op(std::string_view name);
bool is_op_allowed(std::string_view name);

// Whether PyTorch or lissome owns the namespace of this op.
bool is_own_namespace(std::string_view op);

}  // namespace lissome
