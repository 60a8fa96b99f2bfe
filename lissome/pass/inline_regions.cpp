// A region's body under other value names; see inline_regions.h. What an enabled autocast region holds stays in it.
#include "lissome/pass/inline_regions.h"

#include <unordered_map>

namespace lissome {
namespace {

std::string region_mode(const Node& node) {
  if (node.op.control() != Control::region) return {};
  const auto* mode = node.arguments.at(0).get<std::string>();
  return mode == nullptr ? std::string() : *mode;
}

bool switches_autocast(const Node& node) { return region_mode(node).starts_with("autocast="); }

// "autocast=cpu,bf16,0": the last word tells whether it is on.
bool is_needless(const Node& node, bool autocast) {
  const std::string mode = region_mode(node);
  const bool off = switches_autocast(node) && mode.ends_with(",0") && !autocast;
  return (off || mode.starts_with("grad=")) && node.bodies.at(0)->weights.empty();
}

class RegionInliner {
 public:
  RegionInliner(Program& program, bool autocast) : program_(program), autocast_(autocast) {}

  int run() {
    std::vector<Node> nodes;
    nodes.swap(program_.nodes);
    for (Node& node : nodes) {
      const bool inside = autocast_ || (switches_autocast(node) && !is_needless(node, autocast_));
      for (auto& body : node.bodies) {
        Program changed = *body;
        const int inner = RegionInliner(changed, inside).run();
        if (inner > 0) body = std::make_shared<const Program>(std::move(changed));
        count_ += inner;
      }
      for (Argument& argument : node.arguments) argument = resolve(argument);
      if (is_needless(node, autocast_)) {
        inline_body(node);
      } else {
        program_.nodes.push_back(std::move(node));
      }
    }
    for (ProgramOutput& output : program_.outputs) output.value = resolve(output.value);
    for (StateWrite& write : program_.writes) write.value = resolve(Argument(write.value)).value();
    return count_;
  }

 private:
  Argument resolve(const Argument& argument) const {
    return map_values(argument, [&](ValueId value) -> Argument {
      const auto found = inlined_.find(value);
      return found == inlined_.end() ? Argument(value) : found->second;
    });
  }

  void inline_body(const Node& node) {
    const Program& body = *node.bodies[0];
    std::unordered_map<ValueId, Argument> outside;  // by value of the body
    const auto find_outside = [&](ValueId value) { return outside.at(value); };
    for (size_t i = 0; i < body.inputs.size(); ++i) outside[body.inputs[i].value] = node.arguments.at(i + 1);
    for (const Node& inner : body.nodes) {
      Node copy = inner;
      for (Argument& argument : copy.arguments) argument = map_values(argument, find_outside);
      for (ValueId& result : copy.results) {
        if (result == ValueId::none) continue;
        const ValueId own = program_.add_value(body.value(result).type, body.value(result).name);
        outside[result] = own;
        result = own;
      }
      program_.nodes.push_back(std::move(copy));
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (node.results[i] != ValueId::none)
        inlined_[node.results[i]] = map_values(body.outputs.at(i).value, find_outside);
    }
    ++count_;
  }

  Program& program_;
  bool autocast_;                                  // an enclosing region switches it on
  std::unordered_map<ValueId, Argument> inlined_;  // results of regions that went
  int count_ = 0;
};

}  // namespace

int inline_regions(Program& program) { return RegionInliner(program, false).run(); }

}  // namespace lissome
