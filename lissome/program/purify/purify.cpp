// Purity by renaming; see purify.h. Every tensor value is either a root (it has storage of its own) or a view of
// another value. A write through a view becomes the view's new contents, put back view by view into the root; the
// root's version goes up, and whoever reads another view of it later gets that view made anew. Values that may share
// storage in a way that the program does not tell are given up together when a write would be seen through them: they
// keep their in-place nodes, and the rest is done again without them.
#include "lissome/program/purify/purify.h"

#include <algorithm>
#include <set>

#include "lissome/program.h"
#include "lissome/program/purify/alias_sets.h"
#include "lissome/program/purify/purify_views.h"
#include "lissome/program/purify/purify_writes.h"
#include "lissome/program/purify/unsafe_splits.h"

namespace lissome {
namespace {

// Thrown inside of this file alone: values of this class keep their writes.
struct Refusal {
  int alias_class = -1;
};

class Purifier {
 public:
  Purifier(const Program& original, const AliasSets& sets, const std::set<int>& excluded,
           const std::set<ValueId>& parted)
      : original_(original),
        sets_(sets),
        excluded_(excluded),
        parted_(parted),
        contiguity_(original),
        last_use_(find_last_uses(original)),
        program_(original),
        entries_(original.values.size()) {
    program_.nodes.clear();
    program_.nodes.reserve(original.nodes.size());
  }

  Program run();

 private:
  // How an original value stands now. A view knows the step that makes it from its parent.
  struct Entry {
    int root = -1;
    ValueId parent = ValueId::none;
    int step = -1;  // index into steps_; -1: the parent itself under another name
    ValueId current = ValueId::none;
    int64_t version = 0;
    ValueId renamed = ValueId::none;  // reads of this value are reads of that one
  };
  struct Root {
    int64_t version = 0;
    bool external = false;  // an input or a weight: writes must reach it
    std::vector<ValueId> members;
    std::set<int> uncertain;  // roots that may be the same storage
  };

  bool is_kept(ValueId id) const { return excluded_.contains(sets_.find_class(id)); }
  [[noreturn]] void refuse(ValueId id) const { throw Refusal{sets_.find_class(id)}; }
  Entry& entry(ValueId id) { return entries_[static_cast<size_t>(id)]; }

  void add_root(ValueId id, bool external);
  void add_view(ValueId id, ValueId parent, int step);
  void add_weights();
  ValueId follow(ValueId id);
  ValueId read(ValueId id);
  ValueId read_place(ValueId id);
  Argument read_argument(const Argument& argument);
  Node read_node(const Node& node);
  void write(ValueId id, ValueId contents, size_t position);
  ValueId put_back(ValueId view, ValueId contents);
  void check_uncertain(int root, ValueId id, size_t position);

  void visit(const Node& node, size_t position);
  void keep_node(const Node& node);
  void change_look(const Node& node, const Op& look);
  void add_results(const Node& node);
  void name_after(ValueId id, ValueId written);
  bool visit_control(const Node& node, size_t position);
  void finish();

  const Program& original_;
  const AliasSets& sets_;
  const std::set<int>& excluded_;
  const std::set<ValueId>& parted_;  // lists whose parts are memory of their own
  const Contiguity contiguity_;
  const std::vector<int> last_use_;
  Program program_;
  std::vector<Entry> entries_;  // by original value
  std::vector<Root> roots_;
  std::vector<Node> steps_;
};

void Purifier::add_root(ValueId id, bool external) {
  entry(id) = {static_cast<int>(roots_.size()), ValueId::none, -1, id, 0, ValueId::none};
  roots_.push_back({0, external, {id}, {}});
}

void Purifier::add_view(ValueId id, ValueId parent, int step) {
  const int root = entry(parent).root;
  entry(id) = {root, parent, step, id, roots_[static_cast<size_t>(root)].version, ValueId::none};
  roots_[static_cast<size_t>(root)].members.push_back(id);
}

// Tied weights that look at the same elements are one storage; any other overlap is uncertain.
void Purifier::add_weights() {
  std::map<const void*, std::vector<const Weight*>> by_storage;
  for (const Weight& weight : original_.weights) {
    const bool stored = weight.tensor.defined() && weight.tensor.has_storage();
    auto* const tied = stored ? &by_storage[weight.tensor.storage().unsafeGetStorageImpl()] : nullptr;
    const auto same = [&](const Weight* other) {
      return other->tensor.sizes() == weight.tensor.sizes() && other->tensor.strides() == weight.tensor.strides() &&
             other->tensor.storage_offset() == weight.tensor.storage_offset();
    };
    const Weight* twin = nullptr;
    if (tied != nullptr) {
      const auto found = std::find_if(tied->begin(), tied->end(), same);
      if (found != tied->end()) twin = *found;
    }
    if (twin != nullptr) {
      add_view(weight.value, twin->value, -1);
      entry(weight.value).current = twin->value;
      continue;
    }
    add_root(weight.value, true);
    if (tied == nullptr) continue;
    for (const Weight* other : *tied) {
      roots_[static_cast<size_t>(entry(other->value).root)].uncertain.insert(entry(weight.value).root);
      roots_.back().uncertain.insert(entry(other->value).root);
    }
    tied->push_back(&weight);
  }
}

ValueId Purifier::follow(ValueId id) {
  while (entry(id).renamed != ValueId::none) id = entry(id).renamed;
  return id;
}

// The value that holds now what `id` would show; makes views anew where their root has changed since.
ValueId Purifier::read(ValueId id) { return is_kept(id) ? id : read_place(follow(id)); }

ValueId Purifier::read_place(ValueId id) {
  if (entry(id).root < 0) return id;
  const int64_t version = roots_[static_cast<size_t>(entry(id).root)].version;
  if (entry(id).version == version || entry(id).parent == ValueId::none) return entry(id).current;
  const ValueId base = read_place(entry(id).parent);
  if (entry(id).step < 0) {
    entry(id).current = base;
  } else {
    Node again = steps_[static_cast<size_t>(entry(id).step)];
    again.arguments[0] = base;
    for (size_t i = 1; i < again.arguments.size(); ++i) again.arguments[i] = read_argument(again.arguments[i]);
    const Value& shown = original_.value(id);
    again.results = {program_.add_value(shown.type, shown.name)};
    entry(id).current = again.results[0];
    program_.nodes.push_back(std::move(again));
  }
  entry(id).version = version;
  return entry(id).current;
}

Argument Purifier::read_argument(const Argument& argument) {
  if (argument.is_value()) return read(argument.value());
  if (!argument.is_list()) return argument;
  ArgumentList items;
  for (const Argument& item : argument.list()) items.push_back(read_argument(item));
  return items;
}

Node Purifier::read_node(const Node& node) {
  Node now = node;
  for (Argument& argument : now.arguments) argument = read_argument(argument);
  return now;
}

// A write that may be seen through values whose sharing is unknown cannot be told apart from one that is not.
void Purifier::check_uncertain(int root, ValueId id, size_t position) {
  std::set<int> reached = {root};
  std::vector<int> pending = {root};
  while (!pending.empty()) {
    const Root& from = roots_[static_cast<size_t>(pending.back())];
    pending.pop_back();
    for (const int other : from.uncertain) {
      if (reached.insert(other).second) pending.push_back(other);
    }
  }
  reached.erase(root);
  for (const int other : reached) {
    const Root& seen = roots_[static_cast<size_t>(other)];
    if (seen.external) refuse(id);
    for (const ValueId member : seen.members) {
      if (last_use_[static_cast<size_t>(member)] > static_cast<int>(position)) refuse(id);
    }
  }
}

// One step towards the root: the parent's new contents when `view` now holds `contents`.
ValueId Purifier::put_back(ValueId view, ValueId contents) {
  const Entry& seen = entry(view);
  if (seen.step < 0) return contents;
  const Node& step = steps_[static_cast<size_t>(seen.step)];
  std::optional<ValueId> base;
  if (step.is("lissome::getitem")) {
    const Entry& list = entry(seen.parent);
    const int64_t* item = step.arguments[1].get<int64_t>();
    if (list.parent == ValueId::none || list.step < 0 || item == nullptr) refuse(view);
    Node split = steps_[static_cast<size_t>(list.step)];
    base = write_through_view(program_, split, *item, read_place(list.parent), contents);
  } else {
    Node current = step;
    for (size_t i = 1; i < current.arguments.size(); ++i) current.arguments[i] = read_argument(current.arguments[i]);
    base = write_through_view(program_, current, std::nullopt, read_place(seen.parent), contents);
  }
  if (!base) refuse(view);
  return *base;
}

void Purifier::write(ValueId id, ValueId contents, size_t position) {
  id = follow(id);
  const int root = entry(id).root;
  if (root < 0) refuse(id);
  check_uncertain(root, id, position);
  std::vector<std::pair<ValueId, ValueId>> changed = {{id, contents}};
  while (entry(id).parent != ValueId::none) {
    const bool item = entry(id).step >= 0 && steps_[static_cast<size_t>(entry(id).step)].is("lissome::getitem");
    contents = put_back(id, contents);
    id = item ? entry(entry(id).parent).parent : entry(id).parent;
    changed.emplace_back(id, contents);
  }
  const int64_t version = ++roots_[static_cast<size_t>(root)].version;
  for (const auto& [value, now] : changed) {
    entry(value).current = now;
    entry(value).version = version;
  }
}

void Purifier::add_results(const Node& node) {
  if (node.is("lissome::getitem") && parted_.contains(node.arguments[0].value()) && !is_kept(node.results[0]))
    return add_root(node.results[0], false);
  const Effects effects = find_effects(original_, node);
  const bool first = effects.aliases == std::vector<int>{0} && node.arguments[0].is_value() && node.results.size() == 1;
  const Sharing sharing = effects.aliases.empty()         ? Sharing::copy
                          : node.op.has_schema() && first ? find_sharing(original_, node, contiguity_)
                                                          : Sharing::unknown;
  if (sharing == Sharing::alias && !is_kept(node.results[0])) {
    const ValueId parent = follow(node.arguments[0].value());
    if (entry(parent).root >= 0) {
      steps_.push_back(node);
      add_view(node.results[0], parent, static_cast<int>(steps_.size()) - 1);
      return;
    }
  }
  for (const ValueId result : node.results) {
    if (is_kept(result)) continue;
    add_root(result, false);
    if (sharing == Sharing::copy) continue;
    const int root = entry(result).root;
    for (const int position : effects.aliases) {
      for_each_value(node.arguments[static_cast<size_t>(position)], [&](ValueId id) {
        const int other = entry(follow(id)).root;
        if (other < 0 || other == root) return;
        roots_[static_cast<size_t>(other)].uncertain.insert(root);
        roots_[static_cast<size_t>(root)].uncertain.insert(other);
      });
    }
  }
}

// Reads of `id` are reads of `written` from now on.
void Purifier::name_after(ValueId id, ValueId written) {
  add_root(id, false);
  entry(id).renamed = written;
  roots_[static_cast<size_t>(entry(written).root)].members.push_back(id);
}

void Purifier::keep_node(const Node& node) {
  program_.nodes.push_back(read_node(node));
  add_results(node);
}

// The result is a new look at the same storage, and the written value has that look from now on.
void Purifier::change_look(const Node& node, const Op& look) {
  const ValueId self = follow(node.arguments[0].value()), result = node.results[0];
  if (entry(self).root < 0) refuse(node.arguments[0].value());
  // The look would be made of itself.
  for (size_t i = 1; i < node.arguments.size(); ++i) {
    for_each_value(node.arguments[i], [&](ValueId id) {
      if (follow(id) == self) refuse(id);
    });
  }
  Node step = node;
  step.op = look;
  steps_.push_back(step);
  step = read_node(step);
  program_.nodes.push_back(std::move(step));
  add_view(result, self, static_cast<int>(steps_.size()) - 1);
  entry(self).renamed = result;
}

void Purifier::visit(const Node& node, size_t position) {
  if (!node.op.has_schema() && visit_control(node, position)) return;
  const Effects effects = find_effects(original_, node);
  std::vector<ValueId> written;
  for (const int place : effects.writes) {
    for_each_value(node.arguments[static_cast<size_t>(place)], [&](ValueId id) { written.push_back(id); });
  }
  if (written.empty() || std::all_of(written.begin(), written.end(), [&](ValueId id) { return is_kept(id); })) {
    keep_node(node);
    return;
  }
  // All or nothing: control nodes that could not be hoisted, and nodes of which one write is kept.
  const bool any_kept = std::any_of(written.begin(), written.end(), [&](ValueId id) { return is_kept(id); });
  if (!node.op.has_schema() || any_kept) {
    refuse(*std::find_if(written.begin(), written.end(), [&](ValueId id) { return !is_kept(id); }));
  }
  if (const auto look = find_look_change(node.op)) {
    change_look(node, *look);
    return;
  }
  for (const ValueId id : written) {
    if (entry(follow(id)).root < 0) refuse(id);
  }
  Node now = read_node(node);
  if (node.is("aten::copy_") && node.arguments[1].is_value() && is_kept(node.arguments[1].value())) {
    // What is copied may be written later, and the copy must not see that.
    const ValueId source = node.arguments[1].value();
    now.arguments[1] =
        program_.add_node(Op::find("aten::clone"), {source}, {original_.value(source).type}, node.origin).result();
  }
  const auto contents = emit_functional(program_, now);
  if (!contents) refuse(written[0]);
  // A result that is the written argument goes by its name from now on; all others have storage of their own.
  for (const ValueId result : node.results) {
    const auto self = std::find_if(contents->begin(), contents->end(),
                                   [&](const WrittenArgument& one) { return one.value == result; });
    if (self == contents->end()) {
      add_root(result, false);
      continue;
    }
    name_after(result, follow(node.arguments[static_cast<size_t>(self->position)].value()));
  }
  for (const WrittenArgument& one : *contents) {
    write(node.arguments[static_cast<size_t>(one.position)].value(), one.value, position);
  }
}

// Whether all bodies give the same value as these two results.
bool gives_twice(const Node& node, size_t left, size_t right) {
  return std::all_of(node.bodies.begin(), node.bodies.end(), [&](const auto& body) {
    return body->outputs[left].value.is_value() && body->outputs[left].value == body->outputs[right].value;
  });
}

// A condition or region whose bodies write: each written operand becomes one more result.
bool Purifier::visit_control(const Node& node, size_t position) {
  const Effects before = find_effects(original_, node);
  Node changed = node;
  std::set<size_t> operands;  // body inputs that some body writes
  for (auto& body : changed.bodies) {
    auto pure = std::make_shared<Program>(*body);
    purify(*pure);
    for (const StateWrite& one : pure->writes) {
      const auto input = std::find_if(pure->inputs.begin(), pure->inputs.end(),
                                      [&](const ProgramInput& each) { return each.value == one.target; });
      if (input == pure->inputs.end()) return false;  // a weight of the body itself
      operands.insert(static_cast<size_t>(input - pure->inputs.begin()));
    }
    body = pure;
  }
  const bool can_hoist = node.op.control() == Control::cond || node.op.control() == Control::region;
  const auto is_operand_kept = [&](size_t operand) {
    const Argument& argument = node.arguments.at(operand + 1);
    return !argument.is_value() || is_kept(argument.value());
  };
  if (!operands.empty() && (!can_hoist || std::any_of(operands.begin(), operands.end(), is_operand_kept))) return false;
  if (!find_effects(original_, changed).writes.empty()) return false;
  for (auto& body : changed.bodies) {
    auto hoisted = std::make_shared<Program>(*body);
    for (const size_t operand : operands) {
      ValueId value = hoisted->inputs[operand].value;
      for (const StateWrite& one : hoisted->writes) {
        if (one.target == hoisted->inputs[operand].value) value = one.value;
      }
      hoisted->outputs.push_back({value, hoisted->inputs[operand].name});
    }
    hoisted->writes.clear();
    body = hoisted;
  }
  changed = read_node(changed);
  std::vector<std::pair<ValueId, ValueId>> contents;
  for (const size_t operand : operands) {
    const ValueId target = node.arguments[operand + 1].value();
    const Value shown = original_.value(target);
    contents.emplace_back(target, program_.add_value(shown.type, shown.name));
    changed.results.push_back(contents.back().second);
  }
  program_.nodes.push_back(std::move(changed));
  Node others = node;  // of results that are no written operand under another name
  for (size_t i = 0; i < node.results.size(); ++i) {
    const auto written = std::find_if(contents.begin(), contents.end(), [&](const auto& one) {
      const size_t output = node.results.size() + static_cast<size_t>(&one - contents.data());
      return gives_twice(program_.nodes.back(), i, output);
    });
    if (written == contents.end()) continue;
    std::erase(others.results, node.results[i]);
    name_after(node.results[i], follow(written->first));
  }
  add_results(others);
  for (const auto& [target, value] : contents) write(target, value, position);
  return true;
}

void Purifier::finish() {
  for (ProgramOutput& output : program_.outputs) output.value = read_argument(output.value);
  for (StateWrite& one : program_.writes) one.value = read(one.value);
  const auto add_write = [&](ValueId id) {
    const Entry& state = entry(id);
    if (is_kept(id) || state.parent != ValueId::none || state.root < 0) return;
    if (roots_[static_cast<size_t>(state.root)].version == 0) return;
    const bool listed = std::any_of(program_.writes.begin(), program_.writes.end(),
                                    [&](const StateWrite& one) { return one.target == id; });
    if (!listed) program_.writes.push_back({id, state.current});
  };
  for (const ProgramInput& input : program_.inputs) add_write(input.value);
  for (const Weight& weight : program_.weights) add_write(weight.value);
}

Program Purifier::run() {
  for (const ProgramInput& input : original_.inputs) add_root(input.value, true);
  add_weights();
  for (size_t i = 0; i < original_.nodes.size(); ++i) visit(original_.nodes[i], i);
  finish();
  return std::move(program_);
}

bool has_writing_body(const Program& program) {
  return std::any_of(program.nodes.begin(), program.nodes.end(), [&](const Node& node) {
    return !node.bodies.empty() && std::any_of(node.bodies.begin(), node.bodies.end(), [](const auto& body) {
      return AliasSets(*body).has_writes() || has_writing_body(*body);
    });
  });
}

}  // namespace

void purify(Program& program) {
  register_ops();
  if (!AliasSets(program).has_writes() && !has_writing_body(program)) return;
  const std::set<ValueId> parted = part_unsafe_splits(program);
  const AliasSets sets(program);
  std::set<int> excluded;
  for (;;) {
    try {
      program = Purifier(program, sets, excluded, parted).run();
      return join_unsafe_splits(program, parted);
    } catch (const Refusal& refusal) {
      LISSOME_CHECK(excluded.insert(refusal.alias_class).second, "class ", refusal.alias_class, " given up twice");
    }
  }
}

}  // namespace lissome
