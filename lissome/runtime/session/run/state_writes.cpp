// See state_writes.h.
#include "lissome/runtime/session/run/state_writes.h"

#include <cstring>

namespace lissome {

StateWrites::StateWrites(const Plan& plan, RunMemory& memory, HeldValues& held)
    : plan_(plan), memory_(memory), held_(held), fresh_(plan.writes.size()) {}

// All new values are read before the first is written: one may lie in the memory of another's target.
void StateWrites::store(const Binding& binding) {
  for (size_t i = 0; i < fresh_.size(); ++i) {
    if (plan_.value(plan_.writes[i].target).storage == Storage::state) read_fresh(i, binding);
  }
  for (size_t i = 0; i < fresh_.size(); ++i) {
    const PlanValue& target = plan_.value(plan_.writes[i].target);
    if (target.storage != Storage::state) continue;
    const Array& state = memory_.array_of(target);
    if (state.bytes() > 0)
      std::memcpy(state.storage.get(), fresh_[i].storage.get(), static_cast<size_t>(state.bytes()));
    if (plan_.value(plan_.writes[i].value).storage == Storage::held) fresh_[i] = {};
  }
}

void StateWrites::read_fresh(size_t write, const Binding& binding) {
  const PlanValueId source = plan_.writes[write].value;
  Array& fresh = fresh_[write];
  if (plan_.value(source).storage == Storage::held) {
    fresh = held_.fetch(source, plan_.outputs.size() + write);
  } else {
    const PlacedValue& value = binding.value(source);
    if (!fresh.storage || fresh.dtype != value.dtype || fresh.sizes != value.sizes)
      fresh = make_array(value.dtype, value.sizes);
    memory_.copy_to(fresh.data<std::byte>(), binding, source);
  }
  const PlanValue& target = plan_.value(plan_.writes[write].target);
  const Array& state = memory_.array_of(target);
  if (!fresh.storage || fresh.dtype != state.dtype || fresh.elements() != state.elements()) {
    throw_error(ErrorKind::invalid_input, "plan: a write gives ", dtype_name(fresh.dtype), format_sizes(fresh.sizes),
                " to state ", target.name, ", which is ", dtype_name(state.dtype), format_sizes(state.sizes));
  }
}

int64_t StateWrites::bytes() const {
  int64_t bytes = 0;
  for (const Array& array : fresh_) bytes += array.storage ? array.bytes() : 0;
  return bytes;
}

}  // namespace lissome
