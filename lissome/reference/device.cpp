#include "lissome/reference/device.h"

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace lissome {

void place_weights(Program& program, const c10::Device& device) {
  for (Weight& weight : program.weights) weight.tensor = weight.tensor.to(device);
  for (const Node& node : program.nodes) {
    if (!node.op.is("aten::convolution") && !node.op.is("aten::conv2d") && !node.op.is("lissome::conv_act")) continue;
    for (Weight& weight : program.weights) {
      if (weight.value != node.argument("weight").value() || weight.tensor.dim() != 4) continue;
      weight.tensor = weight.tensor.contiguous(at::MemoryFormat::ChannelsLast);
    }
  }
}

bool can_be_recorded(const Program& program) {
  for (const Node& node : program.nodes) {
    const Effects effects = find_effects(program, node);
    if (effects.barrier() || effects.random || effects.shape_from_data || effects.check || !node.bodies.empty())
      return false;
  }
  return true;
}

void wait_for_device(const c10::Device& device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

}  // namespace lissome
