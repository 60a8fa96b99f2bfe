// conv or linear, a residual addition, a pointwise activation -> one op that applies both on the way out.
#include <optional>

#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"
#include "lissome/pass/read_activation.h"

namespace lissome {
namespace {

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
    if (!is_sized_float(rewriter.type_of(plain->result()))) return std::nullopt;
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
  const std::string activation = read_activation(rewriter, node);
  if (activation.empty()) return false;
  std::optional<Source> source = find_source(rewriter, rewriter.resolve(node.arguments.front()), producer);
  if (!source || source->activation != "none") return false;
  source->activation = activation;
  place(rewriter, position, producer, std::move(*source));
  return true;
}

// activation(reshape(product)) -> reshape(activation(product)): the two then fuse.
bool fuse_behind_reshape(Rewriter& rewriter, int position, const Producer& producer) {
  const Node node = rewriter.node(position);
  const std::string activation = read_activation(rewriter, node);
  if (activation.empty()) return false;
  const Argument input = rewriter.resolve(node.arguments.front());
  const Node* reshape = rewriter.producer(input, "aten::reshape");
  if (reshape == nullptr || !rewriter.has_one_use(input.value())) return false;
  const Argument product = rewriter.resolve(reshape->argument("self")),
                 shape = rewriter.resolve(reshape->argument("shape"));
  std::optional<Source> source = find_source(rewriter, product, producer);
  if (!source || source->activation != "none" || reshape->result() == node.result()) return false;
  source->arguments.emplace_back(activation);
  source->arguments.push_back(source->residual);
  const ValueId fused = rewriter.insert_before(position, Op::find(producer.fused), std::move(source->arguments),
                                               {rewriter.type_of(product)}, source->origin);
  rewriter.replace_node(position, Op::find("aten::reshape"), {fused, shape});
  return true;
}

// The residual is added before the activation, so it fuses only while there is none.
bool fuse_residual(Rewriter& rewriter, int position, const Producer& producer) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::add.Tensor")) return false;
  const auto sum = match_sum(rewriter, Argument(node.result()));
  if (!sum) return false;
  for (const auto& [product, other] : {*sum, std::pair{sum->second, sum->first}}) {
    // Same sizes and dtype: a broadcast residual is another kernel.
    const ValueType& type = rewriter.type_of(node.result());
    if (product == other || !type.sized) continue;
    if (rewriter.type_of(product) != type || rewriter.type_of(other) != type) continue;
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
    fuse_activation(rewriter, position, producer) || fuse_behind_reshape(rewriter, position, producer) ||
        fuse_residual(rewriter, position, producer);
  }
  return rewriter.finish();
}

}  // namespace

int fuse_conv_activation(Program& program) { return fuse_into(program, kConv); }

int fuse_linear_activation(Program& program) { return fuse_into(program, kLinear); }

}  // namespace lissome
