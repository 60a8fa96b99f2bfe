// What the runtime runs: data, free of torch. Made by lower, kept in model.lissome by plan_io, bound to input sizes by
// binding, run by session. A plan may come from an untrusted file: check_plan() and the binders of steps check
// everything that memory safety rests on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lissome/base.h"
#include "lissome/runtime/plan/size_expression.h"

namespace lissome {

// A position in Plan::values.
enum class PlanValueId : int32_t { none = -1 };
constexpr bool is_value(PlanValueId id) { return id >= PlanValueId{0}; }

// Where the bytes of a value lie.
enum class Storage : uint8_t {
  input,     // in the caller's memory
  constant,  // in Plan::arrays, never written
  state,     // in the session's own copy of an array; written by Plan::writes when a run ends
  arena,     // in memory that the session plans; in the caller's memory when it is an output
  view,      // in the memory of another value, made by a view step
  held,      // by the reference library
};

enum class PlanKind : uint8_t { tensor, integer, floating, boolean, other };

// The order in which the elements of a dense value lie.
enum class Format : uint8_t { row_major, channels_last };

struct PlanValue {
  std::string name;  // as in the program
  Storage storage = Storage::held;
  PlanKind kind = PlanKind::tensor;
  Dtype dtype = Dtype::f32;
  bool sized = false;  // dtype and sizes are stated; always, but for held values that only the reference reads
  std::vector<SizeExpression> sizes;
  Format format = Format::row_major;
  int array = -1;  // of constants and state: position in Plan::arrays
  // Position in Program::values of the program that was lowered; -1 where it has none. Never of plans in files.
  int program_value = -1;
};

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>>;

// Named settings of a step. Reading one that is missing without a default, or of another type, throws invalid_input.
class Attributes {
 public:
  std::vector<std::pair<std::string, Attribute>> entries;

  void set(std::string name, Attribute value);
  const Attribute* find(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t fallback) const;
  double number(std::string_view name, double fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
};

// Where a step comes from, in the user's words; one per node that went into it.
struct PlanOrigin {
  std::string node;  // the name of the node's first result
  std::string op;    // "aten::linear"
  std::string source, code, module, module_type;
  int program_node = -1;  // position in Program::nodes of the program that was lowered; never of plans in files
  int choice = -1;        // position in Plan::choices; -1: there was nothing to choose, or the file is older than this
};

struct PlanStep {
  std::string kernel;  // a row of the step table: "linear_f32", "view", "reference"
  Attributes attributes;
  std::vector<PlanValueId> operands;  // none where an optional operand is absent
  std::vector<PlanValueId> results;
  std::vector<PlanOrigin> origins;
  std::string program;          // of reference steps: the nodes, as the text of a program
  bool keeps_operands = false;  // of reference steps: results may share memory with operands
  bool joins_next = false;      // lowering may join it with the step that alone reads it; never of plans in files
};

// A weight of the program under its PyTorch name, or an array that lowering prepacked.
struct PlanArray {
  std::string name;
  bool packed = false;
  Array array;
};

// What the sizes of a call satisfy: `slack` is at least 0.
struct PlanRequirement {
  std::string text;  // "n % 2 == 0"
  SizeExpression slack;
};

struct PlanInput {
  std::string name;
  PlanValueId value = PlanValueId::none;
};

struct PlanOutput {
  using Literal = std::variant<std::monostate, int64_t, double, bool, std::string>;
  std::string name;
  PlanValueId value = PlanValueId::none;  // none: the output is the literal
  Literal literal;                        // monostate is none
  // The step behind which the run gives it away (OutputTaker), so that its memory is free for later steps;
  // -1: it leaves when the run ends. Never of plans in files.
  int leaves_after = -1;
};

// `target` (a state value, or an input) <- `value` when a run has ended.
struct PlanWrite {
  PlanValueId target = PlanValueId::none;
  PlanValueId value = PlanValueId::none;
};

// For --explain: what could have computed a node, and why it was or was not taken.
struct PlanCandidate {
  std::string name;        // "linear_f32", "mkldnn_linear", "reference"
  std::string refused;     // the reason; empty when accepted
  double nanoseconds = 0;  // measured, 0 when not timed
};
struct PlanChoice {
  std::string node, op;
  std::string chosen;
  std::string reason;  // "forced", "timed", "first accepted"
  std::vector<PlanCandidate> candidates;
};

struct PlanMachine {
  std::string processor, features;
  int threads = 0;
};

struct Plan {
  PlanMachine machine;
  std::string device = "cpu";  // another, such as "cuda:0": all steps are reference steps, which run there
  std::vector<PlanDimension> dimensions;
  std::vector<PlanRequirement> requirements;
  std::vector<PlanInput> inputs;
  std::vector<PlanOutput> outputs;
  std::string input_tree, output_tree;  // how inputs and outputs nest in the caller's call: JSON, empty when flat
  std::vector<PlanArray> arrays;
  std::vector<PlanValue> values;
  std::vector<PlanStep> steps;
  std::vector<PlanWrite> writes;
  std::vector<PlanChoice> choices;
  // Lowered in this process, from a program that passed the gate: the programs of its reference steps are not judged
  // again (a training step's gradients would not pass). Never of plans in files.
  bool made_here = false;

  PlanValue& value(PlanValueId id) { return values[static_cast<size_t>(id)]; }
  const PlanValue& value(PlanValueId id) const { return values[static_cast<size_t>(id)]; }
  PlanValueId add_value(PlanValue value);
  std::vector<PlanValueId> value_ids() const;  // of all values, in their order
  bool needs_reference() const;
};

// How this machine differs from the one that the plan was made for and measured on, as one sentence; empty when it does
// not. A plan gives the same answers anywhere, because kernels are looked up by name for the processor at hand; only
// the choice among them may not be the fastest.
std::string describe_other_machine(const PlanMachine& made, int threads);

inline constexpr std::string_view kReferenceStep = "reference";

// Throws invalid_input: every value is defined once and before use, positions lie inside their tables, arrays fit the
// values that name them.
void check_plan(const Plan& plan);

std::string_view storage_name(Storage storage);
std::string_view plan_kind_name(PlanKind kind);
std::string_view format_name(Format format);
std::optional<Storage> parse_storage(std::string_view name);
std::optional<PlanKind> parse_plan_kind(std::string_view name);
std::optional<Format> parse_format(std::string_view name);

// Strides, in elements, of a dense value. channels_last of rank 3 to 5 puts dimension 1 last; of other ranks it is
// row-major.
Sizes dense_strides(std::span<const int64_t> sizes, Format format);

}  // namespace lissome
