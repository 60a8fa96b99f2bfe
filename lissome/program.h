// Face of program: the representation, its text, checks, meaning, facts, imports and files.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lissome/program/activation.h"
#include "lissome/program/import/detect.h"
#include "lissome/program/program.h"

// Complete where it is used: <ATen/core/ivalue.h>, <ATen/core/function_schema.h>.
namespace c10 {
struct IValue;
}

namespace lissome {

// ---- text ----------------------------------------------------------------------------------------------------------
// `%3: f32[8, 64] = aten::linear(%x, @fc.weight, @fc.bias)`; @name is a weight. Defaults at the tail are left out.
// docs/program-text.md shows it; the grammar is drawn in print.cpp.
struct PrintOptions {
  bool origins = true;       // source lines behind nodes, and the call tree
  bool declarations = true;  // dimensions, inputs and weights
};
std::string print_program(const Program& program, const PrintOptions& options = {});
std::string print_node(const Program& program, const Node& node);
std::string print_argument(const Program& program, const Argument& argument);
// "aten::linear of encoder.fc (net.py:12)": the op and where the user's model calls it, as far as that is known; for
// messages. The second for what has another name; `origin` may be null.
std::string describe_node(const Node& node);
std::string describe_place(std::string name, const Origin* origin);
// parse(print(p)) == p. Weights are declared by dtype and sizes; their tensors come from `weights` by name, or are
// zeros when absent there. For tests there is a short form: inputs and weights may be declared where they are first
// used
// (`%x: f32[N, 64]`), names of sizes need no declaration, overloads may be left out where the arguments tell, and
// without `return` the values that nothing reads leave. Throws invalid_input with line and column, unsupported for an
// unknown op.
Program parse_program(std::string_view text, const std::vector<std::pair<std::string, at::Tensor>>& weights = {});
// The same, but every weight must be there.
Program parse_complete_program(std::string_view text, const std::vector<std::pair<std::string, at::Tensor>>& weights);
// The same for text that came out of a file: every weight must be there, the program is verified (invalid_input) and
// judged (judge_program).
Program parse_judged_program(std::string_view text, const std::vector<std::pair<std::string, at::Tensor>>& weights);
// The weights of a program and of its bodies, by the names under which they are taken above.
std::vector<std::pair<std::string, at::Tensor>> list_weights_by_scope(const Program& program);
// Same structure, names, types and literals (tensors of weights by identity of dtype and sizes, not by content).
bool same_program(const Program& left, const Program& right);
// Line-wise, unified: what a pass did. Empty when equal but for the numbers of anonymous values.
std::string diff_programs(const Program& before, const Program& after);
std::string diff_lines(std::string_view before, std::string_view after);

// ---- checks --------------------------------------------------------------------------------------------------------
// Each stage is stricter. imported: values defined once before use, arguments fit the schema, writes target state.
// optimized: also pure (no node writes but barriers), no dead nodes. compressed: quantized data are u8/s8 with scales.
// ready: only barriers write, casts explicit (no autocast region).
enum class Stage : uint8_t { imported, optimized, compressed, ready };
// Throws internal, naming the node.
void verify_program(const Program& program, Stage stage);
// The gate for what comes from files and recorded modules: throws unsupported, naming op, module path and source line,
// when the program or a body of it calls an op that is neither on the list of ops that a model file may call
// (allowed_ops.h), nor ours, nor the user's own and allowed by allow_op(). Nothing of the program may run before.
void judge_program(const Program& program);
// The other gate for what comes from files: passes and lowering believe what a program says of its values. Throws
// invalid_input, naming the node, where an op refuses such operands or gives a result of another dtype, rank or size.
// Calls no op on the model's data. Ops whose results depend on data are taken at the program's word.
void check_types(const Program& program);

// ---- effects -------------------------------------------------------------------------------------------------------
// What a node does beyond computing its results, from schema annotations, tags and a short list of ops whose schema
// understates it. The one place that knows.
struct Effects {
  std::vector<int> writes;       // argument positions written
  std::vector<int> aliases;      // argument positions with which a result may share storage
  bool may_alias = false;        // there is such a position
  bool random = false;           // draws from the generator
  bool shape_from_data = false;  // a result's sizes depend on values, or a number is read out of a tensor
  bool check = false;            // computes nothing but refuses bad values: stays although nothing reads it
  bool barrier() const { return !writes.empty(); }
};
Effects find_effects(const Program& program, const Node& node);
// Which values, by ValueId, may share storage with something that a node writes in place: what reads them may not be
// moved or merged with another reader. Empty when no node writes.
std::vector<bool> find_written_values(const Program& program);
// By ValueId: equal numbers for values that may share storage.
std::vector<int> find_alias_classes(const Program& program);
// No writes, not random, no check; bodies included: may be merged, recomputed and dropped when unread.
bool is_pure(const Program& program, const Node& node);

// ---- meaning -------------------------------------------------------------------------------------------------------
struct InterpretOptions {
  bool gradients = false;            // record autograd (else runs under no_grad)
  bool write_state = false;          // apply `program.writes` to weights and inputs at the end (else they are dropped)
  std::optional<at::Device> device;  // where inputs and weights are moved to first; default: where they are
  // Called after each node of the outermost program with its results.
  std::function<void(const Node&, std::span<const c10::IValue> results)> observe;
  // When set, receives the values that `program.writes` would store, in their order (write_state may be false).
  std::vector<at::Tensor>* written = nullptr;
};
// Runs every node through the dispatcher: the oracle for passes and kernels. Inputs in the program's order; values are
// freed at their last use. Throws invalid_input when inputs do not fit the signature (name, seen, allowed).
std::vector<c10::IValue> interpret(const Program& program, std::vector<c10::IValue> inputs,
                                   const InterpretOptions& options = {});
// One node on given argument values, through the dispatcher.
std::vector<c10::IValue> interpret_node(const Node& node, std::span<const c10::IValue> arguments);
// A boxed call of an op with a schema: arguments in schema form become results. Looks at the arguments first: tensors
// that must be there, sparse indices, dtypes, and what kernels of ATen's take at their word. Memory that the op leaves
// unset is zero-filled: it may hold what the process worked on before. A handle to interned facts. Throws
// invalid_input.
class CheckedCall {
 public:
  explicit CheckedCall(const Op& op);
  void operator()(std::vector<c10::IValue>& stack) const;
  void check(std::span<const c10::IValue> arguments) const;  // without the call

 private:
  const struct CallFacts* facts_;
};
// A literal as the dispatcher takes it.
c10::IValue to_ivalue(const Argument& literal);
// An argument with its values looked up; lists stay generic lists of what they hold.
c10::IValue resolve_argument(const Argument& argument, const std::function<c10::IValue(ValueId)>& lookup);
// The form that a schema argument wants; invalid_input naming the argument when there is none.
c10::IValue fit_to_schema(c10::IValue value, const c10::Argument& expected);

// ---- facts ---------------------------------------------------------------------------------------------------------
// Uses of each value: (node position, argument position); outputs and writes count as uses at position nodes.size().
struct Uses {
  std::vector<std::vector<std::pair<int, int>>> by_value;  // by ValueId
  std::vector<int> producer;                               // node position, -1 for inputs and weights
  int count(ValueId id) const { return static_cast<int>(by_value.at(static_cast<size_t>(id)).size()); }
};
Uses find_uses(const Program& program);
// The node position after which a value is dead (nodes.size() when it leaves the program), by ValueId; -1 unused.
std::vector<int> find_last_uses(const Program& program);

// Concrete facts from running once on `inputs`: every value's dtype, sizes and strides; and a check of the effects
// table (storages and versions compared) and of shape functions: a disagreement is an internal error.
struct BoundValue {
  ValueKind kind = ValueKind::any;
  Dtype dtype = Dtype::f32;
  Sizes sizes, strides;
  int64_t storage = -1;                                       // equal numbers share storage
  std::optional<std::variant<int64_t, double, bool>> number;  // of integer, floating and boolean values
};
struct Bound {
  std::vector<BoundValue> values;  // by ValueId
  DimensionBindings dimensions;
};
Bound bind_program(const Program& program, const std::vector<c10::IValue>& inputs);
// Sizes of the named dimensions that these inputs imply; invalid_input when they contradict or leave the range.
DimensionBindings bind_dimensions(const Program& program, std::span<const c10::IValue> inputs);
// Names of the weights and inputs that each call updates.
std::vector<std::string> list_written_names(const Program& program);
// Throws invalid_input where the sizes do not meet a requirement of the program.
void check_requirements(const Program& program, const DimensionBindings& sizes);
// Fills unknown types and keeps named sizes where the inputs agree; used after passes that add values.
void infer_types(Program& program, const std::vector<c10::IValue>& inputs);

// The number of threads on which libtorch runs the caller's ops, as long as this lives; then what it was before, which
// is the choice of whoever else uses libtorch in this process. `threads` 0: as it is.
class TorchThreads {
 public:
  explicit TorchThreads(int threads);
  ~TorchThreads();
  TorchThreads(const TorchThreads&) = delete;
  TorchThreads& operator=(const TorchThreads&) = delete;

 private:
  int before_;
};

// ---- in and out ----------------------------------------------------------------------------------------------------
// A `.pt2` archive of torch.export.save (2.11 to 2.13). Nothing in it is run or unpickled. Throws invalid_input (broken
// or hostile archive), unsupported (an op or argument, naming op, module path and source line).
Program import_pt2(const std::string& path);
// model.lissome: see base/model_file.cpp for the container and save.cpp for what a program puts into it. Loaded weights
// lie in the mapped file, copied page by page when written to, so that training in place leaves the file alone.
void save_program(const Program& program, const std::string& path);
// Throws invalid_input (broken or hostile file), unsupported (another kind of model, a newer format, an unknown op, a
// finished model that was written without its program).
Program load_program(const std::string& path);
// The same in memory, for callers that add a plan or further metadata. Arrays borrow the program's tensors.
struct ModelFile;
ModelFile pack_program(const Program& program);
Program unpack_program(const ModelFile& file);

}  // namespace lissome
