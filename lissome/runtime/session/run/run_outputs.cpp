// See run_outputs.h.
#include "lissome/runtime/session/run/run_outputs.h"

#include <algorithm>
#include <cstring>

namespace lissome {
namespace {

// Dtype and bytes of a literal that is a number; no bytes for none and text, which do not leave a session.
struct LiteralView {
  Dtype dtype = Dtype::i64;
  const void* data = nullptr;
};
LiteralView view_literal(const PlanOutput::Literal& literal) {
  if (const auto* integer = std::get_if<int64_t>(&literal)) return {Dtype::i64, integer};
  if (const auto* number = std::get_if<double>(&literal)) return {Dtype::f64, number};
  if (const auto* flag = std::get_if<bool>(&literal)) return {Dtype::boolean, flag};
  return {};
}

Array make_literal(const PlanOutput::Literal& literal) {
  const LiteralView view = view_literal(literal);
  return view.data ? copy_array({view.dtype, {}, {}, const_cast<void*>(view.data)}) : Array{};
}

void copy_dense(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

RunOutputs::RunOutputs(const Plan& plan, RunMemory& memory, HeldValues& held)
    : plan_(plan), memory_(memory), held_(held), direct_(plan.values.size(), -1), leaving_(plan.steps.size()) {
  const std::vector<bool> direct = find_direct_outputs(plan);
  // From the last one on: a value that several outputs name is made in the memory of the first.
  for (size_t i = plan.outputs.size(); i-- > 0;) {
    const PlanOutput& output = plan.outputs[i];
    if (output.leaves_after >= 0) {
      leaving_[static_cast<size_t>(output.leaves_after)].push_back(i);
    } else if (is_value(output.value) && direct[static_cast<size_t>(output.value)]) {
      direct_[static_cast<size_t>(output.value)] = static_cast<int>(i);
    }
  }
}

bool RunOutputs::is_direct(size_t output) const {
  const PlanValueId value = plan_.outputs[output].value;
  return is_value(value) && direct_[static_cast<size_t>(value)] == static_cast<int>(output);
}

std::vector<Array> RunOutputs::allocate(Binding& binding) {
  std::vector<Array> outputs(plan_.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_direct(i)) continue;
    const PlanValueId value = plan_.outputs[i].value;
    outputs[i] = make_array(binding.value(value));
    memory_.place(binding, value, outputs[i].storage.get());
  }
  return outputs;
}

void RunOutputs::fetch(std::vector<Array>& outputs, const Binding& binding) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].storage && plan_.outputs[i].leaves_after < 0) outputs[i] = fetch_one(i, binding);
  }
}

Array RunOutputs::fetch_one(size_t output, const Binding& binding) {
  const auto& [name, value, literal, leaves_after] = plan_.outputs[output];
  if (!is_value(value)) return make_literal(literal);
  if (plan_.value(value).storage == Storage::held) return held_.fetch(value, output);
  Array array = make_array(binding.value(value));
  memory_.copy_to(array.data<std::byte>(), binding, value);
  return array;
}

Array RunOutputs::make_array(const PlacedValue& value) {
  return {value.dtype, value.sizes, pool_.take(value.elements() * item_size(value.dtype))};
}

void RunOutputs::place(std::span<const TensorView> places, Binding& binding) {
  if (places.size() != plan_.outputs.size()) {
    throw_error(ErrorKind::invalid_input, places.size(),
                " buffers for outputs were given, the model has this many outputs: ", plan_.outputs.size());
  }
  for (size_t i = 0; i < places.size(); ++i) {
    if (!is_direct(i)) continue;
    const PlanValueId value = plan_.outputs[i].value;
    check_place(i, places[i], binding.value(value).dtype, binding.value(value).sizes);
    memory_.place(binding, value, places[i].data);
  }
}

void RunOutputs::store(std::span<const TensorView> places, const Binding& binding) {
  for (size_t i = 0; i < places.size(); ++i) store_one(i, binding, places[i]);
}

void RunOutputs::store_one(size_t output, const Binding& binding, const TensorView& place) {
  const auto& [name, value, literal, leaves_after] = plan_.outputs[output];
  if (leaves_after >= 0) return;
  if (!is_value(value)) {
    const LiteralView number = view_literal(literal);
    if (!number.data) return;
    check_place(output, place, number.dtype, {});
    return copy_dense(place.data, number.data, item_size(number.dtype));
  }
  if (plan_.value(value).storage == Storage::held) {
    const Array array = held_.fetch(value, output);
    if (!array.storage) return;
    check_place(output, place, array.dtype, array.sizes);
    return copy_dense(place.data, array.storage.get(), array.bytes());
  }
  if (memory_.address_of(binding, value) == place.data) return;
  const PlacedValue& placed = binding.value(value);
  check_place(output, place, placed.dtype, placed.sizes);
  memory_.copy_to(static_cast<std::byte*>(place.data), binding, value);
}

void RunOutputs::check_place(size_t output, const TensorView& place, Dtype dtype,
                             std::span<const int64_t> sizes) const {
  if (place.dtype == dtype && std::equal(place.sizes.begin(), place.sizes.end(), sizes.begin(), sizes.end()) &&
      place.is_contiguous()) {
    return;
  }
  throw_error(ErrorKind::invalid_input, "the place for output ", quote(plan_.outputs[output].name), " is ",
              dtype_name(place.dtype), format_sizes(place.sizes), ", must be ", dtype_name(dtype), format_sizes(sizes),
              " and dense in row order");
}

void RunOutputs::give_behind(int step, const Binding& binding, const OutputTaker& taker) {
  for (const size_t output : leaving_[static_cast<size_t>(step)]) {
    const PlanValueId value = plan_.outputs[output].value;
    if (plan_.value(value).storage != Storage::held) {
      taker(output, memory_.view_of(binding, value));
      continue;
    }
    const Array array = held_.fetch_early(output);
    if (array.storage) taker(output, array.view());
  }
}

}  // namespace lissome
