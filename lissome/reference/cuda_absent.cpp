// With a libtorch that was built without CUDA: the same symbols.
#include <c10/core/Device.h>

#include "lissome/reference/device.h"

namespace lissome {

std::unique_ptr<RecordedCall> record_call(const c10::Device& device, const std::function<void()>&) {
  throw_error(ErrorKind::internal, "a call was to be recorded on ", device.str(), ", but this libtorch has no CUDA");
}

}  // namespace lissome
