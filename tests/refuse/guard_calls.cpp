// For attack_ops.py and compare_unset.py: a library that makes every call that Python makes into the dispatcher a
// CheckedCall, as interpretation and the reference library do, or a call on the meta device, as the check of what a
// file says of its values does.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "lissome/program.h"
#include "lissome/program/check/meta_call.h"

namespace lissome {
namespace {

constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

bool without_elements = false;

at::Tensor strip_elements(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

void call_on_meta(const Op& op, std::vector<c10::IValue>& call) {
  if (op.name().starts_with("lissome::") || !has_meta_form(op))
    throw_error(ErrorKind::unsupported, op.name(), " is not called on the meta device");
  for (c10::IValue& argument : call) {
    if (argument.isTensor()) argument = strip_elements(argument.toTensor());
    if (argument.isTensorList()) {
      std::vector<at::Tensor> stripped;
      for (const at::Tensor& tensor : argument.toTensorList()) stripped.push_back(strip_elements(tensor));
      argument = stripped;
    }
    if (argument.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> stripped;
      for (const std::optional<at::Tensor>& tensor : argument.toOptionalTensorList())
        stripped.push_back(tensor ? std::optional(strip_elements(*tensor)) : std::nullopt);
      argument = stripped;
    }
  }
  if (!call_without_elements(op, call)) throw_error(ErrorKind::invalid_input, op.name(), ": a count is not allowed");
}

void check_and_call(const c10::OperatorHandle& op, c10::DispatchKeySet, std::vector<c10::IValue>* stack) {
  const c10::impl::ExcludeDispatchKeyGuard unseen(kKey);  // what the op itself calls is its own affair
  const c10::FunctionSchema& schema = op.schema();
  const std::string name = schema.name() + (schema.overload_name().empty() ? "" : "." + schema.overload_name());
  const size_t count = schema.arguments().size();
  std::vector<c10::IValue> call(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  stack->resize(stack->size() - count);
  if (without_elements) {
    call_on_meta(Op::find(name), call);
  } else {
    CheckedCall(Op::find(name))(call);
  }
  stack->insert(stack->end(), call.begin(), call.end());
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericWrapper, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&check_and_call>());
}

}  // namespace
}  // namespace lissome

// So that Python sees the ops of namespace lissome.
extern "C" __attribute__((visibility("default"))) void lissome_register_ops() { lissome::register_ops(); }

// From now on, for the calls of this thread.
extern "C" __attribute__((visibility("default"))) void lissome_guard_calls(bool on_meta) {
  lissome::without_elements = on_meta;
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::TESTING_ONLY_GenericWrapper, true);
}
