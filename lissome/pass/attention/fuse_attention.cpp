// softmax(q k^T * scale + mask) v, written out by hand -> scaled_dot_product_attention (Vaswani et al. 2017; one pass
// over the keys as in Dao et al. 2022). Masks are terms that do not enlarge the scores, or fills with a number so low
// that adding it gives the same. A scale after the mask, or scores that somebody else reads, keep the pattern apart.
//
// Where a mask of -inf leaves a row without any key, the written-out form divides zero by zero, and attention would
// give zeros: there the mask becomes NaN, as far as it may hold -inf.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lissome/pass/attention/mask_numbers.h"
#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

// Added to a score, a number from here on down gives itself in f32: |score| is lost in rounding. So a fill is a sum.
constexpr double kFillThreshold = -1e9;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The derivative of attention finds the weights of a row again as exp(score - logarithm of their sum). Where a mask
// lowers a whole row by more than this, f32 does not hold that difference to 1e-5.
constexpr double kLargeForDerivative = 64;

class AttentionFuser {
 public:
  AttentionFuser(Rewriter& rewriter, int position, bool with_derivative)
      : rewriter_(rewriter), position_(position), with_derivative_(with_derivative) {}

  bool fuse() {
    const Node product = rewriter_.node(position_);
    if (!product.is("aten::matmul") && !product.is("aten::bmm")) return false;
    origin_ = product.origin;
    const Argument weights = rewriter_.resolve(product.arguments[0]);
    const ValueId value = rewriter_.resolve(product.arguments[1]).value();
    const Node* softmax = rewriter_.producer(weights, "aten::softmax.int");
    const bool safe = softmax == nullptr;
    if (safe) softmax = rewriter_.producer(weights, "aten::_safe_softmax");
    if (softmax == nullptr || value == ValueId::none || !rewriter_.has_one_use(weights.value())) return false;
    if (!is_over_keys(*softmax) || !match_scores(rewriter_.resolve(softmax->argument("self")).value())) return false;
    if (!shapes_agree(value, product.result())) return false;
    for (Term& term : terms_) term.added = find_added(term);
    if (with_derivative_ && may_lower_rows()) return false;
    origin_ = softmax->origin;
    Argument mask;
    if (!make_mask(mask)) return false;
    if (!safe && may_mask_rows()) mask = break_empty_rows(mask);
    ValueType key_type = rewriter_.type_of(transposed_key_);
    std::swap(key_type.sizes.back(), key_type.sizes[key_type.sizes.size() - 2]);
    const ValueId key = insert("aten::transpose.int", {transposed_key_, -2, -1}, key_type);
    rewriter_.replace_node(position_, Op::find("aten::scaled_dot_product_attention"),
                           {query_, key, value, mask, 0.0, false, scale_});
    return true;
  }

 private:
  // A mask: added as it is, or a fill with `number` where `value` is `fills`.
  struct Term {
    ValueId value = ValueId::none;
    std::optional<double> number;
    bool fills = true;
    MaskNumbers added;  // what the term adds to scores
  };

  ValueId insert(std::string_view op, ArgumentList arguments, ValueType type) {
    return rewriter_.insert_before(position_, Op::find(op), std::move(arguments), {std::move(type)}, origin_);
  }

  bool is_over_keys(const Node& softmax) const {
    const ValueType& type = rewriter_.type_of(softmax.result());
    const auto* dim = softmax.argument("dim").get<int64_t>();
    if (!is_sized_float(type) || dim == nullptr || rewriter_.type_of(softmax.argument("self")) != type) return false;
    return *dim == -1 || *dim == static_cast<int64_t>(type.sizes.size()) - 1;
  }

  // From the softmax's input down to the product: masks first, then scales.
  bool match_scores(ValueId value) {
    while (strip_sum(value) || strip_fill(value) || strip_choice(value)) {
    }
    while (strip_scale(value)) {
    }
    const Node* product = rewriter_.producer(value);
    if (product == nullptr || !rewriter_.has_one_use(value)) return false;
    if (!product->is("aten::matmul") && !product->is("aten::bmm")) return false;
    query_ = strip_side(product->arguments[0]);
    transposed_key_ = strip_side(product->arguments[1]);
    return query_ != ValueId::none && transposed_key_ != ValueId::none && scale_ != 0 && std::isfinite(scale_);
  }

  bool strip_scale(ValueId& value) {
    const auto scaled = match_scale(rewriter_, Argument(value));
    if (!scaled || !rewriter_.has_one_use(value)) return false;
    scale_ *= scaled->number;
    value = scaled->value;
    return true;
  }

  // Scales of query and key are scales of the scores.
  ValueId strip_side(const Argument& argument) {
    const ScaledValue scaled = strip_scales(rewriter_, rewriter_.resolve(argument).value());
    scale_ *= scaled.number;
    return scaled.value;
  }

  // Whether a few masks and scales lead from `value` down to the product; a sum may hold it on either side.
  bool leads_to_product(ValueId value, int steps = 8) const {
    if (value == ValueId::none || steps == 0) return false;
    const Node* node = rewriter_.producer(value);
    if (node == nullptr || node->arguments.empty()) return false;
    if (node->is("aten::matmul") || node->is("aten::bmm")) return true;
    const auto leads = [&](size_t argument) {
      return leads_to_product(rewriter_.resolve(node->arguments[argument]).value(), steps - 1);
    };
    if (node->is("aten::add.Tensor")) return leads(0) || leads(1);
    return leads(node->is("aten::where.self") ? 1 : 0);
  }

  bool strip_sum(ValueId& value) {
    const auto sum = match_sum(rewriter_, Argument(value));
    if (!sum || !rewriter_.has_one_use(value)) return false;
    for (const auto& [scores, mask] : {*sum, std::pair{sum->second, sum->first}}) {
      const ValueType &type = rewriter_.type_of(value), &mask_type = rewriter_.type_of(mask);
      if (rewriter_.type_of(scores) != type || !mask_type.sized || mask_type.dtype != type.dtype) continue;
      if (!leads_to_product(scores)) continue;
      terms_.push_back({mask, std::nullopt});
      value = scores;
      return true;
    }
    return false;
  }

  bool add_fill(ValueId& value, const Argument& scores, const Argument& mask, std::optional<double> number,
                bool fills) {
    const ValueType& type = rewriter_.type_of(value);
    if (!number || *number > kFillThreshold || !mask.is_value() || !scores.is_value()) return false;
    if (!rewriter_.has_one_use(value) || rewriter_.type_of(scores) != type || type.dtype != Dtype::f32) return false;
    if (!rewriter_.type_of(mask).sized || rewriter_.type_of(mask).dtype != Dtype::boolean) return false;
    if (!leads_to_product(scores.value())) return false;
    terms_.push_back({mask.value(), number, fills});
    value = scores.value();
    return true;
  }

  // scores.masked_fill(mask, number)
  bool strip_fill(ValueId& value) {
    const Node* node = rewriter_.producer(value);
    if (node == nullptr || (!node->is("aten::masked_fill.Scalar") && !node->is("aten::masked_fill.Tensor")))
      return false;
    return add_fill(value, rewriter_.resolve(node->argument("self")), rewriter_.resolve(node->argument("mask")),
                    constant_number(rewriter_, rewriter_.resolve(node->argument("value"))), true);
  }

  // where(mask, scores, number)
  bool strip_choice(ValueId& value) {
    const Node* node = rewriter_.producer(value);
    if (node == nullptr || (!node->is("aten::where.self") && !node->is("aten::where.ScalarOther"))) return false;
    return add_fill(value, rewriter_.resolve(node->argument("self")), rewriter_.resolve(node->argument("condition")),
                    constant_number(rewriter_, rewriter_.resolve(node->argument("other"))), false);
  }

  // Batch dimensions of query, key and value must be equal: matmul would broadcast, attention would not.
  bool shapes_agree(ValueId value, ValueId result) const {
    const ValueType &query = rewriter_.type_of(query_), &key = rewriter_.type_of(transposed_key_);
    const ValueType &values = rewriter_.type_of(value), &output = rewriter_.type_of(result);
    if (!is_sized_float(query) || !key.sized || !values.sized || !output.sized) return false;
    const size_t rank = query.sizes.size();
    if (rank < 3 || rank > 4 || key.sizes.size() != rank || values.sizes.size() != rank) return false;
    if (key.dtype != query.dtype || values.dtype != query.dtype || output.dtype != query.dtype) return false;
    for (size_t i = 0; i + 2 < rank; ++i) {
      if (!(query.sizes[i] == key.sizes[i]) || !(query.sizes[i] == values.sizes[i])) return false;
    }
    return output.sizes.size() == rank && query.sizes.back() == key.sizes[rank - 2];
  }

  // One mask of all terms.
  bool make_mask(Argument& mask) {
    const Dtype dtype = rewriter_.type_of(query_).dtype;
    std::vector<Dimension> sizes;
    for (const Term& term : terms_) {
      const auto together = broadcast_sizes(sizes, rewriter_.type_of(term.value).sizes);
      if (!together) return false;
      sizes = *together;
    }
    sizes.clear();
    for (const Term& term : terms_) {
      const std::vector<Dimension> term_sizes = rewriter_.type_of(term.value).sizes;
      ValueId added = term.value;
      if (term.number) {
        const ArgumentList choice =
            term.fills ? ArgumentList{term.value, *term.number, 0.0} : ArgumentList{term.value, 0.0, *term.number};
        added = insert("aten::where.Scalar", choice, tensor_type(dtype, term_sizes));
      }
      sizes = *broadcast_sizes(sizes, term_sizes);
      mask = mask.is_none() ? Argument(added)
                            : Argument(insert("aten::add.Tensor", {mask, added}, tensor_type(dtype, sizes)));
    }
    return true;
  }

  MaskNumbers find_added(const Term& term) const {
    if (!term.number) return find_mask_numbers(rewriter_, Argument(term.value));
    if (std::isinf(*term.number)) return {0, true};
    return {std::abs(*term.number), false};
  }

  // Whether a mask may lower a whole row by finite numbers that are large. -inf makes such a row NaN either way.
  bool may_lower_rows() const {
    return std::ranges::any_of(terms_, [](const Term& term) { return term.added.largest > kLargeForDerivative; });
  }

  // Finite numbers whose sum is beyond f32 make -inf too.
  bool may_mask_rows() const {
    double sum = 0;
    for (const Term& term : terms_) {
      if (term.added.has_infinity) return true;
      if (std::isfinite(term.added.largest)) sum += term.added.largest;
    }
    return sum > std::numeric_limits<float>::max();
  }

  // The mask plus NaN in rows where every element is -inf: those are counted, as there is no largest of no elements.
  Argument break_empty_rows(const Argument& mask) {
    const ValueType type = rewriter_.type_of(mask);
    std::vector<Dimension> sizes = type.sizes;
    const ValueId seen = insert("aten::ne.Scalar", {mask, -kInfinity}, tensor_type(Dtype::boolean, sizes));
    const ValueId ones = insert("aten::where.Scalar", {seen, 1.0, 0.0}, type);
    sizes.back() = 1;
    const ValueType row = tensor_type(type.dtype, sizes);
    const ValueId count = insert("aten::sum.dim_IntList", {ones, ArgumentList{-1}, true}, row);
    const ValueId empty = insert("aten::eq.Scalar", {count, 0.0}, tensor_type(Dtype::boolean, sizes));
    const ValueId added = insert("aten::where.Scalar", {empty, std::nan(""), 0.0}, row);
    return insert("aten::add.Tensor", {mask, added}, type);
  }

  Rewriter& rewriter_;
  int position_;
  bool with_derivative_;
  std::shared_ptr<const Origin> origin_;
  ValueId query_ = ValueId::none, transposed_key_ = ValueId::none;  // the latter [..., E, S]
  double scale_ = 1;
  std::vector<Term> terms_;
};

int fuse(Program& program, bool with_derivative) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position)
    AttentionFuser(rewriter, position, with_derivative).fuse();
  return rewriter.finish();
}

}  // namespace

int fuse_attention(Program& program) { return fuse(program, false); }

int fuse_differentiable_attention(Program& program) { return fuse(program, true); }

}  // namespace lissome
