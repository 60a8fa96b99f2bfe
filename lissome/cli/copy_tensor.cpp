#include "lissome/cli/copy_tensor.h"

#include "lissome/program.h"

namespace lissome {

Array copy_tensor(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach();
  return copy_array({dtype_of(plain.scalar_type()), plain.sizes().vec(), plain.strides().vec(), plain.data_ptr()});
}

}  // namespace lissome
