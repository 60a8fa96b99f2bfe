// A plan in the making. Lowering walks the nodes of a program once, in order; for each it adds native steps, or keeps
// the node (perhaps rewritten) for the reference. finish() gathers kept neighbours into reference steps and drops what
// nothing uses.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "lissome/lower.h"
#include "lissome/lower/plan/packed_rows.h"
#include "lissome/runtime/step/step_fields.h"

namespace lissome {

struct ViewStep;

// Plan values of rows of f32 as u8, each with a scale and zero point of its own.
struct QuantizedRows {
  PlanValueId bytes = PlanValueId::none, scales = PlanValueId::none, zeros = PlanValueId::none;
};

// Plan values of rows of f32 as s8, with a scale and a sum for each group of 32.
struct QuantizedGroups {
  PlanValueId numbers = PlanValueId::none, scales = PlanValueId::none, sums = PlanValueId::none;
};

// A node for the reference: one of the program that is lowered, perhaps rewritten, or one that a candidate adds.
struct KeptNode {
  Node node;
  int program_node = -1;  // as in PlanOrigin
};

class PlanBuilder {
 public:
  // A working copy: candidates may add values and nodes of their own to program().
  PlanBuilder(Program program, int threads);

  Program& program() { return program_; }
  const Program& program() const { return program_; }
  const Plan& plan() const { return plan_; }

  // ---- what is known of a value
  const ValueType& type(ValueId id) const { return program_.value(id).type; }
  // Its dtype is known and its sizes follow from those of the inputs.
  bool is_sized(ValueId id) const;
  bool is_held(ValueId id) const;     // made by a kept node
  bool is_written(ValueId id) const;  // state or an input that the program writes
  // A weight that nothing writes; null otherwise.
  const at::Tensor* constant(ValueId id) const;
  Format format(ValueId id) const;
  bool is_strided_view(ValueId id) const;  // made by a view step, not dense in row order
  // The format whose order of dimensions the value has in memory; a part of something has that of the whole.
  Format nearest_format(ValueId id) const;
  // The format for what is made of all of them: channels last where one is stored so, or all lie so.
  Format shared_format(std::span<const ValueId> ids) const;

  // ---- making steps
  // Steps and kept nodes come from the program's node at this position from here on.
  void start_node(int position) { program_node_ = position; }
  PlanValueId use(ValueId id);                  // the plan's value; weights join the plan here
  PlanValueId use(const Argument& argument);    // none for none
  PlanValueId use_f32(const Argument& weight);  // the same, of a constant weight, which is converted once
  // The same, dense in this format: a copy step is added where the value lies otherwise, once per format.
  PlanValueId use_dense(ValueId id, const Node& reader, Format format = Format::row_major);
  PlanValueId use_dense(const Argument& argument, const Node& reader, Format format = Format::row_major);
  // Whether a step made the value, otherwise than dense in row order, and a copy step can lay it out so.
  bool may_lay_out(ValueId id) const;
  // A copy that is dense in this format, made by a step that comes from `node`.
  ValueId lay_out(ValueId id, const Node& node, Format format = Format::row_major);
  PlanValueId make(ValueId id, Storage storage = Storage::arena, Format format = Format::row_major);
  // A value that the program does not have, for steps that need several results.
  ValueId add_value(const std::string& name, Dtype dtype, std::vector<Dimension> sizes);
  // Adds the step that sees the plan's value `view.x` as `result`.
  PlanValueId add_view(ViewStep view, const Node& node, ValueId result);
  // How the dimensions of a view lie in memory: dimension i is dimension order[i] of something dense, or, of a part,
  // of the whole; an empty order is that of rows.
  void mark_permuted(ValueId id, std::vector<int64_t> order, bool dense_rows);
  void mark_part(ValueId id, std::vector<int64_t> order, bool dense_rows);
  // One run of memory for each position of the other dimensions, all equally far apart: what is dense in some order, or
  // a part of it that is cut along what is innermost or outermost there.
  void mark_even_runs(ValueId id) { strided_.at(id).even_runs = true; }
  bool has_even_runs(ValueId id) const;
  // Whether neighbours along the last dimension are neighbours in memory.
  bool has_dense_rows(ValueId id) const;
  std::vector<int64_t> memory_order(ValueId id) const;  // 0, 1, 2, ... of a value in row order
  bool lies_in(ValueId id, Format format) const;        // it has the format's order of dimensions
  bool is_innermost(ValueId id, int64_t dim) const;
  bool is_outermost(ValueId id, int64_t dim) const { return memory_order(id)[static_cast<size_t>(dim)] == 0; }
  bool is_part(ValueId id) const;  // of something larger, so that no order makes it dense
  // Adds the step once per value, however many linears read it.
  QuantizedRows quantize_rows(ValueId x, const Node& reader);
  QuantizedGroups quantize_groups(ValueId x, const Node& reader);
  // A packed weight, kept once per name.
  bool has_packed(const std::string& name) const { return packed_.contains(name); }
  PlanValueId add_packed(const std::string& name, Array array);
  PlanValueId find_packed(const std::string& name) const { return packed_.at(name); }
  // `value` holds the rows of `weight` as linear_f32 or linear_bf16 read them: an embedding of the same rows gathers
  // from there, so that a tied weight is held once.
  void note_packed_rows(const at::Tensor& weight, PlanValueId value);
  void add_step(PlanStep step, const Node& node);
  template <typename Step>
  void add_step(const Step& step, const Node& node) {
    add_step(write_step(step), node);
  }
  void keep_node(Node node);

  Plan finish();

  static PlanOrigin describe_origin(const Program& program, const Node& node, int program_node);

 private:
  using Item = std::variant<PlanStep, KeptNode>;
  // How a view lies that is not dense in row order.
  struct Strides {
    std::vector<int64_t> order;
    bool part = false, dense_rows = false, even_runs = false;
  };

  void drop_unread_items();
  void add_inputs();
  void add_outputs();
  bool is_given(ValueId id) const { return static_cast<int>(id) < given_values_; }  // not added by candidates
  PlanValue describe(ValueId id) const;
  std::vector<SizeExpression> describe_sizes(const ValueType& type) const;

  Program program_;
  const int given_values_;
  int program_node_ = -1;
  Plan plan_;
  std::vector<Item> items_;
  std::unordered_map<ValueId, PlanValueId> plan_values_;
  std::unordered_map<ValueId, bool> written_;
  std::unordered_map<ValueId, Strides> strided_;
  std::map<std::pair<ValueId, Format>, PlanValueId> dense_;
  std::unordered_map<std::string, PlanValueId> packed_;
  std::vector<PackedRows> packed_rows_;
  std::unordered_map<ValueId, QuantizedRows> quantized_;
  std::unordered_map<ValueId, QuantizedGroups> grouped_;
  std::vector<std::string> bound_names_;  // dimensions that the sizes of inputs bind
};

// Text of a program of these nodes: operands are its inputs, constants its weights, results its outputs.
struct ReferenceGroup {
  std::vector<ValueId> operands, results;
  std::string program;
  std::vector<PlanOrigin> origins;
  bool keeps_operands = false;
  std::vector<std::pair<std::string, at::Tensor>> body_weights;  // of bodies of control ops, by the names to find them
};
// `leaves` tells which results later steps, outputs or writes need; `is_constant` which weights the group may own.
ReferenceGroup make_reference_group(const Program& program, std::span<const KeptNode> nodes,
                                    const std::function<bool(ValueId)>& leaves,
                                    const std::function<bool(ValueId)>& is_constant);

}  // namespace lissome
