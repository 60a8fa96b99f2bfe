// See mend_types.h. torch.export runs models on tensors without contents, and for a few ops that gives other sizes than
// the kernels do: of the further results of embedding bags, and, before torch 2.13, of the last states of an LSTM,
// which get a dimension of 1 too many; and it notes f64 scales and i64 zero points for choose_qparams_per_token, which
// gives both in f32. What is computed from those is noted just as wrongly.
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
  explicit TypeMender(Program& program)
      : program_(program), wrong_sizes_(program.values.size(), false), wrong_dtypes_(program.values.size(), false) {}

  void run() {
    for (Node& node : program_.nodes) visit(node);
  }

 private:
  void visit(Node& node) {
    const bool bag =
        node.op.name().starts_with("aten::embedding_bag") || node.op.name().starts_with("aten::_embedding_bag");
    bool sizes = false, dtype = false;
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId id) {
        sizes |= wrong_sizes_[static_cast<size_t>(id)];
        dtype |= wrong_dtypes_[static_cast<size_t>(id)];
      });
    }
    if (sizes || dtype) forget_bodies(node);
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (node.results[i] == ValueId::none) continue;
      const auto result = static_cast<size_t>(node.results[i]);
      ValueType& type = program_.value(node.results[i]).type;
      if (sizes || (bag && i > 0)) forget_sizes(type);
      if (dtype && type.kind == ValueKind::tensor) type = ValueType();
      wrong_sizes_[result] = sizes;
      wrong_dtypes_[result] = dtype;
    }
    if (node.is("aten::lstm.input") && !sizes) mend_states(node);
    if (node.is("lissome::choose_qparams_per_token") && !dtype) mend_scales(node);
  }

  void mend_scales(const Node& node) {
    const ValueType& input = program_.value(node.arguments[0].value()).type;
    const bool half = input.kind == ValueKind::tensor && input.dtype == Dtype::f16;
    for (const ValueId id : node.results) {
      program_.value(id).type.dtype = half ? Dtype::f32 : input.dtype;
      wrong_dtypes_[static_cast<size_t>(id)] = true;
    }
  }

  // [layers, 1, batch, hidden] is [layers, batch, hidden].
  void mend_states(const Node& node) {
    for (size_t i = 1; i < node.results.size(); ++i) {
      ValueType& type = program_.value(node.results[i]).type;
      if (type.sizes.size() != 4) continue;
      type.sizes.erase(type.sizes.begin() + 1);
      wrong_sizes_[static_cast<size_t>(node.results[i])] = true;
    }
  }

  static void forget_bodies(Node& node) {
    for (auto& body : node.bodies) {
      auto mended = std::make_shared<Program>(*body);
      for (Value& value : mended->values) {
        if (mended->find_weight(value.name) == nullptr && value.type.kind == ValueKind::tensor)
          value.type = ValueType();
      }
      for (Node& inner : mended->nodes) forget_bodies(inner);
      body = std::move(mended);
    }
  }

  Program& program_;
  std::vector<bool> wrong_sizes_, wrong_dtypes_;  // by ValueId: noted otherwise than it comes out
};

}  // namespace

void mend_types(Program& program) { TypeMender(program).run(); }

}  // namespace lissome
