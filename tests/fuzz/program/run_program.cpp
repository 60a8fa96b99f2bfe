#include "tests/fuzz/program/run_program.h"

#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <cstring>

#include "tests/fuzz/filled_array.h"
#include "tests/fuzz/guard_allocator.h"

namespace lissome {
namespace {

constexpr int64_t kMostElements = 1 << 14;

std::optional<Sizes> find_sizes(const Program& program, const ValueType& type) {
  DimensionBindings bindings;
  for (const NamedDimension& dimension : program.dimensions)
    bindings[dimension.name] = std::min(std::max<int64_t>(dimension.minimum, 2), dimension.maximum);
  Sizes sizes;
  for (const Dimension& size : type.sizes) {
    const std::optional<int64_t> number = size.try_evaluate(bindings);
    if (!number || *number < 0) return std::nullopt;
    sizes.push_back(*number);
  }
  const std::optional<int64_t> bytes = count_bytes(type.dtype, sizes);
  if (!bytes || *bytes > kMostElements * 8) return std::nullopt;
  return sizes;
}

std::optional<c10::IValue> make_input(const Program& program, const ValueType& type, uint64_t data) {
  switch (type.kind) {
    case ValueKind::integer: return c10::IValue(static_cast<int64_t>(data % 5));
    case ValueKind::floating: return c10::IValue(0.5);
    case ValueKind::boolean: return c10::IValue(data % 2 == 0);
    case ValueKind::tensor:
    case ValueKind::any: break;
    default: return c10::IValue();
  }
  const std::optional<Sizes> sizes = type.sized ? find_sizes(program, type) : Sizes{2, 3};
  if (!sizes) return std::nullopt;
  const Array filled = make_filled({type.dtype, *sizes, data});
  at::Tensor tensor = at::empty(*sizes, at::TensorOptions().dtype(scalar_type_of(type.dtype)));
  if (filled.bytes() > 0)
    std::memcpy(tensor.mutable_data_ptr(), filled.storage.get(), static_cast<size_t>(filled.bytes()));
  return c10::IValue(std::move(tensor));
}

// Every byte of what comes out is there.
void read_tensor(const c10::IValue& value) {
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) read_tensor(item);
  }
  if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().layout() != at::kStrided) return;
  if (value.toTensor().numel() <= kMostElements) static_cast<void>(value.toTensor().contiguous());
}

}  // namespace

void prepare_torch() {
  install_guard_allocator();
  at::set_num_threads(1);
  register_ops();
}

bool has_large_weights(const Program& program) {
  // A weight may be a few elements that a stride of 0 repeats without end.
  return std::any_of(program.weights.begin(), program.weights.end(),
                     [](const Weight& weight) { return weight.tensor.numel() > kMostElements; });
}

bool run_program(const Program& program, uint64_t data) {
  if (has_large_weights(program)) return false;
  std::vector<c10::IValue> inputs;
  for (const ProgramInput& input : program.inputs) {
    std::optional<c10::IValue> made = make_input(program, program.value(input.value).type, data + inputs.size() / 2);
    if (!made) return false;
    inputs.push_back(std::move(*made));
  }
  InterpretOptions options;
  options.write_state = data % 4 == 1;
  for (const c10::IValue& output : interpret(program, std::move(inputs), options)) read_tensor(output);
  return true;
}

}  // namespace lissome
