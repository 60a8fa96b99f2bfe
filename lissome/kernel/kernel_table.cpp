// The rows of kernels.txt in the folder of each family: a new row there gives a kernel its place in plans, tests and
// micro benchmarks.
#include "lissome/kernel/kernel_table.h"

#include "lissome/base.h"
#include "lissome/kernel/kernel_versions.h"

namespace lissome {
namespace {

template <auto Function>
struct Erased;
template <typename Call, void (*Function)(const Call&, int, int)>
struct Erased<Function> {
  static void run(const void* call, int part, int parts) { Function(*static_cast<const Call*>(call), part, parts); }
};

template <auto Function>
constexpr KernelRow row(std::string_view name, Isa isa) {
  return {name, isa, &Erased<Function>::run};
}

constexpr KernelRow kRows[] = {
#include "lissome/kernel/kernel_rows.inc"
};

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::portable: return "portable";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::avx512_vnni: return "avx512_vnni";
    case Isa::avx512_bf16: return "avx512_bf16";
    case Isa::amx: return "amx";
  }
  return "portable";
}

bool can_run(Isa isa) {
  switch (isa) {
    case Isa::portable: return true;
    case Isa::avx2: return has(Feature::avx2) && has(Feature::fma) && has(Feature::f16c);
    case Isa::avx512: return can_run(Isa::avx2) && has(Feature::avx512);
    case Isa::avx512_vnni: return can_run(Isa::avx512) && has(Feature::avx512_vnni);
    case Isa::avx512_bf16: return can_run(Isa::avx512_vnni) && has(Feature::avx512_bf16);
    case Isa::amx: return can_run(Isa::avx512_bf16) && has(Feature::amx_bf16) && has(Feature::amx_int8);
  }
  return false;
}

std::span<const KernelRow> kernel_rows() { return kRows; }

std::vector<KernelRow> kernel_rows(std::string_view name) {
  std::vector<KernelRow> rows;
  for (const KernelRow& row : kRows) {
    if (row.name == name) rows.push_back(row);
  }
  return rows;
}

const KernelRow& find_kernel(std::string_view name) {
  for (const KernelRow& row : kRows) {
    if (row.name == name && can_run(row.isa)) return row;
  }
  throw_error(ErrorKind::internal, "there is no kernel named ", quote(name));
}

}  // namespace lissome
