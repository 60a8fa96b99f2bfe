// The one place that registers our ops. Done at first use instead of by static objects: the order is known, and a
// program that never touches ours pays nothing.
#include "lissome/program/op/register.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
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

void register_rows(std::vector<OpRow> rows) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (OpRow& row : rows) {
    c10::FunctionSchema schema = torch::jit::parseSchema("lissome::" + row.schema);
    schema.setAliasAnalysis(c10::AliasAnalysisKind::FROM_SCHEMA);
    const c10::OperatorName name = schema.operator_name();
    keep_registration(dispatcher.registerDef(std::move(schema), "lissome"));
    keep_registration(dispatcher.registerImpl(name, row.key, std::move(row.kernel), std::nullopt, nullptr, "lissome"));
  }
}

}  // namespace

void keep_registration(c10::RegistrationHandleRAII registration) {
  static auto* const kept = new std::vector<c10::RegistrationHandleRAII>;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  kept->push_back(std::move(registration));
}

c10::KernelFunction box_kernel(BoxedKernel kernel) {
  return c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<StackKernel>(kernel));
}

void register_ops() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_rows(list_scalar_ops());
    register_rows(list_functional_ops());
    register_rows(list_fused_ops());
    register_rows(list_quantized_ops());
    register_rows(list_byte_ops());
    register_rows(list_recurrent_ops());
    register_rows(list_random_ops());
    register_rows(list_decomposed_ops());
    register_rows(list_rank_ops());
  });
}

}  // namespace lissome
