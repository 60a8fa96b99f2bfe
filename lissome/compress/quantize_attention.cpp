#include <ATen/core/ivalue.h>

#include <cmath>
#include <optional>

#include "lissome/compress.h"

namespace lissome {
namespace {

std::optional<double> find_scale(const Program& program, const Node& node) {
  const Argument& scale = node.argument("scale");
  if (const auto* given = scale.get<double>()) return *given;
  const auto size = program.value(node.argument("query").value()).type.sizes.back().constant();
  if (!scale.is_none() || !size || *size <= 0) return std::nullopt;
  return 1 / std::sqrt(static_cast<double>(*size));
}

bool is_wide(const Program& program, const Argument& argument) {
  const ValueType& type = program.value(argument.value()).type;
  return type.dtype == Dtype::f32 && type.sized && type.sizes.size() == 4;
}

// Batches that are broadcast, and masks of another kind, are for libtorch alone.
bool fits(const Program& program, const Node& node) {
  if (!node.is("aten::scaled_dot_product_attention")) return false;
  for (const char* name : {"query", "key", "value"}) {
    if (!is_wide(program, node.argument(name))) return false;
  }
  const auto* dropout = node.argument("dropout_p").get<double>();
  const Argument& mask = node.argument("attn_mask");
  if (!dropout || *dropout != 0 || node.argument("is_causal").get<bool>() == nullptr) return false;
  if (mask.is_none()) return true;
  const Dtype dtype = program.value(mask.value()).type.dtype;
  return dtype == Dtype::f32 || dtype == Dtype::boolean;
}

}  // namespace

int quantize_attention(Program& program) {
  int count = 0;
  for (Node& node : program.nodes) {
    if (!fits(program, node)) continue;
    const std::optional<double> scale = find_scale(program, node);
    if (!scale) continue;
    node.arguments = {node.argument("query"),     node.argument("key"),       node.argument("value"),
                      node.argument("attn_mask"), node.argument("is_causal"), Argument(*scale)};
    node.op = Op::find("lissome::attention_int8");
    ++count;
  }
  return count;
}

}  // namespace lissome
