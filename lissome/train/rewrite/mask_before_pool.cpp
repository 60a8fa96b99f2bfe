// See mask_before_pool.h.
#include "lissome/train/rewrite/mask_before_pool.h"

#include <algorithm>
#include <map>

namespace lissome {
namespace {

class Mover {
 public:
  explicit Mover(Program& program)
      : program_(program), maker_(program.values.size(), -1), uses_(program.values.size(), 0) {
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      for (const ValueId id : program.nodes[i].results) {
        if (id != ValueId::none) maker_[static_cast<size_t>(id)] = static_cast<int>(i);
      }
      for (const Argument& argument : program.nodes[i].arguments) count_uses(argument);
    }
    for (const ProgramOutput& output : program.outputs) count_uses(output.value);
    for (const StateWrite& write : program.writes) ++uses_[static_cast<size_t>(write.value)];
  }

  int run() {
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      const int pool = find_pool_gradient(program_.nodes[i]);
      if (pool >= 0) masks_[pool] = static_cast<int>(i);
    }
    std::vector<Node> nodes;
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      const int position = static_cast<int>(i);
      if (masks_.contains(position)) append_masked(nodes, position);
      const bool moved = std::any_of(masks_.begin(), masks_.end(), [&](const auto& pair) {
        return pair.first == position || pair.second == position;
      });
      if (!moved) nodes.push_back(program_.nodes[i]);
    }
    program_.nodes = std::move(nodes);
    if (!masks_.empty()) verify_program(program_, Stage::optimized);
    return static_cast<int>(masks_.size());
  }

 private:
  void count_uses(const Argument& argument) {
    for_each_value(argument, [&](ValueId id) { ++uses_[static_cast<size_t>(id)]; });
  }

  const Node* find_maker(const Argument& argument, const char* op) const {
    if (!argument.is_value()) return nullptr;
    const int maker = maker_[static_cast<size_t>(argument.value())];
    if (maker < 0 || !program_.nodes[static_cast<size_t>(maker)].is(op)) return nullptr;
    return &program_.nodes[static_cast<size_t>(maker)];
  }

  const Node* find_pool(const Node& gradient) const {
    return find_maker(gradient.argument("indices"), "aten::max_pool2d_with_indices");
  }

  // The position of the pooling's gradient that only this node masks; -1 if the node is no such mask.
  int find_pool_gradient(const Node& node) const {
    if (!node.is("aten::threshold_backward")) return -1;
    const Argument &dx = node.argument("grad_output"), &x = node.argument("self");
    const Node* gradient = find_maker(dx, "aten::max_pool2d_with_indices_backward");
    if (gradient == nullptr || uses_[static_cast<size_t>(dx.value())] != 1) return -1;
    const Node* pool = find_pool(*gradient);
    if (pool == nullptr || gradient->argument("self") != x || pool->argument("self") != x) return -1;
    return maker_[static_cast<size_t>(dx.value())];
  }

  void append_masked(std::vector<Node>& nodes, int position) {
    Node gradient = program_.nodes[static_cast<size_t>(position)];
    Node mask = program_.nodes[static_cast<size_t>(masks_.at(position))];
    const Argument dy = gradient.argument("grad_output");
    const ValueId masked = program_.add_value(program_.value(dy.value()).type);
    gradient.results = mask.results;
    gradient.argument("grad_output") = Argument(masked);
    mask.argument("self") = Argument(find_pool(gradient)->results.at(0));
    mask.argument("grad_output") = dy;
    mask.results = {masked};
    nodes.push_back(std::move(mask));
    nodes.push_back(std::move(gradient));
  }

  Program& program_;
  std::vector<int> maker_, uses_;  // by value: the node that makes it, -1 for none; arguments, outputs and writes
  std::map<int, int> masks_;       // by the pooling's gradient: its mask
};

}  // namespace

int mask_before_pool(Program& program) { return Mover(program).run(); }

}  // namespace lissome
