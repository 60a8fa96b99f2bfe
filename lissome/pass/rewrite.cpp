#include "lissome/pass/rewrite.h"

#include <algorithm>
#include <array>

#include "lissome/pass/trim_bodies.h"

namespace lissome {
namespace {

size_t index_of(ValueId value) { return static_cast<size_t>(value); }

}  // namespace

Rewriter::Rewriter(Program& program) : program_(program), written_(find_written_values(program)) {
  for (const StateWrite& write : program.writes) {
    state_.insert(write.target);
    const Weight* target = program.find_weight(write.target);
    if (target == nullptr || !target->tensor.has_storage()) continue;
    for (const Weight& weight : program.weights) {
      if (weight.tensor.has_storage() && weight.tensor.is_alias_of(target->tensor)) state_.insert(weight.value);
    }
  }
  grow();
  for (size_t position = 0; position < program.nodes.size(); ++position) {
    Node& node = program.nodes[position];
    for (ValueId result : node.results) {
      if (result != ValueId::none) producer_[index_of(result)] = &node;
    }
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId value) {
        ++use_count_[index_of(value)];
        std::vector<int>& readers = readers_[index_of(value)];
        if (readers.empty() || readers.back() != static_cast<int>(position))
          readers.push_back(static_cast<int>(position));
      });
    }
  }
  for (const ProgramOutput& output : program.outputs) {
    for_each_value(output.value, [&](ValueId value) { ++use_count_[index_of(value)]; });
  }
  for (const StateWrite& write : program.writes) ++use_count_[index_of(write.value)];
}

void Rewriter::grow() {
  const size_t values = program_.values.size();
  if (!written_.empty()) written_.resize(values, false);
  producer_.resize(values, nullptr);
  use_count_.resize(values, 0);
  readers_.resize(values);
  replacement_.resize(values);
}

void Rewriter::count_uses(const Argument& argument, int by) {
  grow();
  for_each_value(argument, [&](ValueId value) { change_use_count(value, by); });
}

bool Rewriter::is_unread(const Node& node) const {
  return std::all_of(node.results.begin(), node.results.end(),
                     [&](ValueId result) { return result == ValueId::none || use_count_[index_of(result)] == 0; });
}

// A node that lost its last reader reads no more, and one that found a reader again does.
void Rewriter::change_use_count(ValueId value, int by) {
  int& count = use_count_[index_of(value)];
  count += by;
  LISSOME_CHECK(count >= 0, "%", program_.value(value).name, " is read less than never");
  Node* const node = producer_[index_of(value)];
  if (node == nullptr) return;
  if (by < 0 && count == 0 && !dead_.contains(node) && is_unread(*node) && is_pure(program_, *node)) {
    dead_.insert(node);
    for (const Argument& argument : node->arguments) count_uses(resolve(argument), -1);
  } else if (by > 0 && dead_.erase(node) > 0) {
    for (const Argument& argument : node->arguments) count_uses(resolve(argument), 1);
  }
}

Argument Rewriter::resolve(const Argument& argument) const {
  return map_values(argument, [&](ValueId value) -> Argument {
    // Values younger than the sweep's last change have no replacement.
    if (index_of(value) >= replacement_.size() || !replacement_[index_of(value)]) return value;
    return resolve(*replacement_[index_of(value)]);
  });
}

const ValueType& Rewriter::type_of(const Argument& argument) const {
  static const ValueType unknown;
  return argument.is_value() ? program_.value(argument.value()).type : unknown;
}

Node* Rewriter::producer(ValueId value) {
  const Argument resolved = resolve(Argument(value));
  if (!resolved.is_value() || index_of(resolved.value()) >= producer_.size()) return nullptr;
  return producer_[index_of(resolved.value())];
}

Node* Rewriter::producer(const Argument& argument, std::string_view op) {
  if (!argument.is_value()) return nullptr;
  Node* node = producer(argument.value());
  return node != nullptr && node->is(op) ? node : nullptr;
}

int Rewriter::use_count(ValueId value) const {
  const Argument resolved = resolve(Argument(value));
  if (!resolved.is_value() || index_of(resolved.value()) >= use_count_.size()) return 0;
  return use_count_[index_of(resolved.value())];
}

std::vector<int> Rewriter::readers(ValueId value) {
  const Argument resolved = resolve(Argument(value));
  std::vector<int> positions;
  if (!resolved.is_value() || index_of(resolved.value()) >= readers_.size()) return positions;
  for (int position : readers_[index_of(resolved.value())]) {
    if (is_dead(position)) continue;
    bool reads = false;
    for (const Argument& argument : node(position).arguments) {
      for_each_value(resolve(argument), [&](ValueId read) { reads |= read == resolved.value(); });
    }
    if (reads) positions.push_back(position);
  }
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

int Rewriter::only_reader(ValueId value) {
  if (use_count(value) != 1) return -1;
  const std::vector<int> positions = readers(value);
  return positions.size() == 1 ? positions.front() : -1;
}

bool Rewriter::is_constant(ValueId value) const {
  return program_.find_weight(value) != nullptr && !state_.contains(value) && !is_written(Argument(value));
}

bool Rewriter::is_written(const Argument& argument) const {
  bool written = false;
  for_each_value(resolve(argument), [&](ValueId value) {
    written = written || (index_of(value) < written_.size() && written_[index_of(value)]);
  });
  return written;
}

bool Rewriter::touches_written(const Node& node) const {
  if (written_.empty()) return false;
  const auto is_touched = [&](const Argument& argument) { return is_written(argument); };
  return std::any_of(node.arguments.begin(), node.arguments.end(), is_touched) ||
         std::any_of(node.results.begin(), node.results.end(),
                     [&](ValueId result) { return result != ValueId::none && is_written(Argument(result)); });
}

bool Rewriter::replace_node(int position, Op op, ArgumentList arguments) {
  Node& changed = node(position);
  arguments = complete_arguments(op, std::move(arguments));
  if (touches_written(changed) ||
      std::any_of(arguments.begin(), arguments.end(), [&](const Argument& one) { return is_written(one); })) {
    return false;
  }
  for (const Argument& argument : arguments) {
    count_uses(argument, 1);
    for_each_value(argument, [&](ValueId value) { readers_[index_of(value)].push_back(position); });
  }
  for (const Argument& argument : changed.arguments) count_uses(resolve(argument), -1);
  changed.op = op;
  changed.arguments = std::move(arguments);
  changed.bodies.clear();
  ++rewrites_;
  return true;
}

ValueId Rewriter::insert_before(int position, Op op, ArgumentList arguments, std::vector<ValueType> types,
                                std::shared_ptr<const Origin> origin) {
  Node fresh;
  fresh.op = op;
  fresh.arguments = complete_arguments(op, std::move(arguments));
  fresh.origin = std::move(origin);
  for (ValueType& type : types) fresh.results.push_back(program_.add_value(std::move(type)));
  grow();
  for (const Argument& argument : fresh.arguments) count_uses(argument, 1);
  // Nothing may come to read it.
  if (touches_written(fresh)) {
    for (ValueId result : fresh.results) written_[index_of(result)] = true;
  }
  inserted_.emplace_back(position, std::move(fresh));
  Node& kept = inserted_.back().second;
  for (ValueId result : kept.results) producer_[index_of(result)] = &kept;
  return kept.results.front();
}

Node& Rewriter::inserted(ValueId result) {
  Node* node = producer(result);
  LISSOME_CHECK(node != nullptr, "the value was not inserted");
  return *node;
}

bool Rewriter::replace_value(ValueId old_value, Argument replacement) {
  replacement = resolve(replacement);
  LISSOME_CHECK(!(replacement == Argument(old_value)), "a value cannot replace itself");
  grow();
  const Node* const made_by = producer_[index_of(old_value)];
  if (is_written(Argument(old_value)) || is_written(replacement) || (made_by != nullptr && touches_written(*made_by)))
    return false;
  const size_t old_index = index_of(old_value);
  const int uses = use_count_[old_index];
  for_each_value(replacement, [&](ValueId value) {
    if (uses > 0) change_use_count(value, uses);
    std::vector<int>& readers = readers_[index_of(value)];
    readers.insert(readers.end(), readers_[old_index].begin(), readers_[old_index].end());
  });
  replacement_[old_index] = std::move(replacement);
  if (uses > 0) change_use_count(old_value, -uses);
  ++rewrites_;
  return true;
}

void Rewriter::remove_node(int position) {
  Node& removed = node(position);
  LISSOME_CHECK(removed.results.empty(), removed.op.name(), " makes something and may be read");
  LISSOME_CHECK(!is_dead(position), removed.op.name(), " is removed twice");
  dead_.insert(&removed);
  removed_.insert(&removed);
  for (const Argument& argument : removed.arguments) count_uses(resolve(argument), -1);
  ++rewrites_;
}

int Rewriter::finish() {
  std::vector<Node> nodes;
  nodes.reserve(program_.nodes.size() + inserted_.size());
  std::stable_sort(inserted_.begin(), inserted_.end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
  auto next = inserted_.begin();
  for (size_t position = 0; position <= program_.nodes.size(); ++position) {
    for (; next != inserted_.end() && next->first == static_cast<int>(position); ++next) {
      nodes.push_back(std::move(next->second));
    }
    if (position == program_.nodes.size() || removed_.contains(&program_.nodes[position])) continue;
    nodes.push_back(std::move(program_.nodes[position]));
  }
  const auto resolve_all = [&](Argument& argument) { argument = resolve(argument); };
  for (Node& node : nodes) std::for_each(node.arguments.begin(), node.arguments.end(), resolve_all);
  for (ProgramOutput& output : program_.outputs) resolve_all(output.value);
  for (StateWrite& write : program_.writes) {
    const Argument resolved = resolve(Argument(write.value));
    if (resolved.is_value()) write.value = resolved.value();
  }
  program_.nodes = std::move(nodes);
  inserted_.clear();
  dead_.clear();
  removed_.clear();
  if (rewrites_ > 0) remove_dead_nodes(program_);
  return rewrites_;
}

int remove_dead_nodes(Program& program) {
  std::vector<bool> needed(program.values.size(), false);
  const auto need = [&](const Argument& argument) {
    for_each_value(argument, [&](ValueId value) { needed[index_of(value)] = true; });
  };
  for (const ProgramOutput& output : program.outputs) need(output.value);
  for (const StateWrite& write : program.writes) need(Argument(write.value));
  std::vector<Node> kept;
  int trimmed = 0;
  for (auto node = program.nodes.rbegin(); node != program.nodes.rend(); ++node) {
    const bool live = std::any_of(node->results.begin(), node->results.end(),
                                  [&](ValueId result) { return result != ValueId::none && needed[index_of(result)]; });
    // Checks guard what the program promises; random nodes move the generator on for those that follow.
    if (!live && is_pure(program, *node)) continue;
    if (!node->bodies.empty()) trimmed += trim_bodies(*node, [&](ValueId result) { return needed[index_of(result)]; });
    for (const Argument& argument : node->arguments) need(argument);
    kept.push_back(std::move(*node));
  }
  const int removed = static_cast<int>(program.nodes.size() - kept.size());
  std::reverse(kept.begin(), kept.end());
  program.nodes = std::move(kept);
  return removed + trimmed;
}

int remove_unread_weights(Program& program) {
  std::vector<bool> read(program.values.size(), false);
  const auto mark = [&](const Argument& argument) {
    for_each_value(argument, [&](ValueId value) { read[index_of(value)] = true; });
  };
  for (const Node& node : program.nodes) std::for_each(node.arguments.begin(), node.arguments.end(), mark);
  for (const ProgramOutput& output : program.outputs) mark(output.value);
  for (const StateWrite& write : program.writes) {
    mark(Argument(write.target));
    mark(Argument(write.value));
  }
  return static_cast<int>(
      std::erase_if(program.weights, [&](const Weight& weight) { return !read[index_of(weight.value)]; }));
}

bool reads_memory(const Node& node) {
  static constexpr std::array kOps = {"aten::view_as_complex", "aten::view.dtype", "aten::as_strided"};
  return std::find(kOps.begin(), kOps.end(), node.op.name()) != kOps.end();
}

ValueId add_constant(Program& program, const std::string& name, at::Tensor tensor) {
  std::string unique = name;
  for (int number = 1; program.find_weight(unique) != nullptr; ++number) unique = name + "_" + std::to_string(number);
  return program.add_weight(std::move(unique), std::move(tensor), WeightRole::constant);
}

const std::string& name_of_weight(const Program& program, const Argument& argument) {
  const Weight* weight = program.find_weight(argument.value());
  LISSOME_CHECK(weight != nullptr, "a value that is no weight has no weight's name");
  return weight->name;
}

at::Tensor constant_tensor(const Rewriter& rewriter, const Argument& argument) {
  if (!argument.is_value() || !rewriter.is_constant(argument.value())) return {};
  return rewriter.program().find_weight(argument.value())->tensor;
}

std::optional<double> constant_number(const Rewriter& rewriter, const Argument& argument) {
  if (const auto* integer = argument.get<int64_t>()) return static_cast<double>(*integer);
  if (const auto* number = argument.get<double>()) return *number;
  const at::Tensor tensor = constant_tensor(rewriter, argument);
  if (!tensor.defined() || tensor.numel() != 1 || tensor.is_complex()) return std::nullopt;
  return tensor.item().toDouble();
}

std::optional<Sizes> constant_sizes(const ValueType& type) {
  if (type.kind != ValueKind::tensor || !type.sized) return std::nullopt;
  Sizes sizes;
  for (const Dimension& size : type.sizes) {
    const std::optional<int64_t> number = size.constant();
    if (!number) return std::nullopt;
    sizes.push_back(*number);
  }
  return sizes;
}

bool is_sized_float(const ValueType& type) {
  return type.kind == ValueKind::tensor && type.sized && is_floating(type.dtype);
}

std::optional<ArgumentList> literal_sizes(const std::vector<Dimension>& sizes) {
  ArgumentList literals;
  int open = 0;
  bool empty = false;
  for (const Dimension& size : sizes) {
    const std::optional<int64_t> number = size.constant();
    open += !number;
    empty |= number == 0;
    literals.emplace_back(number.value_or(-1));
  }
  if (open > 1 || (open == 1 && empty)) return std::nullopt;
  return literals;
}

std::optional<std::vector<Dimension>> broadcast_sizes(const std::vector<Dimension>& left,
                                                      const std::vector<Dimension>& right) {
  const std::vector<Dimension>& longer = left.size() < right.size() ? right : left;
  const std::vector<Dimension>& shorter = left.size() < right.size() ? left : right;
  std::vector<Dimension> sizes = longer;
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dimension& size = sizes[sizes.size() - 1 - i];
    const Dimension& other = shorter[shorter.size() - 1 - i];
    if (size == Dimension(1)) {
      size = other;
    } else if (!(other == Dimension(1)) && !(other == size)) {
      return std::nullopt;
    }
  }
  return sizes;
}

ValueType tensor_type(Dtype dtype, std::vector<Dimension> sizes) {
  return ValueType{ValueKind::tensor, dtype, true, std::move(sizes)};
}

ValueType type_of(const at::Tensor& tensor) {
  return tensor_type(dtype_of(tensor.scalar_type()), {tensor.sizes().begin(), tensor.sizes().end()});
}

std::optional<std::vector<int64_t>> literal_ints(const Argument& argument) {
  if (!argument.is_list()) return std::nullopt;
  std::vector<int64_t> items;
  for (const Argument& item : argument.list()) {
    const auto* integer = item.get<int64_t>();
    if (integer == nullptr) return std::nullopt;
    items.push_back(*integer);
  }
  return items;
}

}  // namespace lissome
