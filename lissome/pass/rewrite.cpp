#include "lissome/pass/rewrite.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace lissome {
namespace {

size_t index_of(ValueId value) { return static_cast<size_t>(value); }

// Replaces values inside an argument, lists included.
void substitute(Argument& argument, const std::function<std::optional<Argument>(ValueId)>& find) {
  if (argument.is_value()) {
    if (std::optional<Argument> other = find(argument.value())) argument = *other;
  } else if (argument.is_list()) {
    for (Argument& item : std::get<ArgumentList>(argument.data)) substitute(item, find);
  }
}

}  // namespace

Rewriter::Rewriter(Program& program) : program_(program) {
  grow();
  for (size_t position = 0; position < program.nodes.size(); ++position) {
    Node& node = program.nodes[position];
    for (ValueId result : node.results) producer_[index_of(result)] = &node;
    for (const Argument& argument : node.arguments) {
      count_uses(argument, 1);
      for_each_value(argument, [&](ValueId value) {
        std::vector<int>& readers = readers_[index_of(value)];
        if (readers.empty() || readers.back() != static_cast<int>(position)) readers.push_back(static_cast<int>(position));
      });
    }
  }
  for (const ProgramOutput& output : program.outputs) count_uses(output.value, 1);
  for (const StateWrite& write : program.writes) count_uses(Argument(write.value), 1);
}

void Rewriter::grow() {
  const size_t values = program_.values.size();
  producer_.resize(values, nullptr);
  use_count_.resize(values, 0);
  readers_.resize(values);
  replacement_.resize(values);
}

void Rewriter::count_uses(const Argument& argument, int by) {
  grow();
  for_each_value(argument, [&](ValueId value) { use_count_[index_of(value)] += by; });
}

Argument Rewriter::resolve(const Argument& argument) const {
  Argument result = argument;
  substitute(result, [&](ValueId value) -> std::optional<Argument> {
    if (!replacement_[index_of(value)]) return std::nullopt;
    return resolve(*replacement_[index_of(value)]);
  });
  return result;
}

Node* Rewriter::producer(ValueId value) {
  const Argument resolved = resolve(Argument(value));
  return resolved.is_value() ? producer_[index_of(resolved.value())] : nullptr;
}

Node* Rewriter::producer(const Argument& argument, std::string_view op) {
  if (!argument.is_value()) return nullptr;
  Node* node = producer(argument.value());
  return node != nullptr && node->is(op) ? node : nullptr;
}

int Rewriter::use_count(ValueId value) const {
  const Argument resolved = resolve(Argument(value));
  return resolved.is_value() ? use_count_[index_of(resolved.value())] : 0;
}

std::vector<int> Rewriter::readers(ValueId value) {
  const Argument resolved = resolve(Argument(value));
  std::vector<int> positions;
  if (!resolved.is_value()) return positions;
  for (int position : readers_[index_of(resolved.value())]) {
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

void Rewriter::replace_node(int position, Op op, ArgumentList arguments) {
  Node& changed = node(position);
  arguments = complete_arguments(op, std::move(arguments));
  for (const Argument& argument : arguments) {
    count_uses(argument, 1);
    for_each_value(argument, [&](ValueId value) { readers_[index_of(value)].push_back(position); });
  }
  for (const Argument& argument : changed.arguments) count_uses(resolve(argument), -1);
  changed.op = op;
  changed.arguments = std::move(arguments);
  changed.bodies.clear();
  ++rewrites_;
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

void Rewriter::replace_value(ValueId old_value, Argument replacement) {
  replacement = resolve(replacement);
  LISSOME_CHECK(!(replacement == Argument(old_value)), "a value cannot replace itself");
  grow();
  const size_t old_index = index_of(old_value);
  for_each_value(replacement, [&](ValueId value) {
    use_count_[index_of(value)] += use_count_[old_index];
    std::vector<int>& readers = readers_[index_of(value)];
    readers.insert(readers.end(), readers_[old_index].begin(), readers_[old_index].end());
  });
  use_count_[old_index] = 0;
  replacement_[old_index] = std::move(replacement);
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
    if (position < program_.nodes.size()) nodes.push_back(std::move(program_.nodes[position]));
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
  for (auto node = program.nodes.rbegin(); node != program.nodes.rend(); ++node) {
    bool live = std::any_of(node->results.begin(), node->results.end(),
                            [&](ValueId result) { return needed[index_of(result)]; });
    // Asserts have no results and are kept: they guard what the program promises.
    live = live || node->results.empty() || find_effects(program, *node).barrier();
    if (!live) continue;
    for (const Argument& argument : node->arguments) need(argument);
    kept.push_back(std::move(*node));
  }
  const int removed = static_cast<int>(program.nodes.size() - kept.size());
  std::reverse(kept.begin(), kept.end());
  program.nodes = std::move(kept);
  return removed;
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
  return static_cast<int>(std::erase_if(
      program.weights, [&](const Weight& weight) { return !read[index_of(weight.value)]; }));
}

bool is_constant(const Program& program, ValueId value) {
  if (program.find_weight(value) == nullptr) return false;
  return std::none_of(program.writes.begin(), program.writes.end(),
                      [&](const StateWrite& write) { return write.target == value; });
}

at::Tensor constant_tensor(const Program& program, const Argument& argument) {
  if (!argument.is_value() || !is_constant(program, argument.value())) return {};
  return program.find_weight(argument.value())->tensor;
}

std::optional<double> constant_number(const Program& program, const Argument& argument) {
  if (const auto* integer = argument.get<int64_t>()) return static_cast<double>(*integer);
  if (const auto* number = argument.get<double>()) return *number;
  const at::Tensor tensor = constant_tensor(program, argument);
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
