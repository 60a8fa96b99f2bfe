// The one list of kernels: a new row here gives a kernel its place in plans, tests and micro benchmarks.
#include "lissome/kernel/kernel_table.h"

#include <array>

#include "lissome/base.h"
#include "lissome/kernel/kernel_table_rows.h"

namespace lissome {
namespace {

template <auto Function>
struct Erased;
template <typename Call, void (*Function)(const Call&, int, int)>
struct Erased<Function> {
  static void run(const void* call, int part, int parts) { Function(*static_cast<const Call*>(call), part, parts); }
};

template <auto Function>
constexpr KernelRow row(std::string_view name, Isa isa) {
  return {name, isa, &Erased<Function>::run};
}

constexpr std::array kRows = {
    row<adam_avx512>("adam", Isa::avx512),
    row<adam_avx2>("adam", Isa::avx2),
    row<adam_portable>("adam", Isa::portable),
    row<adam_bytes_avx512>("adam_bytes", Isa::avx512),
    row<adam_bytes_avx2>("adam_bytes", Isa::avx2),
    row<adam_bytes_portable>("adam_bytes", Isa::portable),
    row<attention_avx512>("attention", Isa::avx512),
    row<attention_avx2>("attention", Isa::avx2),
    row<attention_portable>("attention", Isa::portable),
    row<attention_bf16_amx>("attention_bf16", Isa::amx),
    row<attention_bf16_avx512_bf16>("attention_bf16", Isa::avx512_bf16),
    row<attention_bf16_avx512>("attention_bf16", Isa::avx512),
    row<attention_bf16_avx2>("attention_bf16", Isa::avx2),
    row<attention_bf16_portable>("attention_bf16", Isa::portable),
    row<batch_norm_gradients_portable>("batch_norm_gradients", Isa::portable),
    row<batch_norm_statistics_portable>("batch_norm_statistics", Isa::portable),
    row<batch_norm_statistics_bf16_portable>("batch_norm_statistics_bf16", Isa::portable),
    row<average_pool_u8_avx512_vnni>("average_pool_u8", Isa::avx512_vnni),
    row<average_pool_u8_avx2>("average_pool_u8", Isa::avx2),
    row<average_pool_u8_portable>("average_pool_u8", Isa::portable),
    row<channel_affine_avx512>("channel_affine", Isa::avx512),
    row<channel_affine_avx2>("channel_affine", Isa::avx2),
    row<channel_affine_portable>("channel_affine", Isa::portable),
    row<channel_affine_bf16_avx512>("channel_affine_bf16", Isa::avx512),
    row<channel_affine_bf16_avx2>("channel_affine_bf16", Isa::avx2),
    row<channel_affine_bf16_portable>("channel_affine_bf16", Isa::portable),
    row<channel_sums_avx512>("channel_sums", Isa::avx512),
    row<channel_sums_avx2>("channel_sums", Isa::avx2),
    row<channel_sums_portable>("channel_sums", Isa::portable),
    row<channel_sums_bf16_avx512>("channel_sums_bf16", Isa::avx512),
    row<channel_sums_bf16_avx2>("channel_sums_bf16", Isa::avx2),
    row<channel_sums_bf16_portable>("channel_sums_bf16", Isa::portable),
    row<channel_totals_portable>("channel_totals", Isa::portable),
    row<attention_u8s8_avx512_vnni>("attention_u8s8", Isa::avx512_vnni),
    row<attention_u8s8_avx2>("attention_u8s8", Isa::avx2),
    row<attention_u8s8_portable>("attention_u8s8", Isa::portable),
    row<attention_gradient_avx512>("attention_gradient", Isa::avx512),
    row<attention_gradient_avx2>("attention_gradient", Isa::avx2),
    row<attention_gradient_portable>("attention_gradient", Isa::portable),
    row<attention_gradient_bf16_avx512_bf16>("attention_gradient_bf16", Isa::avx512_bf16),
    row<attention_gradient_bf16_avx512>("attention_gradient_bf16", Isa::avx512),
    row<attention_gradient_bf16_avx2>("attention_gradient_bf16", Isa::avx2),
    row<attention_gradient_bf16_portable>("attention_gradient_bf16", Isa::portable),
    row<class_loss_portable>("class_loss", Isa::portable),
    row<class_loss_gradient_avx512>("class_loss_gradient", Isa::avx512),
    row<class_loss_gradient_avx2>("class_loss_gradient", Isa::avx2),
    row<class_loss_gradient_portable>("class_loss_gradient", Isa::portable),
    row<concat_portable>("concat", Isa::portable),
    row<conv_data_f32_avx512>("conv_data_f32", Isa::avx512),
    row<conv_data_f32_avx2>("conv_data_f32", Isa::avx2),
    row<conv_data_f32_portable>("conv_data_f32", Isa::portable),
    row<conv_f32_amx>("conv_f32", Isa::amx),
    row<conv_bf16_amx>("conv_bf16", Isa::amx),
    row<conv_bf16_avx512_bf16>("conv_bf16", Isa::avx512_bf16),
    row<conv_bf16_avx512>("conv_bf16", Isa::avx512),
    row<conv_bf16_avx2>("conv_bf16", Isa::avx2),
    row<conv_bf16_portable>("conv_bf16", Isa::portable),
    row<conv_f32_avx512>("conv_f32", Isa::avx512),
    row<conv_f32_avx2>("conv_f32", Isa::avx2),
    row<conv_f32_portable>("conv_f32", Isa::portable),
    row<conv_u8s8_amx>("conv_u8s8", Isa::amx),
    row<conv_u8s8_avx512_vnni>("conv_u8s8", Isa::avx512_vnni),
    row<conv_u8s8_avx2>("conv_u8s8", Isa::avx2),
    row<conv_u8s8_portable>("conv_u8s8", Isa::portable),
    row<conv_weight_f32_avx512>("conv_weight_f32", Isa::avx512),
    row<conv_weight_f32_avx2>("conv_weight_f32", Isa::avx2),
    row<conv_weight_f32_portable>("conv_weight_f32", Isa::portable),
    row<conv_weight_bf16_avx512_bf16>("conv_weight_bf16", Isa::avx512_bf16),
    row<conv_weight_bf16_avx512>("conv_weight_bf16", Isa::avx512),
    row<conv_weight_bf16_avx2>("conv_weight_bf16", Isa::avx2),
    row<conv_weight_bf16_portable>("conv_weight_bf16", Isa::portable),
    row<copy_portable>("copy", Isa::portable),
    row<cumulate_portable>("cumulate", Isa::portable),
    row<depthwise_bf16_avx512_bf16>("depthwise_bf16", Isa::avx512_bf16),
    row<depthwise_bf16_avx512>("depthwise_bf16", Isa::avx512),
    row<depthwise_bf16_avx2>("depthwise_bf16", Isa::avx2),
    row<depthwise_bf16_portable>("depthwise_bf16", Isa::portable),
    row<depthwise_f32_avx512>("depthwise_f32", Isa::avx512),
    row<depthwise_f32_avx2>("depthwise_f32", Isa::avx2),
    row<depthwise_f32_portable>("depthwise_f32", Isa::portable),
    row<depthwise_transposed_bf16_avx512>("depthwise_transposed_bf16", Isa::avx512),
    row<depthwise_transposed_bf16_avx2>("depthwise_transposed_bf16", Isa::avx2),
    row<depthwise_transposed_bf16_portable>("depthwise_transposed_bf16", Isa::portable),
    row<depthwise_transposed_f32_avx512>("depthwise_transposed_f32", Isa::avx512),
    row<depthwise_transposed_f32_avx2>("depthwise_transposed_f32", Isa::avx2),
    row<depthwise_transposed_f32_portable>("depthwise_transposed_f32", Isa::portable),
    row<depthwise_u8s8_avx512_vnni>("depthwise_u8s8", Isa::avx512_vnni),
    row<depthwise_u8s8_avx2>("depthwise_u8s8", Isa::avx2),
    row<depthwise_u8s8_portable>("depthwise_u8s8", Isa::portable),
    row<elementwise_avx512>("elementwise", Isa::avx512),
    row<elementwise_avx2>("elementwise", Isa::avx2),
    row<elementwise_portable>("elementwise", Isa::portable),
    row<elementwise_integers_avx512>("elementwise_integers", Isa::avx512),
    row<elementwise_integers_avx2>("elementwise_integers", Isa::avx2),
    row<elementwise_integers_portable>("elementwise_integers", Isa::portable),
    row<embedding_gradient_avx512>("embedding_gradient", Isa::avx512),
    row<embedding_gradient_avx2>("embedding_gradient", Isa::avx2),
    row<embedding_gradient_portable>("embedding_gradient", Isa::portable),
    row<find_largest_portable>("find_largest", Isa::portable),
    row<dropout_avx512>("dropout", Isa::avx512),
    row<dropout_avx2>("dropout", Isa::avx2),
    row<dropout_portable>("dropout", Isa::portable),
    row<dropout_bf16_avx512>("dropout_bf16", Isa::avx512),
    row<dropout_bf16_avx2>("dropout_bf16", Isa::avx2),
    row<dropout_bf16_portable>("dropout_bf16", Isa::portable),
    row<fold_columns_avx512>("fold_columns", Isa::avx512),
    row<fold_columns_avx2>("fold_columns", Isa::avx2),
    row<fold_columns_portable>("fold_columns", Isa::portable),
    row<gather_portable>("gather", Isa::portable),
    row<group_norm_avx512>("group_norm", Isa::avx512),
    row<group_norm_avx2>("group_norm", Isa::avx2),
    row<group_norm_portable>("group_norm", Isa::portable),
    row<group_norm_bf16_avx512>("group_norm_bf16", Isa::avx512),
    row<group_norm_bf16_avx2>("group_norm_bf16", Isa::avx2),
    row<group_norm_bf16_portable>("group_norm_bf16", Isa::portable),
    row<gru_avx512>("gru", Isa::avx512),
    row<gru_avx2>("gru", Isa::avx2),
    row<gru_portable>("gru", Isa::portable),
    row<gru_bf16_avx512_bf16>("gru_bf16", Isa::avx512_bf16),
    row<gru_bf16_avx512>("gru_bf16", Isa::avx512),
    row<gru_bf16_avx2>("gru_bf16", Isa::avx2),
    row<gru_bf16_portable>("gru_bf16", Isa::portable),
    row<gru_u8s8_avx512_vnni>("gru_u8s8", Isa::avx512_vnni),
    row<gru_u8s8_avx2>("gru_u8s8", Isa::avx2),
    row<gru_u8s8_portable>("gru_u8s8", Isa::portable),
    row<interpolate_avx512>("interpolate", Isa::avx512),
    row<interpolate_avx2>("interpolate", Isa::avx2),
    row<interpolate_portable>("interpolate", Isa::portable),
    row<interpolate_bf16_avx512>("interpolate_bf16", Isa::avx512),
    row<interpolate_bf16_avx2>("interpolate_bf16", Isa::avx2),
    row<interpolate_bf16_portable>("interpolate_bf16", Isa::portable),
    row<layer_norm_avx512>("layer_norm", Isa::avx512),
    row<layer_norm_avx2>("layer_norm", Isa::avx2),
    row<layer_norm_portable>("layer_norm", Isa::portable),
    row<layer_norm_bf16_avx512>("layer_norm_bf16", Isa::avx512),
    row<layer_norm_bf16_avx2>("layer_norm_bf16", Isa::avx2),
    row<layer_norm_bf16_portable>("layer_norm_bf16", Isa::portable),
    row<layer_norm_gradient_avx512>("layer_norm_gradient", Isa::avx512),
    row<layer_norm_gradient_avx2>("layer_norm_gradient", Isa::avx2),
    row<layer_norm_gradient_portable>("layer_norm_gradient", Isa::portable),
    row<linear_bf16_amx>("linear_bf16", Isa::amx),
    row<linear_bf16_avx512_bf16>("linear_bf16", Isa::avx512_bf16),
    row<linear_bf16_avx512>("linear_bf16", Isa::avx512),
    row<linear_bf16_avx2>("linear_bf16", Isa::avx2),
    row<linear_bf16_portable>("linear_bf16", Isa::portable),
    row<linear_f32_amx>("linear_f32", Isa::amx),
    row<linear_f32_avx512>("linear_f32", Isa::avx512),
    row<linear_f32_avx2>("linear_f32", Isa::avx2),
    row<linear_f32_portable>("linear_f32", Isa::portable),
    row<linear_u8s8_amx>("linear_u8s8", Isa::amx),
    row<linear_u8s8_avx512_vnni>("linear_u8s8", Isa::avx512_vnni),
    row<linear_u8s8_avx2>("linear_u8s8", Isa::avx2),
    row<linear_u8s8_portable>("linear_u8s8", Isa::portable),
    row<lion_avx512>("lion", Isa::avx512),
    row<lion_avx2>("lion", Isa::avx2),
    row<lion_portable>("lion", Isa::portable),
    row<lstm_avx512>("lstm", Isa::avx512),
    row<lstm_avx2>("lstm", Isa::avx2),
    row<lstm_portable>("lstm", Isa::portable),
    row<lstm_bf16_avx512_bf16>("lstm_bf16", Isa::avx512_bf16),
    row<lstm_bf16_avx512>("lstm_bf16", Isa::avx512),
    row<lstm_bf16_avx2>("lstm_bf16", Isa::avx2),
    row<lstm_bf16_portable>("lstm_bf16", Isa::portable),
    row<lstm_u8s8_avx512_vnni>("lstm_u8s8", Isa::avx512_vnni),
    row<lstm_u8s8_avx2>("lstm_u8s8", Isa::avx2),
    row<lstm_u8s8_portable>("lstm_u8s8", Isa::portable),
    row<matmul_bf16_avx512_bf16>("matmul_bf16", Isa::avx512_bf16),
    row<matmul_bf16_avx512>("matmul_bf16", Isa::avx512),
    row<matmul_bf16_avx2>("matmul_bf16", Isa::avx2),
    row<matmul_bf16_portable>("matmul_bf16", Isa::portable),
    row<matmul_f32_avx512>("matmul_f32", Isa::avx512),
    row<matmul_f32_avx2>("matmul_f32", Isa::avx2),
    row<matmul_f32_portable>("matmul_f32", Isa::portable),
    row<max_pool_gradient_avx512>("max_pool_gradient", Isa::avx512),
    row<max_pool_gradient_avx2>("max_pool_gradient", Isa::avx2),
    row<max_pool_gradient_portable>("max_pool_gradient", Isa::portable),
    row<max_pool_gradient_bf16_avx512>("max_pool_gradient_bf16", Isa::avx512),
    row<max_pool_gradient_bf16_avx2>("max_pool_gradient_bf16", Isa::avx2),
    row<max_pool_gradient_bf16_portable>("max_pool_gradient_bf16", Isa::portable),
    row<max_pool_places_avx512>("max_pool_places", Isa::avx512),
    row<max_pool_places_avx2>("max_pool_places", Isa::avx2),
    row<max_pool_places_portable>("max_pool_places", Isa::portable),
    row<max_pool_places_bf16_avx512>("max_pool_places_bf16", Isa::avx512),
    row<max_pool_places_bf16_avx2>("max_pool_places_bf16", Isa::avx2),
    row<max_pool_places_bf16_portable>("max_pool_places_bf16", Isa::portable),
    row<pack_conv_f32_portable>("pack_conv_f32", Isa::portable),
    row<pack_conv_bf16_avx512_bf16>("pack_conv_bf16", Isa::avx512_bf16),
    row<pack_conv_bf16_portable>("pack_conv_bf16", Isa::portable),
    row<pad_portable>("pad", Isa::portable),
    row<pool_bf16_avx512>("pool_bf16", Isa::avx512),
    row<pool_bf16_avx2>("pool_bf16", Isa::avx2),
    row<pool_bf16_portable>("pool_bf16", Isa::portable),
    row<pool_f32_avx512>("pool_f32", Isa::avx512),
    row<pool_f32_avx2>("pool_f32", Isa::avx2),
    row<pool_f32_portable>("pool_f32", Isa::portable),
    row<pool_u8_avx512>("pool_u8", Isa::avx512),
    row<pool_u8_avx2>("pool_u8", Isa::avx2),
    row<pool_u8_portable>("pool_u8", Isa::portable),
    row<quantize_image_avx512_vnni>("quantize_image", Isa::avx512_vnni),
    row<quantize_image_avx2>("quantize_image", Isa::avx2),
    row<quantize_image_portable>("quantize_image", Isa::portable),
    row<quantize_rows_avx512_vnni>("quantize_rows", Isa::avx512_vnni),
    row<quantize_rows_avx2>("quantize_rows", Isa::avx2),
    row<quantize_rows_portable>("quantize_rows", Isa::portable),
    row<reduce_avx512>("reduce", Isa::avx512),
    row<reduce_avx2>("reduce", Isa::avx2),
    row<reduce_portable>("reduce", Isa::portable),
    row<reduce_bf16_avx512>("reduce_bf16", Isa::avx512),
    row<reduce_bf16_avx2>("reduce_bf16", Isa::avx2),
    row<reduce_bf16_portable>("reduce_bf16", Isa::portable),
    row<separable_f32_avx512>("separable_f32", Isa::avx512),
    row<separable_f32_avx2>("separable_f32", Isa::avx2),
    row<separable_f32_portable>("separable_f32", Isa::portable),
    row<sgd_avx512>("sgd", Isa::avx512),
    row<sgd_avx2>("sgd", Isa::avx2),
    row<sgd_portable>("sgd", Isa::portable),
    row<softmax_avx512>("softmax", Isa::avx512),
    row<softmax_avx2>("softmax", Isa::avx2),
    row<softmax_portable>("softmax", Isa::portable),
    row<softmax_bf16_avx512>("softmax_bf16", Isa::avx512),
    row<softmax_bf16_avx2>("softmax_bf16", Isa::avx2),
    row<softmax_bf16_portable>("softmax_bf16", Isa::portable),
    row<softmax_gradient_avx512>("softmax_gradient", Isa::avx512),
    row<softmax_gradient_avx2>("softmax_gradient", Isa::avx2),
    row<softmax_gradient_portable>("softmax_gradient", Isa::portable),
    row<sum_squares_avx512>("sum_squares", Isa::avx512),
    row<sum_squares_avx2>("sum_squares", Isa::avx2),
    row<sum_squares_portable>("sum_squares", Isa::portable),
    row<table_u8_avx512_vnni>("table_u8", Isa::avx512_vnni),
    row<table_u8_avx2>("table_u8", Isa::avx2),
    row<table_u8_portable>("table_u8", Isa::portable),
    row<take_portable>("take", Isa::portable),
    row<winograd_bf16_avx512>("winograd_bf16", Isa::avx512),
    row<winograd_bf16_avx2>("winograd_bf16", Isa::avx2),
    row<winograd_bf16_portable>("winograd_bf16", Isa::portable),
    row<winograd_f32_avx512>("winograd_f32", Isa::avx512),
    row<winograd_f32_avx2>("winograd_f32", Isa::avx2),
    row<winograd_f32_portable>("winograd_f32", Isa::portable),
    row<winograd_u8s8_avx512_vnni>("winograd_u8s8", Isa::avx512_vnni),
    row<winograd_u8s8_avx2>("winograd_u8s8", Isa::avx2),
    row<winograd_u8s8_portable>("winograd_u8s8", Isa::portable),
};

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::portable: return "portable";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::avx512_vnni: return "avx512_vnni";
    case Isa::avx512_bf16: return "avx512_bf16";
    case Isa::amx: return "amx";
  }
  return "portable";
}

bool can_run(Isa isa) {
  switch (isa) {
    case Isa::portable: return true;
    case Isa::avx2: return has(Feature::avx2) && has(Feature::fma) && has(Feature::f16c);
    case Isa::avx512: return can_run(Isa::avx2) && has(Feature::avx512);
    case Isa::avx512_vnni: return can_run(Isa::avx512) && has(Feature::avx512_vnni);
    case Isa::avx512_bf16: return can_run(Isa::avx512_vnni) && has(Feature::avx512_bf16);
    case Isa::amx: return can_run(Isa::avx512_bf16) && has(Feature::amx_bf16) && has(Feature::amx_int8);
  }
  return false;
}

std::span<const KernelRow> kernel_rows() { return kRows; }

std::vector<KernelRow> kernel_rows(std::string_view name) {
  std::vector<KernelRow> rows;
  for (const KernelRow& row : kRows) {
    if (row.name == name) rows.push_back(row);
  }
  return rows;
}

const KernelRow& find_kernel(std::string_view name) {
  for (const KernelRow& row : kRows) {
    if (row.name == name && can_run(row.isa)) return row;
  }
  throw_error(ErrorKind::internal, "there is no kernel named ", quote(name));
}

}  // namespace lissome
