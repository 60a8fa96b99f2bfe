// conv or linear, a residual addition, a pointwise activation -> one op that applies both on the way out.
#include <array>
#include <optional>

#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"
#include "lissome/program.h"

namespace lissome {
namespace {

// The activation that a node applies to its input, in the words of the fused ops; empty when it is none of them.
std::string read_activation(const Program& program, const Node& node) {
  struct Row {
    std::string_view op, activation;
  };
  static constexpr Row kPlain[] = {{"aten::relu", "relu"},       {"aten::silu", "silu"},
                                   {"aten::sigmoid", "sigmoid"}, {"aten::tanh", "tanh"},
                                   {"aten::hardswish", "hardswish"}, {"aten::hardsigmoid", "hardsigmoid"},
                                   {"aten::relu6", "relu6"}};
  for (const Row& row : kPlain) {
    if (node.is(row.op)) return std::string(row.activation);
  }
  if (node.is("aten::gelu")) return node.argument("approximate") == Argument("tanh") ? "gelu_tanh" : "gelu";
  if (node.is("aten::hardtanh") && constant_number(program, node.argument("min_val")) == 0.0 &&
      constant_number(program, node.argument("max_val")) == 6.0) {
    return "relu6";
  }
  return {};
}

// A linear or convolution of floating point, fused already or not.
struct Producer {
  std::string_view plain, fused;
};
constexpr Producer kLinear = {"aten::linear", "lissome::linear_act"};
constexpr Producer kConv = {"aten::convolution", "lissome::conv_act"};

// The node that makes `value` for this reader alone, as the fused op's arguments up to `act`.
struct Source {
  ArgumentList arguments;  // everything before act
  std::string activation = "none";
  Argument residual;
  std::shared_ptr<const Origin> origin;
};

std::optional<Source> find_source(Rewriter& rewriter, const Argument& argument, const Producer& producer) {
  if (!argument.is_value() || !rewriter.has_one_use(argument.value())) return std::nullopt;
  if (const Node* plain = rewriter.producer(argument, producer.plain)) {
    const ValueType& type = rewriter.program().value(plain->result()).type;
    if (!type.sized || !is_floating(type.dtype)) return std::nullopt;
    return Source{plain->arguments, "none", Argument(), plain->origin};
  }
  if (const Node* fused = rewriter.producer(argument, producer.fused)) {
    const size_t act = static_cast<size_t>(fused->op.argument_index("act"));
    const auto* activation = fused->arguments.at(act).get<std::string>();
    if (activation == nullptr) return std::nullopt;
    return Source{ArgumentList(fused->arguments.begin(), fused->arguments.begin() + static_cast<std::ptrdiff_t>(act)),
                  *activation, fused->arguments.at(act + 1), fused->origin};
  }
  return std::nullopt;
}

void place(Rewriter& rewriter, int position, const Producer& producer, Source source) {
  source.arguments.emplace_back(source.activation);
  source.arguments.push_back(source.residual);
  rewriter.replace_node(position, Op::find(producer.fused), std::move(source.arguments));
  rewriter.node(position).origin = source.origin;
}

bool fuse_activation(Rewriter& rewriter, int position, const Producer& producer) {
  const Node& node = rewriter.node(position);
  const std::string activation = read_activation(rewriter.program(), node);
  if (activation.empty()) return false;
  std::optional<Source> source = find_source(rewriter, rewriter.resolve(node.arguments.front()), producer);
  if (!source || source->activation != "none") return false;
  source->activation = activation;
  place(rewriter, position, producer, std::move(*source));
  return true;
}

// The residual is added before the activation, so it fuses only while there is none.
bool fuse_residual(Rewriter& rewriter, int position, const Producer& producer) {
  const Node& node = rewriter.node(position);
  const auto sum = match_sum(rewriter, Argument(node.result()));
  if (!sum) return false;
  const Program& program = rewriter.program();
  for (const auto& [product, other] : {*sum, std::pair{sum->second, sum->first}}) {
    // Same sizes and dtype: a broadcast residual is another kernel.
    const ValueType& type = program.value(node.result()).type;
    if (product == other || !type.sized || program.value(product).type != type || program.value(other).type != type) continue;
    std::optional<Source> source = find_source(rewriter, Argument(product), producer);
    if (!source || source->activation != "none" || !source->residual.is_none()) continue;
    source->residual = other;
    place(rewriter, position, producer, std::move(*source));
    return true;
  }
  return false;
}

int fuse_into(Program& program, const Producer& producer) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    fuse_activation(rewriter, position, producer) || fuse_residual(rewriter, position, producer);
  }
  return rewriter.finish();
}

}  // namespace

int fuse_conv_activation(Program& program) { return fuse_into(program, kConv); }

int fuse_linear_activation(Program& program) { return fuse_into(program, kLinear); }

}  // namespace lissome
