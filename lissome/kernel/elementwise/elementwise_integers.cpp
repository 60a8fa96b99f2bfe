// The portable form of element-wise chains on integers, and what they take.
#include "lissome/kernel/elementwise/elementwise_integers_body.h"

#include "lissome/kernel/elementwise/kernel_versions.h"

namespace lissome {

bool is_integer_dtype(Dtype dtype) {
  return dtype == Dtype::u8 || dtype == Dtype::i8 || dtype == Dtype::i32 || dtype == Dtype::i64 ||
         dtype == Dtype::boolean;
}

bool is_integer_operation(ElementOp op) {
  switch (op) {
    case ElementOp::load:
    case ElementOp::constant:
    case ElementOp::position:
    case ElementOp::negate:
    case ElementOp::absolute:
    case ElementOp::square:
    case ElementOp::logical_not:
    case ElementOp::add:
    case ElementOp::subtract:
    case ElementOp::multiply:
    case ElementOp::maximum:
    case ElementOp::minimum:
    case ElementOp::equal:
    case ElementOp::unequal:
    case ElementOp::less:
    case ElementOp::less_equal:
    case ElementOp::logical_and:
    case ElementOp::logical_or:
    case ElementOp::select: return true;
    default: return false;
  }
}

void elementwise_integers_portable(const ElementwiseCall& call, int part, int parts) {
  run_elementwise_integers(call, part, parts);
}

}  // namespace lissome
