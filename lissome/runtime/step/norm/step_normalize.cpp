// layer_norm: operands x, residual, weight, bias; results y and perhaps x + residual, or with attribute "statistics"
// the mean and the factor of each row. softmax: over the last dimension, or with attribute "channels" over those of
// channels-last images; attributes logarithm, zero_unseen.
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_schema.h"

namespace lissome {
namespace {

constexpr ValueRule kLayerNormOperands[] = {
    {"x", {Dtype::f32}},
    {"residual", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
    {"weight", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
    {"bias", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
};
constexpr ValueRule kLayerNormResults[] = {
    {"y", {Dtype::f32}},
    {"sum or mean", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
    {"factor", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
};
constexpr AttributeRule kLayerNormAttributes[] = {
    integer_rule("width", 1, kLargestBytes, true),
    any_number_rule("epsilon"),
    flag_rule("root_mean_square"),
    flag_rule("statistics"),
};
constexpr ValueRule kSoftmaxOperands[] = {{"x", {Dtype::f32}, ValueLayout::dense}};
constexpr ValueRule kSoftmaxResults[] = {{"y", {Dtype::f32}, ValueLayout::dense}};
constexpr AttributeRule kSoftmaxAttributes[] = {flag_rule("channels"), flag_rule("logarithm"),
                                                flag_rule("zero_unseen")};

constexpr StepSchema kNormalizeSchemas[] = {
    {"layer_norm", kLayerNormOperands, kLayerNormResults, kLayerNormAttributes},
    {"softmax", kSoftmaxOperands, kSoftmaxResults, kSoftmaxAttributes},
};

}  // namespace

std::span<const StepSchema> normalize_schemas() { return kNormalizeSchemas; }

void bind_layer_norm(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  LayerNormCall call;
  call.width = binder.attributes().integer("width");
  binder.require(x.elements() % call.width == 0, "width is ", call.width);
  call.rows = x.elements() / call.width;
  call.epsilon = static_cast<float>(binder.attributes().number("epsilon", 0));
  call.root_mean_square = binder.attributes().integer("root_mean_square", 0) != 0;
  const auto check = [&](const PlacedValue& value, int64_t elements) {
    binder.require(value.elements() == elements, "an operand or result has ", value.elements(), " elements, must have ",
                   elements);
  };
  check(y, x.elements());
  binder.set_call("layer_norm", call);
  binder.point(&LayerNormCall::x, x);
  binder.point(&LayerNormCall::y, y);
  if (binder.has_operand(1)) {
    check(binder.operand(1), x.elements());
    binder.point(&LayerNormCall::residual, binder.operand(1));
  }
  if (binder.has_operand(2)) {
    check(binder.operand(2), call.width);
    binder.point(&LayerNormCall::weight, binder.operand(2));
  }
  if (binder.has_operand(3)) {
    check(binder.operand(3), call.width);
    binder.point(&LayerNormCall::bias, binder.operand(3));
  }
  const size_t results = binder.step().results.size();
  const bool statistics = binder.attributes().integer("statistics", 0) != 0;
  binder.require(statistics == (results == 3), results, " results with statistics = ", int{statistics});
  if (statistics) {
    check(binder.result(1), call.rows);
    check(binder.result(2), call.rows);
    binder.point(&LayerNormCall::mean, binder.result(1));
    binder.point(&LayerNormCall::factor, binder.result(2));
  } else if (results > 1) {
    check(binder.result(1), x.elements());
    binder.point(&LayerNormCall::sum, binder.result(1));
  }
  binder.set_work(0, 16.0 * static_cast<double>(x.elements()));
}

int64_t read_softmax_width(const StepBinder& binder, std::initializer_list<const PlacedValue*> values) {
  const Sizes& sizes = (*values.begin())->sizes;
  const bool channels = binder.attributes().integer("channels", 0) != 0;
  binder.require(!channels || sizes.size() == 4, "there are no images");
  for (const PlacedValue* value : values) {
    binder.require_sizes(*value, sizes);
    binder.require(value->is_dense(channels ? Format::channels_last : Format::row_major), "a value is not dense");
  }
  return channels ? sizes[1] : sizes.empty() ? 1 : sizes.back();
}

void bind_softmax(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  SoftmaxCall call;
  call.width = read_softmax_width(binder, {&x, &y});
  call.rows = call.width > 0 ? x.elements() / call.width : 0;
  call.logarithm = binder.attributes().integer("logarithm", 0) != 0;
  call.zero_unseen = binder.attributes().integer("zero_unseen", 0) != 0;
  binder.set_call("softmax", call);
  binder.point(&SoftmaxCall::x, x);
  binder.point(&SoftmaxCall::y, y);
  binder.set_work(0, 24.0 * static_cast<double>(x.elements()));
}

}  // namespace lissome
