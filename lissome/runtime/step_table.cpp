// The one list of native steps. A plan may name these kernels, and "reference".
#include <array>

#include "lissome/runtime/step_rows.h"

namespace lissome {
namespace {

constexpr std::array kRows = {
    StepRow{"linear_f32", bind_linear_f32, false, 1u << 3},
};

}  // namespace

std::span<const StepRow> step_rows() { return kRows; }

const StepRow& find_step_row(std::string_view kernel) {
  for (const StepRow& row : kRows) {
    if (row.kernel == kernel) return row;
  }
  throw_error(ErrorKind::invalid_input, "plan: there is no kernel ", quote(kernel));
}

}  // namespace lissome
