// Steps that choose elements or rows by numbers of the data. An index out of range is a fault that the session throws.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

inline constexpr DtypeSet kIndexDtypes = {Dtype::i64, Dtype::i32};

// y [..., columns] = rows of the table [rows, columns], for each of the indices [...]. With attributes `rows` and
// `columns` the table is a matrix of these sizes as linear_f32 or linear_bf16 packs it.
// Case, rows = 4..11 (10000), width = 1..40 (768), a = 1..5 (16), b = 1..9 (128):
//   input %ids: i64[{a}, {b}]
//   parameter @table: f32[{rows}, {width}]
//   %0: f32[{a}, {b}, {width}] = aten::embedding(@table, %ids)
//   return %0
// Case, rows = 4..40 (10000), width = 1..40 (256), n = 1..9 (1024):
//   # A table that is computed, in bf16; indices are i32.
//   input %ids: i64[{n}]
//   input %x: f32[{rows}, {width}]
//   %small: i32[{n}] = aten::to.dtype(%ids, i32)
//   %table: bf16[{rows}, {width}] = aten::to.dtype(%x, bf16)
//   %0: bf16[{n}, {width}] = aten::embedding(%table, %small)
//   return %0
// Case, rows = 4..40 (4000), width = 1..40 (256), n = 1..9 (16):
//   # The table is the weight of a linear layer, too, and packed for it.
//   input %ids: i64[{n}]
//   parameter @table: f32[{rows}, {width}]
//   %0: f32[{n}, {width}] = aten::embedding(@table, %ids)
//   %1: f32[{n}, {rows}] = aten::linear(%0, @table, none)
//   return %1
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
    fields.leaves_open(step.table, {0});
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
// Case, a = 4..9 (64), b = 4..9 (128), c = 1..40 (64), rows = 1..5 (128), columns = 1..9 (64):
//   input %x: f32[{a}, {b}, {c}]
//   input %rows: i64[{rows}, 1]
//   input %columns: i64[{columns}]
//   %both: f32[{rows}, {columns}, {c}] = aten::index.Tensor(%x, [%rows, %columns])
//   return %both
// Case, a = 1..5 (64), b = 1..9 (64), c = 4..9 (128), k = 1..20 (8):
//   input %x: f32[{a}, {b}, {c}]
//   input %positions: i64[{a}, {b}, {k}]
//   %gathered: f32[{a}, {b}, {k}] = aten::gather(%x, -1, %positions)
//   return %gathered
// Case, a = 1..5 (256), b = 4..9 (64), c = 1..20 (128), k = 1..9 (48):
//   input %x: u8[{a}, {b}, {c}]
//   input %positions: i64[{k}]
//   %chosen: u8[{a}, {k}, {c}] = aten::index_select(%x, 1, %positions)
//   return %chosen
struct GatherStep {
  static constexpr std::string_view kKernel = "gather";
  Operand x, index;
  OperandList more_indices;
  Result y;
  std::string form;
  int64_t dim = 0;

  void add_index(PlanValueId value) {
    if (!is_value(index.value)) {
      index = {value};
    } else {
      more_indices.values.push_back(value);
    }
  }
  // All of them.
  std::vector<Operand> indices() const {
    std::vector<Operand> all = {index};
    for (const PlanValueId value : more_indices.values) all.push_back({value});
    return all;
  }

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, DtypeSet::all());
    fields.leaves_open(step.x, {0, 1});
    fields.operand("index", step.index, kIndexDtypes, ValueLayout::any);
    fields.operand("another index", step.more_indices, kIndexDtypes, ValueLayout::any);
    fields.result("y", step.y, DtypeSet::all());
    fields.text("form", step.form, is_gather_form, kRequired);
    fields.integer("dim", step.dim, 0, kMostDimension, kRequired);
  }
};

}  // namespace lissome
