#include "lissome/runtime/step/norm/group_norm_steps.h"

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

template <typename Call>
void bind_group_norm_of(StepBinder& binder, const GroupNormValues& step, std::string_view kernel) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  binder.require(x.sizes.size() >= 2 && x.sizes.size() <= 5, "x has ", x.sizes.size(), " dimensions");
  binder.require_sizes(y, x.sizes);
  Call call;
  call.batch = x.sizes[0], call.channels = x.sizes[1];
  call.positions = 1;
  for (size_t i = 2; i < x.sizes.size(); ++i) call.positions *= x.sizes[i];
  call.groups = step.groups;
  binder.require(
      call.channels > 0 && call.channels % call.groups == 0 && call.channels / call.groups <= kMostGroupChannels,
      call.channels, " channels in ", call.groups, " groups");
  if (call.positions == 0) call.batch = 0;
  call.epsilon = static_cast<float>(step.epsilon);
  call.epilogue = step.activation.epilogue();
  binder.set_call(kernel, call);
  binder.point(&Call::x, step.x);
  binder.point(&Call::y, step.y);
  if (step.weight) {
    binder.require_sizes(binder.value(step.weight), {call.channels});
    binder.point(&Call::weight, step.weight);
  }
  if (step.bias) {
    binder.require_sizes(binder.value(step.bias), {call.channels});
    binder.point(&Call::bias, step.bias);
  }
  binder.set_work(0, 16.0 * static_cast<double>(x.elements()));
}

void bind_group_norm(StepBinder& binder, const GroupNormStep& step) {
  bind_group_norm_of<GroupNormCall>(binder, step, "group_norm");
}
void bind_group_norm_bf16(StepBinder& binder, const GroupNormBf16Step& step) {
  bind_group_norm_of<GroupNormBf16Call>(binder, step, "group_norm_bf16");
}

}  // namespace

std::vector<StepRow> list_group_norm_steps() {
  return {declare_step<GroupNormStep, bind_group_norm>(), declare_step<GroupNormBf16Step, bind_group_norm_bf16>()};
}

}  // namespace lissome
