#include "lissome/lower/plan/packed_rows.h"

#include <algorithm>
#include <cstring>

#include "lissome/lower/plan/plan_links.h"
#include "lissome/runtime/step/move/gather_steps.h"

namespace lissome {
namespace {

// Tied weights share their memory; a conversion may have copied them one by one.
bool have_same_elements(const Array& a, const Array& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes) return false;
  return a.storage == b.storage || std::memcmp(a.storage.get(), b.storage.get(), static_cast<size_t>(a.bytes())) == 0;
}

const PackedRows* find_packed_rows(const Plan& plan, const GatherRowsStep& step, std::span<const PackedRows> packed) {
  if (step.is_packed()) return nullptr;
  const PlanValue& table = plan.value(step.table.value);
  if (table.storage != Storage::constant) return nullptr;
  const Array& array = plan.arrays[static_cast<size_t>(table.array)].array;
  const auto found = std::find_if(packed.begin(), packed.end(),
                                  [&](const PackedRows& rows) { return have_same_elements(array, rows.weight); });
  return found == packed.end() ? nullptr : &*found;
}

// Constants that are kept need their own positions in order: what is left out is counted away from every number.
void remove_value(Plan& plan, PlanValueId removed) {
  const int array = plan.value(removed).array;
  plan.values.erase(plan.values.begin() + static_cast<std::ptrdiff_t>(removed));
  const auto close_gap = [&](PlanValueId& value) {
    if (value > removed) value = PlanValueId{static_cast<int>(value) - 1};
  };
  for (PlanInput& input : plan.inputs) close_gap(input.value);
  for (PlanOutput& output : plan.outputs) close_gap(output.value);
  for (PlanWrite& write : plan.writes) close_gap(write.target), close_gap(write.value);
  for (PlanStep& step : plan.steps) {
    for (PlanValueId& operand : step.operands) close_gap(operand);
    for (PlanValueId& result : step.results) close_gap(result);
  }
  const auto reads_array = [&](const PlanValue& value) { return value.array == array; };
  if (std::any_of(plan.values.begin(), plan.values.end(), reads_array)) return;
  plan.arrays.erase(plan.arrays.begin() + array);
  for (PlanValue& value : plan.values) value.array -= value.array > array ? 1 : 0;
}

}  // namespace

void share_packed_rows(Plan& plan, std::span<const PackedRows> packed) {
  std::vector<PlanValueId> tables;
  for (PlanStep& planned : plan.steps) {
    if (!is_step<GatherRowsStep>(planned)) continue;
    auto step = read_step<GatherRowsStep>(planned);
    const PackedRows* rows = find_packed_rows(plan, step, packed);
    if (rows == nullptr) continue;
    tables.push_back(step.table.value);
    step.table = {rows->value};
    step.rows = rows->weight.sizes[0];
    step.columns = rows->weight.sizes[1];
    replace_step(planned, step);
  }
  std::sort(tables.begin(), tables.end());
  tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
  const PlanLinks links = link_plan(plan);
  // From the last one on, so that the numbers of those before stay.
  for (size_t i = tables.size(); i-- > 0;) {
    if (links.readers[static_cast<size_t>(tables[i])].empty()) remove_value(plan, tables[i]);
  }
}

}  // namespace lissome
