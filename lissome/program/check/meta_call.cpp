#include "lissome/program/check/meta_call.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <algorithm>

#include "lissome/program/check/check_values_rows.h"
#include "lissome/program/convert.h"

namespace lissome {
namespace {

// False where a count is read off elements that are not there. How often something is made or done counts on the meta
// device too.
bool check_without_elements(const Op& op, const std::vector<c10::IValue>& stack) {
  try {
    CheckedCall(op).check(stack);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {  // of libtorch, at the first element that is read; numbers and sizes come before
    return std::ranges::find(count_check_rows(), op.name(), &ValueCheckRow::op) == count_check_rows().end();
  }
  return true;
}

}  // namespace

bool has_meta_form(const Op& op) {
  const c10::OperatorHandle& handle = op.handle();
  if (handle.hasTag(at::Tag::data_dependent_output) || handle.hasTag(at::Tag::dynamic_output_shape)) return false;
  using Key = c10::DispatchKey;
  return handle.hasKernelForDispatchKey(Key::Meta) || handle.hasKernelForDispatchKey(Key::CompositeImplicitAutograd) ||
         handle.hasKernelForDispatchKey(Key::CompositeExplicitAutograd);
}

bool call_without_elements(const Op& op, std::vector<c10::IValue>& stack) {
  const c10::FunctionSchema& schema = op.schema();
  for (size_t i = 0; i < stack.size(); ++i) stack[i] = fit_to_schema(std::move(stack[i]), schema.arguments()[i]);
  if (!check_without_elements(op, stack)) return false;
  for (size_t i = 0; i < stack.size(); ++i) {
    if (schema.arguments()[i].name() == "device" || stack[i].isDevice()) stack[i] = c10::Device(at::kMeta);
  }
  op.handle().callBoxed(stack);
  return true;
}

}  // namespace lissome
