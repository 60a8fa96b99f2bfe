// The table of compute kernels. A kernel is a plain function over the raw pointers of its call structure; rows of one
// name do the same for different instruction sets. Plans name kernels without the instruction set: the fastest row that
// this processor runs is looked up when a plan is bound, so a plan made on one machine runs on another.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lissome {

enum class Isa : uint8_t { portable, avx2, avx512, avx512_vnni, avx512_bf16, amx };

// Does part `part` of `parts` of the work of one call; the parts together do all of it, in any order, on any threads.
// `call` points to the call structure of the kernel (LinearF32Call for "linear_f32"). Nothing is allocated or locked;
// denormals are flushed if the caller's thread says so (see runtime/session/denormals.h).
using KernelFunction = void (*)(const void* call, int part, int parts);

struct KernelRow {
  std::string_view name;
  Isa isa;
  KernelFunction function;
};

std::string_view isa_name(Isa isa);
// What this processor runs, masked features taken away.
bool can_run(Isa isa);

// Every row; within a name the fastest first and the portable one, which is the oracle of the others, last.
std::span<const KernelRow> kernel_rows();
std::vector<KernelRow> kernel_rows(std::string_view name);
// The first row of this name that can run. Throws internal when there is no such kernel.
const KernelRow& find_kernel(std::string_view name);

}  // namespace lissome
