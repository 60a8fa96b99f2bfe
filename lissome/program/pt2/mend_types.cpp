// See mend_types.h. torch.export runs models on tensors without contents, and for a few ops that gives other sizes than
// the kernels do: of the further results of embedding bags, and, before torch 2.13, of the last states of an LSTM,
// which get a dimension of 1 too many. What is computed from those states is noted just as wrongly.
#include "lissome/program/pt2/mend_types.h"

#include <algorithm>

namespace lissome {
namespace {

void forget_sizes(ValueType& type) {
  type.sized = false;
  type.sizes.clear();
}

class TypeMender {
 public:
  explicit TypeMender(Program& program) : program_(program), wrong_(program.values.size(), false) {}

  void run() {
    for (Node& node : program_.nodes) visit(node);
  }

 private:
  void visit(Node& node) {
    const bool bag =
        node.op.name().starts_with("aten::embedding_bag") || node.op.name().starts_with("aten::_embedding_bag");
    bool reached = false;
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId id) { reached |= wrong_[static_cast<size_t>(id)]; });
    }
    if (reached) forget_bodies(node);
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (node.results[i] == ValueId::none) continue;
      ValueType& type = program_.value(node.results[i]).type;
      if (reached || (bag && i > 0)) forget_sizes(type);
      if (reached) wrong_[static_cast<size_t>(node.results[i])] = true;
    }
    if (node.is("aten::lstm.input") && !reached) mend_states(node);
  }

  // [layers, 1, batch, hidden] is [layers, batch, hidden].
  void mend_states(const Node& node) {
    for (size_t i = 1; i < node.results.size(); ++i) {
      ValueType& type = program_.value(node.results[i]).type;
      if (type.sizes.size() != 4) continue;
      type.sizes.erase(type.sizes.begin() + 1);
      wrong_[static_cast<size_t>(node.results[i])] = true;
    }
  }

  static void forget_bodies(Node& node) {
    for (auto& body : node.bodies) {
      auto mended = std::make_shared<Program>(*body);
      for (Value& value : mended->values) {
        if (mended->find_weight(value.name) == nullptr) forget_sizes(value.type);
      }
      for (Node& inner : mended->nodes) forget_bodies(inner);
      body = std::move(mended);
    }
  }

  Program& program_;
  std::vector<bool> wrong_;  // by ValueId: noted with other sizes than it has
};

}  // namespace

void mend_types(Program& program) { TypeMender(program).run(); }

}  // namespace lissome
