// State in an interpretation; see state.h.
#include "lissome/program/state.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/ivalue.h>

#include <algorithm>

#include "lissome/base.h"
#include "lissome/program/purify/alias_sets.h"

namespace lissome {
namespace {

bool share_storage(const at::Tensor& left, const at::Tensor& right) {
  return left.defined() && right.defined() && left.has_storage() && right.has_storage() &&
         left.storage().unsafeGetStorageImpl() == right.storage().unsafeGetStorageImpl();
}

// Values of a type that the program does not tell are looked at here first.
at::Tensor read_tensor(const Program& program, const std::vector<c10::IValue>& environment, ValueId id) {
  const c10::IValue& value = environment[static_cast<size_t>(id)];
  if (!value.isTensor() || !value.toTensor().defined())
    throw_error(ErrorKind::invalid_input, "%", program.value(id).name, " stands in a write to state and is no tensor");
  return value.toTensor();
}

at::Tensor find_target(const Program& program, const std::vector<c10::IValue>& environment, const StateWrite& write) {
  if (const Weight* weight = program.find_weight(write.target)) return weight->tensor;
  return read_tensor(program, environment, write.target);
}

}  // namespace

void copy_written_sources(const Program& program, std::vector<c10::IValue>& environment) {
  const AliasSets sets = find_alias_sets(program);
  std::map<const void*, at::Tensor> copies;  // by storage: tied tensors stay tied
  const auto copy = [&](ValueId id) {
    c10::IValue& slot = environment[static_cast<size_t>(id)];
    if (!sets.is_written(id) || !slot.isTensor() || !slot.toTensor().defined()) return;
    const at::Tensor tensor = slot.toTensor();
    const void* storage = tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
    const auto found = copies.find(storage);
    if (storage != nullptr && found != copies.end() && found->second.sizes() == tensor.sizes()) {
      slot = found->second;
      return;
    }
    slot = tensor.clone();
    if (storage != nullptr) copies.emplace(storage, slot.toTensor());
  };
  for (const ProgramInput& input : program.inputs) copy(input.value);
  for (const Weight& weight : program.weights) copy(weight.value);
}

std::vector<at::Tensor> collect_written(const Program& program, const std::vector<c10::IValue>& environment) {
  std::vector<at::Tensor> written;
  for (const StateWrite& write : program.writes) {
    written.push_back(read_tensor(program, environment, write.value));
  }
  return written;
}

void store_written(const Program& program, const std::vector<at::Tensor>& written,
                   const std::vector<c10::IValue>& environment, std::vector<c10::IValue>& outputs) {
  std::vector<at::Tensor> targets, values = written;
  for (const StateWrite& write : program.writes) targets.push_back(find_target(program, environment, write));
  const auto is_target = [&](const at::Tensor& tensor) {
    return std::any_of(targets.begin(), targets.end(),
                       [&](const at::Tensor& target) { return share_storage(target, tensor); });
  };
  for (at::Tensor& value : values) {
    if (is_target(value)) value = value.clone();
  }
  for (c10::IValue& output : outputs) {
    if (output.isTensor() && is_target(output.toTensor())) output = output.toTensor().clone();
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].sizes() != values[i].sizes())
      throw_error(ErrorKind::invalid_input, "a write of ", format_sizes(values[i].sizes()), " to a state of ",
                  format_sizes(targets[i].sizes()));
    if (targets[i].layout() != values[i].layout())
      throw_error(ErrorKind::invalid_input, "a write of a tensor of layout ", values[i].layout(),
                  " to a state of layout ", targets[i].layout());
    if (at::has_internal_overlap(targets[i]) == at::MemOverlap::Yes)
      throw_error(ErrorKind::invalid_input, "a write goes to a tensor of ", format_sizes(targets[i].sizes()),
                  " whose elements share memory; give a copy of it (clone)");
    targets[i].copy_(values[i].detach());
  }
}

}  // namespace lissome
