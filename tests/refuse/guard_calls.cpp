// For attack_ops.py and compare_unset.py: a library that makes every call that Python makes into the dispatcher a
// CheckedCall, as interpretation and the reference library do.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "lissome/program.h"

namespace lissome {
namespace {

constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

void check_and_call(const c10::OperatorHandle& op, c10::DispatchKeySet, std::vector<c10::IValue>* stack) {
  const c10::impl::ExcludeDispatchKeyGuard unseen(kKey);  // what the op itself calls is its own affair
  const c10::FunctionSchema& schema = op.schema();
  const std::string name = schema.name() + (schema.overload_name().empty() ? "" : "." + schema.overload_name());
  const size_t count = schema.arguments().size();
  std::vector<c10::IValue> call(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  stack->resize(stack->size() - count);
  CheckedCall(Op::find(name))(call);
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
extern "C" __attribute__((visibility("default"))) void lissome_guard_calls() {
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::TESTING_ONLY_GenericWrapper, true);
}
