// libtorch is not instrumented, so the address sanitizer does not see what its ops touch. This allocator puts each
// tensor at the end of pages with a forbidden page behind (and one before): a read or write beyond ends the process
// there. It bounds what one execution takes, too: a program that asks for much, or makes tensors without end, is
// refused.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>

#include "lissome/base/tensor.h"

namespace lissome {

// From now on the allocator of this process's tensors.
void install_guard_allocator();
// Before each execution: nothing counts yet.
void reset_guard_budget();
// A copy that lies in guarded memory.
Array copy_guarded(const Array& array);

}  // namespace lissome
