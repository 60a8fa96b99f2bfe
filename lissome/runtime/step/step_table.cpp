// The one list of native steps. A plan may name these kernels, and "reference".
#include "lissome/runtime/step/step_families.h"

namespace lissome {

std::span<const StepRow> step_rows() {
  static const std::vector<StepRow> rows = [] {
    std::vector<StepRow> all;
    for (const auto list : {
#define LISSOME_LIST(name) name,
#include "lissome/runtime/step_lists.inc"
#undef LISSOME_LIST
         }) {
      for (const StepRow& row : list()) all.push_back(row);
    }
    return all;
  }();
  return rows;
}

const StepRow& find_step_row(std::string_view kernel) {
  for (const StepRow& row : step_rows()) {
    if (row.kernel == kernel) return row;
  }
  throw_error(ErrorKind::invalid_input, "plan: there is no kernel ", quote(kernel));
}

}  // namespace lissome
