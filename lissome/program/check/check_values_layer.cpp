// Checks of sizes that whole layers take for granted: the inner ops of norms and attention, whose callers check them
// in eager PyTorch, and LSTM layers (check_recurrent.h).
#include <ATen/core/ivalue.h>

#include <array>

#include "lissome/program/check/check_recurrent.h"
#include "lissome/program/check/check_values_rows.h"

namespace lissome {
namespace {

// One number for each channel, dense enough to be read as such.
void require_channels(std::string_view name, const c10::IValue& value, int64_t channels) {
  if (!is_present(value)) return;
  const at::Tensor& tensor = value.toTensor();
  require_value(tensor.dim() == 1 && tensor.size(0) == channels, "'", name, "' is ", print_sizes(tensor.sizes()),
                ", the input has ", channels, " channels");
  require_value(at::isFloatingType(tensor.scalar_type()), "'", name, "' must hold floating-point numbers");
}

// (input, weight, bias, running_mean, running_var, ...); `statistics` of them are there.
void check_batch_norm_channels(IValueSpan arguments, bool statistics) {
  const at::Tensor& input = arguments[0].toTensor();
  require_value(input.dim() >= 2, "the input of a batch norm has 2 dimensions at least, not ", input.dim());
  static constexpr std::array kNames = {"weight", "bias", "running_mean", "running_var"};
  for (size_t i = 0; i < (statistics ? 4U : 2U); ++i) require_channels(kNames[i], arguments[i + 1], input.size(1));
}

void check_batch_norm(IValueSpan arguments) { check_batch_norm_channels(arguments, true); }
void check_batch_norm_no_stats(IValueSpan arguments) {
  check_batch_norm_channels(arguments, false);
  require_value(arguments[3].toBool(), "a batch norm outside of training needs its running statistics");
}

// Out of training the running statistics are read.
void check_native_batch_norm(IValueSpan arguments) {
  check_batch_norm_channels(arguments, true);
  require_value(arguments[5].toBool() || (is_present(arguments[3]) && is_present(arguments[4])),
                "a batch norm outside of training needs its running statistics");
}

void check_inference_batch_norm(IValueSpan arguments) {
  check_batch_norm_channels(arguments, true);
  require_value(is_present(arguments[3]) && is_present(arguments[4]),
                "a batch norm outside of training needs its running statistics");
}

// (input, weight, bias, N, C, HxW, group, eps)
void check_group_norm(IValueSpan arguments) {
  const at::Tensor& input = arguments[0].toTensor();
  const int64_t batch = arguments[3].toInt(), channels = arguments[4].toInt(), positions = arguments[5].toInt(),
                groups = arguments[6].toInt();
  require_value(groups >= 1 && channels % groups == 0, channels, " channels do not make ", groups, " groups");
  const std::array<int64_t, 3> sizes = {batch, channels, positions};
  require_value(count_bytes(Dtype::u8, sizes) == input.numel(), "the input ", print_sizes(input.sizes()), " is not ",
                batch, " times ", channels, " channels of ", positions, " numbers");
  require_channels("weight", arguments[1], channels);
  require_channels("bias", arguments[2], channels);
}

// (query, key, value, dropout_p, is_causal, attn_mask, scale)
void check_flash_attention(IValueSpan arguments) {
  const at::Tensor &query = arguments[0].toTensor(), &key = arguments[1].toTensor(), &value = arguments[2].toTensor();
  for (const at::Tensor* operand : {&query, &key, &value}) {
    require_value(operand->dim() == 4, "query, key and value have 4 dimensions, not ", operand->dim());
    require_value(at::isFloatingType(operand->scalar_type()) && operand->scalar_type() == query.scalar_type(),
                  "query, key and value hold floating-point numbers of one dtype");
  }
  const bool fit = query.size(0) == key.size(0) && query.size(0) == value.size(0) && query.size(1) == key.size(1) &&
                   query.size(1) == value.size(1) && key.size(2) == value.size(2) && query.size(3) == key.size(3) &&
                   query.size(3) == value.size(3);
  require_value(fit, "query ", print_sizes(query.sizes()), ", key ", print_sizes(key.sizes()), " and value ",
                print_sizes(value.sizes()), " do not fit together");
  if (!is_present(arguments[5])) return;
  const at::Tensor& mask = arguments[5].toTensor();
  require_value(mask.dim() == 2 || mask.dim() == 4, "the mask has 2 or 4 dimensions, not ", mask.dim());
  const std::array<int64_t, 4> scores = {query.size(0), query.size(1), query.size(2), key.size(2)};
  for (int64_t i = 1; i <= mask.dim(); ++i) {
    const int64_t size = mask.size(-i), wanted = scores[static_cast<size_t>(4 - i)];
    require_value(size == 1 || size == wanted, "the mask ", print_sizes(mask.sizes()), " fits no scores ",
                  print_sizes(scores));
  }
}

// (v, g, dim)
void check_weight_norm(IValueSpan arguments) {
  const at::Tensor &v = arguments[0].toTensor(), &g = arguments[1].toTensor();
  const int64_t dim = arguments[2].toInt();
  const bool is_along = v.dim() > 0 && (dim == 0 || dim == v.dim() - 1);
  require_value(v.numel() > 0 && is_along && g.numel() == v.size(dim) && g.scalar_type() == v.scalar_type(),
                "there are ", g.numel(), " lengths along dimension ", dim, " of ", print_sizes(v.sizes()));
}

// Along other dimensions, or over all, it is composed of ops that check.
void check_any_weight_norm(IValueSpan arguments) {
  const int64_t dim = arguments[2].toInt(), rank = arguments[0].toTensor().dim();
  if (rank > 0 && (dim == 0 || dim == rank - 1)) check_weight_norm(arguments);
}

// (qkv [batch, rows, 3 * width], bias [3 * width], heads)
void check_qkv(IValueSpan arguments) {
  const at::Tensor &qkv = arguments[0].toTensor(), &bias = arguments[1].toTensor();
  const int64_t heads = arguments[2].toInt();
  require_value(qkv.dim() == 3 && bias.dim() == 1 && bias.size(0) == qkv.size(2) && qkv.size(2) % 3 == 0 && heads > 0 &&
                    (qkv.size(2) / 3) % heads == 0 && bias.scalar_type() == qkv.scalar_type(),
                "queries, keys and values ", print_sizes(qkv.sizes()), " with biases ", print_sizes(bias.sizes()),
                " do not make ", heads, " heads");
}

// `weight` [out, in] and `bias` [out] of one dtype.
void require_linear(std::string_view name, const at::Tensor& weight, const at::Tensor& bias, int64_t out, int64_t in) {
  require_value(weight.dim() == 2 && weight.size(0) == out && weight.size(1) == in, "the weight of ", name, " is ",
                print_sizes(weight.sizes()), ", not [", out, ", ", in, "]");
  require_value(bias.dim() == 1 && bias.size(0) == out && bias.scalar_type() == weight.scalar_type(), "the bias of ",
                name, " is ", print_sizes(bias.sizes()), ", not [", out, "] of the weight's dtype");
}

void require_heads(int64_t width, int64_t heads) {
  require_value(width > 0 && heads > 0 && width % heads == 0, "a width of ", width, " does not make ", heads, " heads");
}

// (query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, ..., mask_type)
void check_multi_head(IValueSpan arguments) {
  const int64_t width = arguments[3].toInt();
  require_heads(width, arguments[4].toInt());
  for (size_t i = 0; i < 3; ++i) {
    const at::Tensor& operand = arguments[i].toTensor();
    require_value(operand.dim() == 3 && operand.size(2) == width && operand.size(0) == arguments[0].toTensor().size(0),
                  "query, key and value are [batch, rows, ", width, "], not ", print_sizes(operand.sizes()));
  }
  require_value(arguments[1].toTensor().sizes() == arguments[2].toTensor().sizes(), "key and value differ in size");
  require_linear("the projections of query, key and value", arguments[5].toTensor(), arguments[6].toTensor(), 3 * width,
                 width);
  require_linear("the projection of the output", arguments[7].toTensor(), arguments[8].toTensor(), width, width);
}

// (src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, ..., eps, four of norms, four of two
// layers)
void check_encoder_layer(IValueSpan arguments) {
  const at::Tensor& source = arguments[0].toTensor();
  const int64_t width = arguments[1].toInt();
  require_heads(width, arguments[2].toInt());
  require_value(source.dim() == 3 && source.size(2) == width, "the input is [batch, rows, ", width, "], not ",
                print_sizes(source.sizes()));
  const auto tensor = [&](size_t i) -> const at::Tensor& { return arguments[i].toTensor(); };
  require_linear("the projections of query, key and value", tensor(3), tensor(4), 3 * width, width);
  require_linear("the projection of the output", tensor(5), tensor(6), width, width);
  for (size_t i = 10; i < 14; ++i) require_channels("a norm", arguments[i], width);
  const int64_t inner = tensor(14).dim() == 2 ? tensor(14).size(0) : -1;
  require_linear("the first layer", tensor(14), tensor(15), inner, width);
  require_linear("the second layer", tensor(16), tensor(17), width, inner);
}

// (self, mask, dim, mask_type)
void check_masked_softmax(IValueSpan arguments) {
  const at::Tensor &scores = arguments[0].toTensor(), &mask = arguments[1].toTensor();
  require_value(mask.scalar_type() == at::kBool && mask.sizes() == scores.sizes() && arguments[3].isNone(),
                "the mask must be of bool and as large as the scores ", print_sizes(scores.sizes()),
                ", without a mask_type");
  const int64_t dimension = arguments[2].isNone() ? -1 : arguments[2].toInt();
  require_value(
      scores.dim() == 0 || dimension < -scores.dim() || dimension >= scores.dim() || scores.size(dimension) > 0,
      "the rows of the scores ", print_sizes(scores.sizes()), " are empty");
}

template <int64_t gates>
void check_layers(IValueSpan arguments) {
  check_recurrent(arguments, gates);
}

template <int64_t gates>
void check_cell(IValueSpan arguments) {
  check_recurrent_cell(arguments, gates);
}

}  // namespace

std::span<const ValueCheckRow> layer_check_rows() {
  static constexpr std::array<ValueCheckRow, 25> kRows = {{
      {"aten::native_batch_norm", check_native_batch_norm},
      {"aten::_native_batch_norm_legit", check_native_batch_norm},
      {"aten::_native_batch_norm_legit_functional", check_native_batch_norm},
      {"aten::_native_batch_norm_legit.no_stats", check_batch_norm_no_stats},
      {"aten::_native_batch_norm_legit_no_training", check_inference_batch_norm},
      {"aten::_batch_norm_with_update", check_batch_norm},
      {"aten::_batch_norm_with_update_functional", check_batch_norm},
      {"aten::_batch_norm_no_update", check_inference_batch_norm},
      {"aten::_batch_norm_impl_index", check_native_batch_norm},
      {"aten::native_group_norm", check_group_norm},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", check_flash_attention},
      {"aten::_weight_norm_interface", check_weight_norm},
      {"aten::_weight_norm", check_any_weight_norm},
      {"aten::_transform_bias_rescale_qkv", check_qkv},
      {"aten::_native_multi_head_attention", check_multi_head},
      {"aten::_transformer_encoder_layer_fwd", check_encoder_layer},
      {"aten::_masked_softmax", check_masked_softmax},
      {"aten::lstm.input", check_layers<4>},
      {"aten::gru.input", check_layers<3>},
      {"aten::rnn_tanh.input", check_layers<1>},
      {"aten::rnn_relu.input", check_layers<1>},
      {"aten::lstm_cell", check_cell<4>},
      {"aten::gru_cell", check_cell<3>},
      {"aten::rnn_tanh_cell", check_cell<1>},
      {"aten::rnn_relu_cell", check_cell<1>},
  }};
  return kRows;
}

}  // namespace lissome
