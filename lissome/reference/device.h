// What reference steps on another device than the processor need.
#pragma once

#include <functional>
#include <memory>

#include "lissome/program.h"

namespace c10 {
struct Device;
}

namespace lissome {

// Brings the weights to the device; those of convolutions with their channels last, in which order cuDNN is fastest.
void place_weights(Program& program, const c10::Device& device);

// Whether a call launches the same work each time for inputs of the same sizes: nothing random, no size or number read
// out of data, no child programs, no writes into inputs.
bool can_be_recorded(const Program& program);

// Waits until the device has done what it was given.
void wait_for_device(const c10::Device& device);

// A call recorded as one CUDA graph. It reads and writes the same memory each time.
class RecordedCall {
 public:
  virtual ~RecordedCall() = default;
  virtual void replay() = 0;
};
// Runs `work` three times: twice so that libraries get their workspaces, then for the record. Throws what `work`
// throws. Without CUDA in this build there is no device to record on: internal.
std::unique_ptr<RecordedCall> record_call(const c10::Device& device, const std::function<void()>& work);

}  // namespace lissome
