// softmax(q k^T * scale + mask) v, written out by hand -> scaled_dot_product_attention (Vaswani et al. 2017; one pass over
// the keys as in Dao et al. 2022). The mask is any sum of terms that do not enlarge the scores; a scale after the mask,
// or scores that somebody else reads, keep the pattern apart. A row whose mask is -inf everywhere gives zeros where the
// written-out form divides zero by zero.
#include <algorithm>

#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

struct Attention {
  ValueId query = ValueId::none;
  ValueId transposed_key = ValueId::none;  // [..., E, S]
  double scale = 1;
  std::vector<Argument> terms;             // of the mask
};

const ValueType& type_of_value(Rewriter& rewriter, ValueId value) { return rewriter.program().value(value).type; }

const Node* find_matmul(Rewriter& rewriter, const Argument& argument) {
  if (const Node* node = rewriter.producer(argument, "aten::matmul")) return node;
  return rewriter.producer(argument, "aten::bmm");
}

const Argument& right_side(const Node& matmul) { return matmul.argument(matmul.is("aten::bmm") ? "mat2" : "other"); }

// One step from the softmax's input towards the product; false when `value` is something else.
bool strip_term(Rewriter& rewriter, ValueId& value, Attention& attention, bool& scaled) {
  const ValueType& type = type_of_value(rewriter, value);
  if (!rewriter.has_one_use(value)) return false;
  if (const auto scale = match_scale(rewriter, Argument(value))) {
    attention.scale *= scale->number;
    value = scale->value;
    scaled = true;
    return true;
  }
  if (scaled) return false;  // a mask below the scale would be scaled too
  if (const auto sum = match_sum(rewriter, Argument(value))) {
    for (const auto& [scores, mask] : {*sum, std::pair{sum->second, sum->first}}) {
      if (type_of_value(rewriter, scores) != type || type_of_value(rewriter, mask).dtype != type.dtype) continue;
      const Node* node = rewriter.producer(scores);
      if (node == nullptr || !rewriter.has_one_use(scores)) continue;
      attention.terms.emplace_back(mask);
      value = scores;
      return true;
    }
  }
  return false;
}

// scores.masked_fill(mask, number): the number as an additive term where the mask is set.
bool strip_masked_fill(Rewriter& rewriter, int position, ValueId& value, Attention& attention) {
  const Node* node = rewriter.producer(Argument(value), "aten::masked_fill.Scalar");
  if (node == nullptr || !rewriter.has_one_use(value)) return false;
  const std::optional<double> number = constant_number(rewriter.program(), node->argument("value"));
  const Argument scores = rewriter.resolve(node->argument("self"));
  const Argument mask = rewriter.resolve(node->argument("mask"));
  if (!number || *number > -1e4 || !mask.is_value()) return false;
  if (type_of_value(rewriter, scores.value()) != type_of_value(rewriter, value)) return false;
  if (type_of_value(rewriter, value).dtype != Dtype::f32) return false;
  ValueType type = type_of_value(rewriter, mask.value());
  if (!type.sized) return false;
  type.dtype = Dtype::f32;
  const ValueId term = rewriter.insert_before(position, Op::find("aten::where.Scalar"), {mask, *number, 0.0},
                                              {std::move(type)}, node->origin);
  attention.terms.emplace_back(term);
  value = scores.value();
  return true;
}

std::optional<Attention> match_scores(Rewriter& rewriter, int position, ValueId scores) {
  Attention attention;
  bool scaled = false;
  ValueId value = scores;
  while (strip_term(rewriter, value, attention, scaled) ||
         (!scaled && strip_masked_fill(rewriter, position, value, attention))) {
  }
  const Node* product = find_matmul(rewriter, Argument(value));
  if (product == nullptr || !rewriter.has_one_use(value)) return std::nullopt;
  ValueId query = rewriter.resolve(product->argument("self")).value();
  ValueId key = rewriter.resolve(right_side(*product)).value();
  for (ValueId* side : {&query, &key}) {
    while (const auto scale = match_scale(rewriter, Argument(*side))) {
      attention.scale *= scale->number;
      *side = scale->value;
    }
  }
  attention.query = query;
  attention.transposed_key = key;
  return attention;
}

bool is_softmax_over_keys(Rewriter& rewriter, const Node& node) {
  const ValueType& type = type_of_value(rewriter, node.result());
  const auto* dim = node.argument("dim").get<int64_t>();
  if (!type.sized || dim == nullptr || type_of_value(rewriter, node.argument("self").value()).dtype != type.dtype) return false;
  return *dim == -1 || *dim == static_cast<int64_t>(type.sizes.size()) - 1;
}

// Batch dimensions of query, key and value must be equal: matmul would broadcast, attention would not.
bool shapes_agree(Rewriter& rewriter, const Attention& attention, ValueId value, ValueId result) {
  const ValueType& query = type_of_value(rewriter, attention.query);
  const ValueType& key = type_of_value(rewriter, attention.transposed_key);
  const ValueType& values = type_of_value(rewriter, value);
  const ValueType& output = type_of_value(rewriter, result);
  if (!query.sized || !key.sized || !values.sized || !output.sized) return false;
  const size_t rank = query.sizes.size();
  if (rank < 3 || rank > 4 || key.sizes.size() != rank || values.sizes.size() != rank) return false;
  if (!is_floating(query.dtype) || key.dtype != query.dtype || values.dtype != query.dtype) return false;
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (!(query.sizes[i] == key.sizes[i]) || !(query.sizes[i] == values.sizes[i])) return false;
  }
  return output.sizes.size() == rank && query.dtype == output.dtype;
}

bool fuse(Rewriter& rewriter, int position) {
  const Node product = rewriter.node(position);
  if (!product.is("aten::matmul") && !product.is("aten::bmm")) return false;
  const Argument weights = rewriter.resolve(product.argument("self"));
  const Argument value = rewriter.resolve(right_side(product));
  const Node* softmax = rewriter.producer(weights, "aten::softmax.int");
  if (softmax == nullptr || !value.is_value() || !rewriter.has_one_use(weights.value())) return false;
  if (!is_softmax_over_keys(rewriter, *softmax)) return false;
  const std::shared_ptr<const Origin> origin = softmax->origin;
  const auto attention = match_scores(rewriter, position, rewriter.resolve(softmax->argument("self")).value());
  if (!attention || !shapes_agree(rewriter, *attention, value.value(), product.result())) return false;

  ValueType key_type = type_of_value(rewriter, attention->transposed_key);
  std::swap(key_type.sizes.back(), key_type.sizes[key_type.sizes.size() - 2]);
  const ValueId key = rewriter.insert_before(position, Op::find("aten::transpose.int"),
                                             {attention->transposed_key, -2, -1}, {key_type}, origin);
  Argument mask;
  for (const Argument& term : attention->terms) {
    if (mask.is_none()) {
      mask = term;
      continue;
    }
    // Sizes of the sum are those of the broadcast: left for inference to fill in.
    ValueType type;
    type.kind = ValueKind::tensor;
    type.dtype = Dtype::f32;
    mask = rewriter.insert_before(position, Op::find("aten::add.Tensor"), {mask, term}, {type}, origin);
  }
  rewriter.replace_node(position, Op::find("aten::scaled_dot_product_attention"),
                        {attention->query, key, value, mask, 0.0, false, attention->scale});
  return true;
}

}  // namespace

int fuse_attention(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) fuse(rewriter, position);
  return rewriter.finish();
}

}  // namespace lissome
