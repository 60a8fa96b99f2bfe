// How passes change a program: read it with facts that stay true during the sweep, record changes, apply them at once.
// Most fusions turn the last node of a pattern into the fused op (its results keep their ids, so no reader changes) and
// let the nodes that lost their readers die. Around in-place nodes that the importer could not make pure nothing
// changes: what shares storage with what they write is neither replaced nor read at another place.
#pragma once

#include <deque>
#include <functional>
#include <initializer_list>
#include <optional>
#include <unordered_set>
#include <vector>

#include "lissome/pass.h"
#include "lissome/pass/passes.h"
#include "lissome/program.h"

namespace lissome {

class Rewriter {
 public:
  explicit Rewriter(Program& program);

  Program& program() { return program_; }
  const Program& program() const { return program_; }
  int node_count() const { return static_cast<int>(program_.nodes.size()); }
  Node& node(int position) { return program_.nodes.at(static_cast<size_t>(position)); }

  // The node that makes a value; null for inputs and weights. Replaced uses are looked through.
  Node* producer(ValueId value);
  // Same, when `value` is made by this op, else null.
  Node* producer(const Argument& argument, std::string_view op);
  // The type of a value; `any` for a literal.
  const ValueType& type_of(const Argument& argument) const;
  // Readers of a value that are alive: arguments of nodes, program outputs and writes.
  int use_count(ValueId value) const;
  bool has_one_use(ValueId value) const { return use_count(value) == 1; }
  // The only node that reads `value`, when it is read once and by a node; else -1.
  int only_reader(ValueId value);
  std::vector<int> readers(ValueId value);  // node positions, ascending, each once

  // The argument with replaced uses looked through.
  Argument resolve(const Argument& argument) const;

  // A weight that nothing writes: its tensor may be computed with ahead of time.
  bool is_constant(ValueId value) const;

  // Turns the node at `position` into another op; its results, and so its readers, stay. Not done, and false, where it
  // would move what reads, or replace what makes, written values.
  bool replace_node(int position, Op op, ArgumentList arguments);
  // A new node before `position`; returns its first result.
  ValueId insert_before(int position, Op op, ArgumentList arguments, std::vector<ValueType> types,
                        std::shared_ptr<const Origin> origin);
  Node& inserted(ValueId result);  // the whole inserted node, for its further results
  // Every reader of `old_value` reads `replacement` instead; the producer dies unless something else keeps it. Not
  // done, and false, where written values are involved, as above.
  bool replace_value(ValueId old_value, Argument replacement);

  // Takes away a node that makes nothing.
  void remove_node(int position);
  // Nothing reads what the node makes any more: it goes with finish().
  bool is_dead(int position) { return dead_.contains(&node(position)); }

  // Applies everything, drops dead nodes. Returns the number of replace_node, replace_value and remove_node calls.
  int finish();

 private:
  void grow();  // weights and nodes may have been added since the sweep began
  void count_uses(const Argument& argument, int by);
  void change_use_count(ValueId value, int by);
  bool is_unread(const Node& node) const;
  bool is_written(const Argument& argument) const;
  bool touches_written(const Node& node) const;  // reads or makes such values

  Program& program_;
  std::vector<bool> written_;                         // by ValueId: shares storage with what a node writes in place
  std::unordered_set<ValueId> state_;                 // weights that the program writes, and those tied to them
  std::vector<Node*> producer_;                       // by ValueId
  std::vector<int> use_count_;                        // by ValueId
  std::vector<std::vector<int>> readers_;             // by ValueId, may hold stale positions
  std::vector<std::optional<Argument>> replacement_;  // by ValueId
  std::deque<std::pair<int, Node>> inserted_;         // (before position, node)
  std::unordered_set<const Node*> dead_;              // their arguments count no more
  std::unordered_set<const Node*> removed_;
  int rewrites_ = 0;
};

// Looks at how its first argument lies in memory, not only at its elements.
bool reads_memory(const Node& node);

// A new constant; the name gets a number where another weight has it already.
ValueId add_constant(Program& program, const std::string& name, at::Tensor tensor);
// The name of the weight that a value is.
const std::string& name_of_weight(const Program& program, const Argument& argument);

// The tensor of a constant weight, undefined otherwise.
at::Tensor constant_tensor(const Rewriter& rewriter, const Argument& argument);
// The number in a literal or in a constant one-element tensor of a weight.
std::optional<double> constant_number(const Rewriter& rewriter, const Argument& argument);
// Sizes when all are known numbers.
std::optional<Sizes> constant_sizes(const ValueType& type);
// A tensor of a floating dtype whose sizes are known, as expressions or numbers.
bool is_sized_float(const ValueType& type);
// Sizes as arguments of reshape or expand: numbers, and -1 for at most one that is no number. Nothing otherwise, or
// when a size of zero would leave -1 open.
std::optional<ArgumentList> literal_sizes(const std::vector<Dimension>& sizes);
// The sizes of `left + right`; nothing when a pair is neither equal nor one.
std::optional<std::vector<Dimension>> broadcast_sizes(const std::vector<Dimension>& left,
                                                      const std::vector<Dimension>& right);
ValueType tensor_type(Dtype dtype, std::vector<Dimension> sizes);
// The type of a tensor.
ValueType type_of(const at::Tensor& tensor);
// Integers of a literal list; empty optional when any item is a value.
std::optional<std::vector<int64_t>> literal_ints(const Argument& argument);

}  // namespace lissome
