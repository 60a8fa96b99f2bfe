// The one place that registers our ops. Done at first use instead of by static objects: the order is known, and a
// program that never touches ours pays nothing.
#include "lissome/program/op/register.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <mutex>
#include <string>

#include "lissome/program/op.h"

namespace lissome {
namespace {

class StackKernel : public c10::OperatorKernel {
 public:
  explicit StackKernel(BoxedKernel kernel) : kernel_(kernel) {}

  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, std::vector<c10::IValue>* stack) { kernel_(*stack); }

 private:
  BoxedKernel kernel_;
};

void register_rows(std::vector<OpRow> rows, std::vector<c10::RegistrationHandleRAII>& kept) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (OpRow& row : rows) {
    c10::FunctionSchema schema = torch::jit::parseSchema("lissome::" + row.schema);
    schema.setAliasAnalysis(c10::AliasAnalysisKind::FROM_SCHEMA);
    const c10::OperatorName name = schema.operator_name();
    kept.push_back(dispatcher.registerDef(std::move(schema), "lissome"));
    kept.push_back(dispatcher.registerImpl(name, c10::DispatchKey::CompositeImplicitAutograd, std::move(row.kernel),
                                           std::nullopt, nullptr, "lissome"));
  }
}

// Never deregistered: interned ops hold handles for as long as the process lives.
std::vector<c10::RegistrationHandleRAII>& kept_registrations() {
  static auto* const kept = new std::vector<c10::RegistrationHandleRAII>;
  return *kept;
}

}  // namespace

c10::KernelFunction box_kernel(BoxedKernel kernel) {
  return c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<StackKernel>(kernel));
}

void register_ops() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::vector<c10::RegistrationHandleRAII>& kept = kept_registrations();
    register_rows(list_scalar_ops(), kept);
    register_rows(list_functional_ops(), kept);
    register_rows(list_fused_ops(), kept);
    register_rows(list_quantized_ops(), kept);
  });
}

}  // namespace lissome
