// Steps that choose elements or rows by numbers of the data. An index out of range is a fault that the session throws.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

inline constexpr DtypeSet kIndexDtypes = {Dtype::i64, Dtype::i32};

// y [..., columns] = rows of the table [rows, columns], for each of the indices [...]. With attributes `rows` and
// `columns` the table is a matrix of these sizes as linear_f32 or linear_bf16 packs it.
struct GatherRowsStep {
  static constexpr std::string_view kKernel = "gather_rows";
  static constexpr int64_t kMostTableSize = int64_t{1} << 40;
  Operand table, indices;
  Result y;
  bool negative_allowed = false;  // they count from the end
  int64_t rows = 0, columns = 0;  // 0: the table is not packed

  bool is_packed() const { return rows > 0; }

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("table", step.table, DtypeSet::all());
    fields.operand("indices", step.indices, kIndexDtypes);
    fields.result("y", step.y, DtypeSet::all());
    fields.flag("negative_allowed", step.negative_allowed);
    fields.integer("rows", step.rows, 1, kMostTableSize);
    fields.integer("columns", step.columns, 1, kMostTableSize);
  }
};

bool is_gather_form(std::string_view word);

// Elements of x, dense in row order, by `form`:
//   index    1 to kGatherIndices indices, which broadcast to each other and stand for the dimensions of x from `dim`
//            on; negative ones count from the end (aten::index.Tensor, aten::index_select)
//   gather   one index of the sizes of y, for dimension `dim` (aten::gather)
struct GatherStep {
  static constexpr std::string_view kKernel = "gather";
  Operand x, index;
  OperandList more_indices;
  Result y;
  std::string form;
  int64_t dim = 0;

  void add_index(int value) {
    if (index.value < 0) {
      index = {value};
    } else {
      more_indices.values.push_back(value);
    }
  }
  // All of them.
  std::vector<Operand> indices() const {
    std::vector<Operand> all = {index};
    for (const int value : more_indices.values) all.push_back({value});
    return all;
  }

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, DtypeSet::all());
    fields.operand("index", step.index, kIndexDtypes, ValueLayout::any);
    fields.operand("another index", step.more_indices, kIndexDtypes, ValueLayout::any);
    fields.result("y", step.y, DtypeSet::all());
    fields.text("form", step.form, is_gather_form, kRequired);
    fields.integer("dim", step.dim, 0, kMostDimension, kRequired);
  }
};

}  // namespace lissome
