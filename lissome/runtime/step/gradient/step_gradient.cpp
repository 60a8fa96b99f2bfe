// What training adds: layer_norm_gradient (operands dy, x, mean, factor, weight or -1; results dx and sums by shares of
// the rows for weight and bias; attribute width), softmax_gradient (dy, y; attribute logarithm), nll_loss (logarithms
// [rows, classes], labels; results loss and number of labels counted), cross_entropy_gradient (logarithms, labels,
// gradient of the loss, labels counted; both with attributes mean, ignored), embedding_gradient (dy, indices; attribute
// padding).
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_schema.h"

namespace lissome {
namespace {

constexpr ValueRule kLayerNormGradientOperands[] = {
    {"dy", {Dtype::f32}},
    {"x", {Dtype::f32}},
    {"mean", {Dtype::f32}},
    {"factor", {Dtype::f32}},
    {"weight", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
};
constexpr ValueRule kLayerNormGradientResults[] = {
    {"dx", {Dtype::f32}}, {"weight sums", {Dtype::f32}}, {"bias sums", {Dtype::f32}}};
constexpr AttributeRule kLayerNormGradientAttributes[] = {integer_rule("width", 1, kLargestBytes, true)};
constexpr ValueRule kSoftmaxGradientOperands[] = {{"dy", {Dtype::f32}, ValueLayout::dense},
                                                  {"y", {Dtype::f32}, ValueLayout::dense}};
constexpr ValueRule kScoreGradient[] = {{"dx", {Dtype::f32}, ValueLayout::dense}};
constexpr AttributeRule kSoftmaxGradientAttributes[] = {flag_rule("channels"), flag_rule("logarithm")};
constexpr ValueRule kNllLossOperands[] = {{"logarithms", {Dtype::f32}, ValueLayout::dense}, {"labels", {Dtype::i64}}};
constexpr ValueRule kNllLossResults[] = {{"loss", {Dtype::f32}}, {"counted", {Dtype::f32}}};
constexpr ValueRule kCrossEntropyGradientOperands[] = {
    {"logarithms", {Dtype::f32}, ValueLayout::dense},
    {"labels", {Dtype::i64}},
    {"dloss", {Dtype::f32}},
    {"counted", {Dtype::f32}},
};
constexpr AttributeRule kNllLossAttributes[] = {integer_rule("mean", 0, 1, true),
                                                integer_rule("ignored", INT64_MIN, INT64_MAX, true)};
constexpr ValueRule kEmbeddingGradientOperands[] = {{"dy", {Dtype::f32}}, {"indices", {Dtype::i64}}};
constexpr ValueRule kEmbeddingGradientResults[] = {{"table", {Dtype::f32}}};
constexpr AttributeRule kEmbeddingGradientAttributes[] = {integer_rule("padding", INT64_MIN, INT64_MAX, true)};

constexpr StepSchema kGradientSchemas[] = {
    {"nll_loss", kNllLossOperands, kNllLossResults, kNllLossAttributes},
    {"cross_entropy_gradient", kCrossEntropyGradientOperands, kScoreGradient, kNllLossAttributes},
    {"embedding_gradient", kEmbeddingGradientOperands, kEmbeddingGradientResults, kEmbeddingGradientAttributes},
    {"layer_norm_gradient", kLayerNormGradientOperands, kLayerNormGradientResults, kLayerNormGradientAttributes},
    {"softmax_gradient", kSoftmaxGradientOperands, kScoreGradient, kSoftmaxGradientAttributes},
};

void require_elements(const StepBinder& binder, const PlacedValue& value, int64_t elements) {
  binder.require(value.elements() == elements, "an operand or result has ", value.elements(), " elements, must have ",
                 elements);
}

void require_scores(const StepBinder& binder, const PlacedValue& scores, const Sizes& sizes) {
  binder.require_sizes(scores, sizes);
  binder.require(scores.is_dense(sizes.size() == 4 ? Format::channels_last : Format::row_major),
                 "scores are not dense with their classes last");
}

// Rows of scores, or channels-last images of them, and a label for each.
template <typename Call>
void read_nll_loss(const StepBinder& binder, Call& call) {
  const PlacedValue &logarithms = binder.operand(0), &labels = binder.operand(1);
  const Sizes& sizes = logarithms.sizes;
  binder.require(sizes.size() == 2 || sizes.size() == 4, "the logarithms have ", sizes.size(), " dimensions");
  require_scores(binder, logarithms, sizes);
  call.classes = sizes[1];
  Sizes of_labels = sizes;
  of_labels.erase(of_labels.begin() + 1);
  binder.require_sizes(labels, of_labels);
  call.rows = labels.elements();
  call.mean = binder.attributes().integer("mean") != 0;
  call.ignored = binder.attributes().integer("ignored");
}

}  // namespace

std::span<const StepSchema> gradient_schemas() { return kGradientSchemas; }

void bind_layer_norm_gradient(StepBinder& binder) {
  const PlacedValue& x = binder.operand(1);
  LayerNormGradientCall call;
  call.width = binder.attributes().integer("width");
  binder.require(x.elements() % call.width == 0, "width is ", call.width);
  call.rows = x.elements() / call.width;
  require_elements(binder, binder.operand(0), x.elements());
  require_elements(binder, binder.operand(2), call.rows);
  require_elements(binder, binder.operand(3), call.rows);
  require_elements(binder, binder.result(0), x.elements());
  for (const size_t i : {size_t{1}, size_t{2}}) binder.require_sizes(binder.result(i), {kGradientShares, call.width});
  binder.set_call("layer_norm_gradient", call);
  binder.point(&LayerNormGradientCall::dy, binder.operand(0));
  binder.point(&LayerNormGradientCall::x, x);
  binder.point(&LayerNormGradientCall::mean, binder.operand(2));
  binder.point(&LayerNormGradientCall::factor, binder.operand(3));
  if (binder.has_operand(4)) {
    require_elements(binder, binder.operand(4), call.width);
    binder.point(&LayerNormGradientCall::weight, binder.operand(4));
  }
  binder.point(&LayerNormGradientCall::dx, binder.result(0));
  binder.point(&LayerNormGradientCall::weight_sums, binder.result(1));
  binder.point(&LayerNormGradientCall::bias_sums, binder.result(2));
  binder.set_work(0, 24.0 * static_cast<double>(x.elements()));
}

void bind_softmax_gradient(StepBinder& binder) {
  const PlacedValue& y = binder.operand(1);
  SoftmaxGradientCall call;
  call.width = read_softmax_width(binder, {&binder.operand(0), &y, &binder.result()});
  call.rows = call.width > 0 ? y.elements() / call.width : 0;
  call.logarithm = binder.attributes().integer("logarithm", 0) != 0;
  binder.set_call("softmax_gradient", call);
  binder.point(&SoftmaxGradientCall::dy, binder.operand(0));
  binder.point(&SoftmaxGradientCall::y, y);
  binder.point(&SoftmaxGradientCall::dx, binder.result());
  binder.set_work(0, 16.0 * static_cast<double>(y.elements()));
}

void bind_nll_loss(StepBinder& binder) {
  NllLossCall call;
  read_nll_loss(binder, call);
  for (const size_t i : {size_t{0}, size_t{1}}) require_elements(binder, binder.result(i), 1);
  call.fault_code = binder.fault_code();
  binder.set_call("nll_loss", call);
  binder.point(&NllLossCall::logarithms, binder.operand(0));
  binder.point(&NllLossCall::labels, binder.operand(1));
  binder.point(&NllLossCall::loss, binder.result(0));
  binder.point(&NllLossCall::counted, binder.result(1));
  binder.point_fault(&NllLossCall::fault);
  binder.set_work(0, 0);
}

void bind_cross_entropy_gradient(StepBinder& binder) {
  CrossEntropyGradientCall call;
  read_nll_loss(binder, call);
  for (const size_t i : {size_t{2}, size_t{3}}) require_elements(binder, binder.operand(i), 1);
  require_scores(binder, binder.result(), binder.operand(0).sizes);
  binder.set_call("cross_entropy_gradient", call);
  binder.point(&CrossEntropyGradientCall::logarithms, binder.operand(0));
  binder.point(&CrossEntropyGradientCall::labels, binder.operand(1));
  binder.point(&CrossEntropyGradientCall::dloss, binder.operand(2));
  binder.point(&CrossEntropyGradientCall::counted, binder.operand(3));
  binder.point(&CrossEntropyGradientCall::dx, binder.result());
  binder.set_work(0, 16.0 * static_cast<double>(call.rows * call.classes));
}

void bind_embedding_gradient(StepBinder& binder) {
  const PlacedValue &dy = binder.operand(0), &indices = binder.operand(1), &y = binder.result();
  binder.require(y.sizes.size() == 2, "the table must have 2 dimensions");
  EmbeddingGradientCall call;
  call.rows = y.sizes[0], call.width = y.sizes[1], call.count = indices.elements();
  Sizes sizes = indices.sizes;
  sizes.push_back(call.width);
  binder.require_sizes(dy, sizes);
  call.padding = binder.attributes().integer("padding");
  call.fault_code = binder.fault_code();
  binder.set_call("embedding_gradient", call);
  binder.point(&EmbeddingGradientCall::dy, dy);
  binder.point(&EmbeddingGradientCall::indices, indices);
  binder.point(&EmbeddingGradientCall::y, y);
  binder.point_fault(&EmbeddingGradientCall::fault);
  binder.set_work(0, 4.0 * static_cast<double>(y.elements() + 2 * dy.elements()));
}

}  // namespace lissome
