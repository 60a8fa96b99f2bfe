// The one list of native steps. A plan may name these kernels, and "reference".
#include <array>

#include "lissome/runtime/step/step_families.h"
#include "lissome/runtime/step/step_rows.h"

namespace lissome {
namespace {

constexpr std::array kRows = {
    // kernel, binder, view, operands whose memory the result may take, transfer
    StepRow{"attention", bind_attention, false, 0},
    StepRow{"attention_bf16", bind_attention_bf16, false, 0},
    StepRow{"average_pool_u8", bind_average_pool_u8, false, 0},
    StepRow{"batch_norm_gradients", bind_batch_norm_gradients, false, 0},
    StepRow{"batch_norm_statistics", bind_batch_norm_statistics, false, 0},
    StepRow{"channel_affine", bind_channel_affine, false, 1u | 1u << 3 | 1u << 6},
    StepRow{"channel_sums", bind_channel_sums, false, 0},
    StepRow{"channel_totals", bind_channel_totals, false, 0},
    StepRow{"attention_u8s8", bind_attention_u8s8, false, 0},
    StepRow{"attention_gradient", bind_attention_gradient, false, 0},
    StepRow{"attention_gradient_bf16", bind_attention_gradient_bf16, false, 0},
    StepRow{"nll_loss", bind_nll_loss, false, 0},
    StepRow{"cross_entropy_gradient", bind_cross_entropy_gradient, false, 1u},
    StepRow{"concat", bind_concat, false, 0},
    StepRow{"conv_bf16", bind_conv_bf16, false, 1u << 3},
    StepRow{"conv_data_f32", bind_conv_data_f32, false, 0},
    StepRow{"conv_f32", bind_conv_f32, false, 1u << 3},
    StepRow{"conv_weight_bf16", bind_conv_weight_bf16, false, 0},
    StepRow{"conv_weight_f32", bind_conv_weight_f32, false, 0},
    StepRow{"copy", bind_copy, false, 0},
    StepRow{"cumulate", bind_cumulate, false, 1u},
    StepRow{"depthwise_bf16", bind_depthwise_bf16, false, 1u << 3},
    StepRow{"depthwise_f32", bind_depthwise_f32, false, 1u << 3},
    StepRow{"depthwise_transposed_bf16", bind_depthwise_transposed_bf16, false, 1u << 3},
    StepRow{"depthwise_transposed_f32", bind_depthwise_transposed_f32, false, 1u << 3},
    StepRow{"dropout", bind_dropout, false, 1u},
    StepRow{"elementwise", bind_elementwise, false, ~0u},
    StepRow{"embedding_gradient", bind_embedding_gradient, false, 0},
    StepRow{"find_largest", bind_find_largest, false, 0},
    StepRow{"col2im", bind_col2im, false, 0},
    StepRow{"gather_rows", bind_gather_rows, false, 0},
    StepRow{"group_norm", bind_group_norm, false, 1u},
    StepRow{"group_norm_bf16", bind_group_norm_bf16, false, 1u},
    StepRow{"gru", bind_gru, false, 0},
    StepRow{"gru_bf16", bind_gru_bf16, false, 0},
    StepRow{"gru_u8s8", bind_gru_u8s8, false, 0},
    StepRow{"interpolate", bind_interpolate, false, 0},
    StepRow{"interpolate_bf16", bind_interpolate_bf16, false, 0},
    StepRow{"layer_norm", bind_layer_norm, false, 3u},
    StepRow{"layer_norm_bf16", bind_layer_norm_bf16, false, 1u},
    StepRow{"layer_norm_gradient", bind_layer_norm_gradient, false, 1u},
    StepRow{"linear_bf16", bind_linear_bf16, false, 1u << 3},
    StepRow{"linear_f32", bind_linear_f32, false, 1u << 3},
    StepRow{"lstm", bind_lstm, false, 0},
    StepRow{"lstm_bf16", bind_lstm_bf16, false, 0},
    StepRow{"lstm_u8s8", bind_lstm_u8s8, false, 0},
    StepRow{"matmul_bf16", bind_matmul_bf16, false, 1u << 3},
    StepRow{"matmul_f32", bind_matmul_f32, false, 1u << 3 | 1u << 4},
    StepRow{"max_pool_gradient", bind_max_pool_gradient, false, 0},
    StepRow{"max_pool_indices", bind_max_pool_indices, false, 0},
    StepRow{kOffloadStep, bind_offload, false, 0, true},
    StepRow{"pack_conv_bf16", bind_pack_conv_bf16, false, 0},
    StepRow{"pack_conv_f32", bind_pack_conv_f32, false, 0},
    StepRow{"pad", bind_pad, false, 0},
    StepRow{"pool", bind_pool, false, 0},
    StepRow{"reduce", bind_reduce, false, 0},
    StepRow{kReloadStep, bind_reload, false, 0, true},
    StepRow{"separable_f32", bind_separable_f32, false, 1u << 3},
    StepRow{"softmax", bind_softmax, false, 1u},
    StepRow{"softmax_bf16", bind_softmax_bf16, false, 1u},
    StepRow{"softmax_gradient", bind_softmax_gradient, false, 3u},
    StepRow{"lut_u8", bind_lut_u8, false, 1u},
    StepRow{"gather", bind_gather, false, 0},
    StepRow{"view", bind_view, true, 0},
    StepRow{"winograd_f32", bind_winograd_f32, false, 1u << 3},
};

}  // namespace

std::span<const StepRow> step_rows() {
  static const std::vector<StepRow> rows = [] {
    std::vector<StepRow> all(kRows.begin(), kRows.end());
    for (const auto list : {list_conv_u8s8_steps, list_linear_u8s8_steps}) {
      for (const StepRow& row : list()) all.push_back(row);
    }
    return all;
  }();
  return rows;
}

const StepRow& find_step_row(std::string_view kernel) {
  for (const StepRow& row : step_rows()) {
    if (row.kernel == kernel) return row;
  }
  throw_error(ErrorKind::invalid_input, "plan: there is no kernel ", quote(kernel));
}

}  // namespace lissome
