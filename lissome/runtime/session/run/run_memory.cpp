// See run_memory.h.
#include "lissome/runtime/session/run/run_memory.h"

#include <cstring>

#include "lissome/runtime/memory/arena_guard.h"

namespace lissome {

RunMemory::RunMemory(const Plan& plan) : plan_(plan), address_(plan.values.size()) {
  for (const PlanArray& array : plan.arrays) arrays_.push_back(array.array);
  for (const PlanValue& value : plan.values) {
    if (value.storage != Storage::state) continue;
    Array& array = arrays_[static_cast<size_t>(value.array)];
    array = copy_array(array.view());
    state_bytes_ += array.bytes();
  }
}

void RunMemory::place_arrays(Binding& binding) const {
  for (const PlanValueId id : plan_.value_ids()) {
    const PlanValue& value = plan_.value(id);
    if (value.storage != Storage::constant && value.storage != Storage::state) continue;
    binding.place_block(block_of(id), array_of(value).storage.get());
  }
}

void RunMemory::place_arena(Binding& binding) {
  arena_.reserve(binding.arena_bytes());
  binding.place_arena(arena_.data());
  if (guards_arenas()) forbid_gaps(arena_, binding.buffers());
}

std::byte* RunMemory::address_of(const Binding& binding, PlanValueId value) const {
  const PlacedValue& placed = binding.value(value);
  const PlanValueId owner_id = owner_of(placed.block);
  const PlanValue& owner = plan_.value(owner_id);
  std::byte* base = nullptr;
  if (owner.storage == Storage::constant || owner.storage == Storage::state) {
    base = array_of(owner).data<std::byte>();
  } else if (binding.in_arena(placed.block)) {
    base = binding.arena_address(placed.block);
  } else {
    base = static_cast<std::byte*>(address_[static_cast<size_t>(owner_id)]);
  }
  return base + placed.offset;
}

TensorView RunMemory::view_of(const Binding& binding, PlanValueId value) const {
  const PlacedValue& placed = binding.value(value);
  return {placed.dtype, placed.sizes, placed.strides, address_of(binding, value)};
}

void RunMemory::copy_to(std::byte* to, const Binding& binding, PlanValueId value) const {
  const PlacedValue& placed = binding.value(value);
  const int64_t elements = placed.elements();
  if (elements == 0) return;
  const std::byte* from = address_of(binding, value);
  if (placed.is_row_major()) {
    std::memcpy(to, from, static_cast<size_t>(elements * item_size(placed.dtype)));
  } else {
    copy_elements(placed.dtype, placed.sizes, placed.strides, from, to);
  }
}

RunMemory::ArrayBytes RunMemory::count_arrays() const {
  ArrayBytes bytes;
  std::vector<bool> counted(arrays_.size(), false);
  for (const PlanValue& value : plan_.values) {
    if (value.array < 0 || counted[static_cast<size_t>(value.array)]) continue;
    counted[static_cast<size_t>(value.array)] = true;
    (value.storage == Storage::state ? bytes.state : bytes.weights) += array_of(value).bytes();
  }
  return bytes;
}

}  // namespace lissome
