// The one list of native steps. A plan may name these kernels, and "reference".
#include "lissome/runtime/step/step_families.h"

namespace lissome {

std::span<const StepRow> step_rows() {
  static const std::vector<StepRow> rows = [] {
    std::vector<StepRow> all;
    for (const auto list : {list_attention_gradient_steps,
                            list_attention_steps,
                            list_average_pool_u8_steps,
                            list_batch_norm_steps,
                            list_channel_steps,
                            list_col2im_steps,
                            list_conv_bf16_steps,
                            list_conv_f32_steps,
                            list_conv_gradient_steps,
                            list_conv_u8s8_steps,
                            list_copy_steps,
                            list_depthwise_steps,
                            list_dropout_steps,
                            list_elementwise_steps,
                            list_embedding_gradient_steps,
                            list_gather_steps,
                            list_group_norm_steps,
                            list_interpolate_steps,
                            list_layer_norm_steps,
                            list_linear_steps,
                            list_linear_u8s8_steps,
                            list_lut_u8_steps,
                            list_matmul_steps,
                            list_nll_loss_steps,
                            list_normalize_gradient_steps,
                            list_offload_steps,
                            list_pool_steps,
                            list_recurrent_steps,
                            list_reduce_steps,
                            list_softmax_steps,
                            list_view_steps,
                            list_winograd_steps}) {
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
