// How ops of namespace `lissome` enter the dispatcher: a row is a schema and the kernel of its reference. Each group of
// ops has one file with one list of rows; register_ops() in register.cpp names the lists, once, in order.
// A kernel is CompositeImplicitAutograd, composed of ATen calls, so that autograd, autocast and every device work; or
// CompositeExplicitAutograd, which is recorded as it stands.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/RegistrationHandleRAII.h>

#include <string>
#include <string_view>
#include <vector>

namespace lissome {

struct OpRow {
  std::string schema;  // "sym_add(Scalar a, Scalar b) -> Scalar", without the namespace
  c10::KernelFunction kernel;
  c10::DispatchKey key = c10::DispatchKey::CompositeImplicitAutograd;
};

using BoxedKernel = void (*)(std::vector<c10::IValue>& stack);

// A kernel that works on the stack itself: pops the arguments, pushes the results.
c10::KernelFunction box_kernel(BoxedKernel kernel);

// A kernel that is a plain function with the schema's C++ types.
template <typename Result, typename... Arguments>
c10::KernelFunction wrap_kernel(Result (*kernel)(Arguments...)) {
  return c10::KernelFunction::makeFromUnboxedRuntimeFunction(kernel);
}

// Never taken back: interned ops hold handles, and other threads may be in the middle of a call.
void keep_registration(c10::RegistrationHandleRAII registration);

std::vector<OpRow> list_scalar_ops();      // op/scalar.cpp
std::vector<OpRow> list_functional_ops();  // op/functional.cpp
std::vector<OpRow> list_fused_ops();       // op/fused.cpp
std::vector<OpRow> list_quantized_ops();   // op/quantized.cpp
std::vector<OpRow> list_byte_ops();        // op/bytes.cpp
std::vector<OpRow> list_recurrent_ops();   // op/recurrent.cpp
std::vector<OpRow> list_random_ops();      // op/random.cpp
std::vector<OpRow> list_decomposed_ops();  // op/decomposed.cpp
std::vector<OpRow> list_rank_ops();        // op/ranks.cpp

// Our op for one of namespace `quantized_decomposed`, with overload; empty when it is none that we have.
std::string find_decomposed_op(std::string_view name);

}  // namespace lissome
