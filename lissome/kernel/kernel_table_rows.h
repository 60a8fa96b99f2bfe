// Declarations of every kernel function, for the table and for the files that define them.
#pragma once

#include "lissome/kernel/adam_bytes.h"
#include "lissome/kernel/attention.h"
#include "lissome/kernel/attention_bf16.h"
#include "lissome/kernel/attention_gradient.h"
#include "lissome/kernel/attention_gradient_bf16.h"
#include "lissome/kernel/attention_u8s8.h"
#include "lissome/kernel/average_pool_u8.h"
#include "lissome/kernel/batch_norm.h"
#include "lissome/kernel/class_loss.h"
#include "lissome/kernel/conv_bf16.h"
#include "lissome/kernel/conv_f32.h"
#include "lissome/kernel/conv_gradient.h"
#include "lissome/kernel/depthwise.h"
#include "lissome/kernel/depthwise_transposed.h"
#include "lissome/kernel/depthwise_u8s8.h"
#include "lissome/kernel/dropout.h"
#include "lissome/kernel/elementwise.h"
#include "lissome/kernel/embedding_gradient.h"
#include "lissome/kernel/fold_columns.h"
#include "lissome/kernel/group_norm.h"
#include "lissome/kernel/interpolate.h"
#include "lissome/kernel/linear_bf16.h"
#include "lissome/kernel/linear_f32.h"
#include "lissome/kernel/linear_u8s8.h"
#include "lissome/kernel/matmul_bf16.h"
#include "lissome/kernel/matmul_f32.h"
#include "lissome/kernel/max_pool.h"
#include "lissome/kernel/move.h"
#include "lissome/kernel/normalize.h"
#include "lissome/kernel/normalize_bf16.h"
#include "lissome/kernel/normalize_gradient.h"
#include "lissome/kernel/optimizer.h"
#include "lissome/kernel/peak.h"
#include "lissome/kernel/pool.h"
#include "lissome/kernel/recurrent.h"
#include "lissome/kernel/separable_f32.h"
#include "lissome/kernel/table_u8.h"
#include "lissome/kernel/take.h"
#include "lissome/kernel/winograd_f32.h"
#include "lissome/kernel/winograd_u8s8.h"

namespace lissome {

// Declares the versions of one kernel.
#define LISSOME_KERNEL(name, Call, isa) void name##_##isa(const Call& call, int part, int parts)

LISSOME_KERNEL(adam, AdamCall, avx512);
LISSOME_KERNEL(adam, AdamCall, avx2);
LISSOME_KERNEL(adam, AdamCall, portable);

LISSOME_KERNEL(adam_bytes, AdamBytesCall, avx512);
LISSOME_KERNEL(adam_bytes, AdamBytesCall, avx2);
LISSOME_KERNEL(adam_bytes, AdamBytesCall, portable);

LISSOME_KERNEL(attention, AttentionCall, avx512);
LISSOME_KERNEL(attention, AttentionCall, avx2);
LISSOME_KERNEL(attention, AttentionCall, portable);

LISSOME_KERNEL(attention_bf16, AttentionBf16Call, amx);
LISSOME_KERNEL(attention_bf16, AttentionBf16Call, avx512_bf16);
LISSOME_KERNEL(attention_bf16, AttentionBf16Call, avx512);
LISSOME_KERNEL(attention_bf16, AttentionBf16Call, avx2);
LISSOME_KERNEL(attention_bf16, AttentionBf16Call, portable);

LISSOME_KERNEL(attention_u8s8, AttentionU8S8Call, avx512_vnni);
LISSOME_KERNEL(attention_u8s8, AttentionU8S8Call, avx2);
LISSOME_KERNEL(attention_u8s8, AttentionU8S8Call, portable);

LISSOME_KERNEL(attention_gradient, AttentionGradientCall, avx512);
LISSOME_KERNEL(attention_gradient, AttentionGradientCall, avx2);
LISSOME_KERNEL(attention_gradient, AttentionGradientCall, portable);

LISSOME_KERNEL(attention_gradient_bf16, AttentionGradientBf16Call, avx512_bf16);
LISSOME_KERNEL(attention_gradient_bf16, AttentionGradientBf16Call, avx512);
LISSOME_KERNEL(attention_gradient_bf16, AttentionGradientBf16Call, avx2);
LISSOME_KERNEL(attention_gradient_bf16, AttentionGradientBf16Call, portable);

LISSOME_KERNEL(class_loss, ClassLossCall, portable);

LISSOME_KERNEL(class_loss_gradient, ClassLossGradientCall, avx512);
LISSOME_KERNEL(class_loss_gradient, ClassLossGradientCall, avx2);
LISSOME_KERNEL(class_loss_gradient, ClassLossGradientCall, portable);

LISSOME_KERNEL(conv_f32, ConvF32Call, amx);
LISSOME_KERNEL(conv_bf16, ConvBf16Call, amx);
LISSOME_KERNEL(conv_bf16, ConvBf16Call, avx512_bf16);
LISSOME_KERNEL(conv_bf16, ConvBf16Call, avx512);
LISSOME_KERNEL(conv_bf16, ConvBf16Call, avx2);
LISSOME_KERNEL(conv_bf16, ConvBf16Call, portable);

LISSOME_KERNEL(conv_f32, ConvF32Call, avx512);
LISSOME_KERNEL(conv_f32, ConvF32Call, avx2);
LISSOME_KERNEL(conv_f32, ConvF32Call, portable);

LISSOME_KERNEL(conv_data_f32, ConvDataF32Call, avx512);
LISSOME_KERNEL(conv_data_f32, ConvDataF32Call, avx2);
LISSOME_KERNEL(conv_data_f32, ConvDataF32Call, portable);

LISSOME_KERNEL(conv_weight_f32, ConvWeightF32Call, avx512);
LISSOME_KERNEL(conv_weight_f32, ConvWeightF32Call, avx2);
LISSOME_KERNEL(conv_weight_f32, ConvWeightF32Call, portable);
LISSOME_KERNEL(conv_weight_bf16, ConvWeightBf16Call, avx512_bf16);
LISSOME_KERNEL(conv_weight_bf16, ConvWeightBf16Call, avx512);
LISSOME_KERNEL(conv_weight_bf16, ConvWeightBf16Call, avx2);
LISSOME_KERNEL(conv_weight_bf16, ConvWeightBf16Call, portable);

LISSOME_KERNEL(conv_u8s8, ConvU8S8Call, amx);
LISSOME_KERNEL(conv_u8s8, ConvU8S8Call, avx512_vnni);
LISSOME_KERNEL(conv_u8s8, ConvU8S8Call, avx2);
LISSOME_KERNEL(conv_u8s8, ConvU8S8Call, portable);

LISSOME_KERNEL(batch_norm_gradients, BatchNormGradientsCall, portable);

LISSOME_KERNEL(batch_norm_statistics, BatchNormStatisticsCall, portable);
LISSOME_KERNEL(batch_norm_statistics_bf16, BatchNormStatisticsBf16Call, portable);

LISSOME_KERNEL(average_pool_u8, AveragePoolU8Call, avx512_vnni);
LISSOME_KERNEL(average_pool_u8, AveragePoolU8Call, avx2);
LISSOME_KERNEL(average_pool_u8, AveragePoolU8Call, portable);

LISSOME_KERNEL(channel_affine, ChannelAffineCall, avx512);
LISSOME_KERNEL(channel_affine, ChannelAffineCall, avx2);
LISSOME_KERNEL(channel_affine, ChannelAffineCall, portable);
LISSOME_KERNEL(channel_affine_bf16, ChannelAffineBf16Call, avx512);
LISSOME_KERNEL(channel_affine_bf16, ChannelAffineBf16Call, avx2);
LISSOME_KERNEL(channel_affine_bf16, ChannelAffineBf16Call, portable);

LISSOME_KERNEL(channel_sums, ChannelSumsCall, avx512);
LISSOME_KERNEL(channel_sums, ChannelSumsCall, avx2);
LISSOME_KERNEL(channel_sums, ChannelSumsCall, portable);
LISSOME_KERNEL(channel_sums_bf16, ChannelSumsBf16Call, avx512);
LISSOME_KERNEL(channel_sums_bf16, ChannelSumsBf16Call, avx2);
LISSOME_KERNEL(channel_sums_bf16, ChannelSumsBf16Call, portable);

LISSOME_KERNEL(channel_totals, ChannelTotalsCall, portable);

LISSOME_KERNEL(concat, ConcatCall, portable);

LISSOME_KERNEL(copy, CopyCall, portable);

LISSOME_KERNEL(cumulate, CumulateCall, portable);

LISSOME_KERNEL(depthwise_bf16, DepthwiseBf16Call, avx512_bf16);
LISSOME_KERNEL(depthwise_bf16, DepthwiseBf16Call, avx512);
LISSOME_KERNEL(depthwise_bf16, DepthwiseBf16Call, avx2);
LISSOME_KERNEL(depthwise_bf16, DepthwiseBf16Call, portable);
LISSOME_KERNEL(depthwise_f32, DepthwiseF32Call, avx512);
LISSOME_KERNEL(depthwise_f32, DepthwiseF32Call, avx2);
LISSOME_KERNEL(depthwise_f32, DepthwiseF32Call, portable);
LISSOME_KERNEL(depthwise_transposed_bf16, DepthwiseBf16Call, avx512);
LISSOME_KERNEL(depthwise_transposed_bf16, DepthwiseBf16Call, avx2);
LISSOME_KERNEL(depthwise_transposed_bf16, DepthwiseBf16Call, portable);
LISSOME_KERNEL(depthwise_transposed_f32, DepthwiseF32Call, avx512);
LISSOME_KERNEL(depthwise_transposed_f32, DepthwiseF32Call, avx2);
LISSOME_KERNEL(depthwise_transposed_f32, DepthwiseF32Call, portable);

LISSOME_KERNEL(depthwise_u8s8, DepthwiseU8S8Call, avx512_vnni);
LISSOME_KERNEL(depthwise_u8s8, DepthwiseU8S8Call, avx2);
LISSOME_KERNEL(depthwise_u8s8, DepthwiseU8S8Call, portable);

LISSOME_KERNEL(elementwise, ElementwiseCall, avx512);
LISSOME_KERNEL(elementwise, ElementwiseCall, avx2);
LISSOME_KERNEL(elementwise, ElementwiseCall, portable);

LISSOME_KERNEL(elementwise_integers, ElementwiseCall, avx512);
LISSOME_KERNEL(elementwise_integers, ElementwiseCall, avx2);
LISSOME_KERNEL(elementwise_integers, ElementwiseCall, portable);

LISSOME_KERNEL(embedding_gradient, EmbeddingGradientCall, avx512);
LISSOME_KERNEL(embedding_gradient, EmbeddingGradientCall, avx2);
LISSOME_KERNEL(embedding_gradient, EmbeddingGradientCall, portable);

LISSOME_KERNEL(find_largest, ReduceCall, portable);

LISSOME_KERNEL(dropout, DropoutCall, avx512);
LISSOME_KERNEL(dropout, DropoutCall, avx2);
LISSOME_KERNEL(dropout, DropoutCall, portable);
LISSOME_KERNEL(dropout_bf16, DropoutBf16Call, avx512);
LISSOME_KERNEL(dropout_bf16, DropoutBf16Call, avx2);
LISSOME_KERNEL(dropout_bf16, DropoutBf16Call, portable);

LISSOME_KERNEL(fold_columns, FoldColumnsCall, avx512);
LISSOME_KERNEL(fold_columns, FoldColumnsCall, avx2);
LISSOME_KERNEL(fold_columns, FoldColumnsCall, portable);

LISSOME_KERNEL(gather, GatherCall, portable);

LISSOME_KERNEL(group_norm, GroupNormCall, avx512);
LISSOME_KERNEL(group_norm, GroupNormCall, avx2);
LISSOME_KERNEL(group_norm, GroupNormCall, portable);
LISSOME_KERNEL(group_norm_bf16, GroupNormBf16Call, avx512);
LISSOME_KERNEL(group_norm_bf16, GroupNormBf16Call, avx2);
LISSOME_KERNEL(group_norm_bf16, GroupNormBf16Call, portable);

LISSOME_KERNEL(gru, RecurrentCall, avx512);
LISSOME_KERNEL(gru, RecurrentCall, avx2);
LISSOME_KERNEL(gru, RecurrentCall, portable);

LISSOME_KERNEL(gru_bf16, RecurrentBf16Call, avx512_bf16);
LISSOME_KERNEL(gru_bf16, RecurrentBf16Call, avx512);
LISSOME_KERNEL(gru_bf16, RecurrentBf16Call, avx2);
LISSOME_KERNEL(gru_bf16, RecurrentBf16Call, portable);

LISSOME_KERNEL(gru_u8s8, RecurrentU8S8Call, avx512_vnni);
LISSOME_KERNEL(gru_u8s8, RecurrentU8S8Call, avx2);
LISSOME_KERNEL(gru_u8s8, RecurrentU8S8Call, portable);

LISSOME_KERNEL(interpolate, InterpolateCall, avx512);
LISSOME_KERNEL(interpolate, InterpolateCall, avx2);
LISSOME_KERNEL(interpolate, InterpolateCall, portable);
LISSOME_KERNEL(interpolate_bf16, InterpolateBf16Call, avx512);
LISSOME_KERNEL(interpolate_bf16, InterpolateBf16Call, avx2);
LISSOME_KERNEL(interpolate_bf16, InterpolateBf16Call, portable);

LISSOME_KERNEL(layer_norm, LayerNormCall, avx512);
LISSOME_KERNEL(layer_norm, LayerNormCall, avx2);
LISSOME_KERNEL(layer_norm, LayerNormCall, portable);

LISSOME_KERNEL(layer_norm_bf16, LayerNormBf16Call, avx512);
LISSOME_KERNEL(layer_norm_bf16, LayerNormBf16Call, avx2);
LISSOME_KERNEL(layer_norm_bf16, LayerNormBf16Call, portable);

LISSOME_KERNEL(layer_norm_gradient, LayerNormGradientCall, avx512);
LISSOME_KERNEL(layer_norm_gradient, LayerNormGradientCall, avx2);
LISSOME_KERNEL(layer_norm_gradient, LayerNormGradientCall, portable);

LISSOME_KERNEL(linear_bf16, LinearBf16Call, amx);
LISSOME_KERNEL(linear_bf16, LinearBf16Call, avx512_bf16);
LISSOME_KERNEL(linear_bf16, LinearBf16Call, avx512);
LISSOME_KERNEL(linear_bf16, LinearBf16Call, avx2);
LISSOME_KERNEL(linear_bf16, LinearBf16Call, portable);

LISSOME_KERNEL(linear_f32, LinearF32Call, amx);
LISSOME_KERNEL(linear_f32, LinearF32Call, avx512);
LISSOME_KERNEL(linear_f32, LinearF32Call, avx2);
LISSOME_KERNEL(linear_f32, LinearF32Call, portable);

LISSOME_KERNEL(linear_u8s8, LinearU8S8Call, amx);
LISSOME_KERNEL(linear_u8s8, LinearU8S8Call, avx512_vnni);
LISSOME_KERNEL(linear_u8s8, LinearU8S8Call, avx2);
LISSOME_KERNEL(linear_u8s8, LinearU8S8Call, portable);

LISSOME_KERNEL(lion, LionCall, avx512);
LISSOME_KERNEL(lion, LionCall, avx2);
LISSOME_KERNEL(lion, LionCall, portable);

LISSOME_KERNEL(lstm, RecurrentCall, avx512);
LISSOME_KERNEL(lstm, RecurrentCall, avx2);
LISSOME_KERNEL(lstm, RecurrentCall, portable);

LISSOME_KERNEL(lstm_bf16, RecurrentBf16Call, avx512_bf16);
LISSOME_KERNEL(lstm_bf16, RecurrentBf16Call, avx512);
LISSOME_KERNEL(lstm_bf16, RecurrentBf16Call, avx2);
LISSOME_KERNEL(lstm_bf16, RecurrentBf16Call, portable);

LISSOME_KERNEL(lstm_u8s8, RecurrentU8S8Call, avx512_vnni);
LISSOME_KERNEL(lstm_u8s8, RecurrentU8S8Call, avx2);
LISSOME_KERNEL(lstm_u8s8, RecurrentU8S8Call, portable);

LISSOME_KERNEL(matmul_bf16, MatmulBf16Call, avx512_bf16);
LISSOME_KERNEL(matmul_bf16, MatmulBf16Call, avx512);
LISSOME_KERNEL(matmul_bf16, MatmulBf16Call, avx2);
LISSOME_KERNEL(matmul_bf16, MatmulBf16Call, portable);

LISSOME_KERNEL(matmul_f32, MatmulF32Call, avx512);
LISSOME_KERNEL(matmul_f32, MatmulF32Call, avx2);
LISSOME_KERNEL(matmul_f32, MatmulF32Call, portable);

LISSOME_KERNEL(max_pool_gradient, MaxPoolGradientCall, avx512);
LISSOME_KERNEL(max_pool_gradient, MaxPoolGradientCall, avx2);
LISSOME_KERNEL(max_pool_gradient, MaxPoolGradientCall, portable);
LISSOME_KERNEL(max_pool_gradient_bf16, MaxPoolGradientBf16Call, avx512);
LISSOME_KERNEL(max_pool_gradient_bf16, MaxPoolGradientBf16Call, avx2);
LISSOME_KERNEL(max_pool_gradient_bf16, MaxPoolGradientBf16Call, portable);

LISSOME_KERNEL(max_pool_places, MaxPoolCall, avx512);
LISSOME_KERNEL(max_pool_places, MaxPoolCall, avx2);
LISSOME_KERNEL(max_pool_places, MaxPoolCall, portable);
LISSOME_KERNEL(max_pool_places_bf16, MaxPoolBf16Call, avx512);
LISSOME_KERNEL(max_pool_places_bf16, MaxPoolBf16Call, avx2);
LISSOME_KERNEL(max_pool_places_bf16, MaxPoolBf16Call, portable);

LISSOME_KERNEL(pack_conv_f32, PackConvF32Call, portable);
LISSOME_KERNEL(pack_conv_bf16, PackConvBf16Call, avx512_bf16);
LISSOME_KERNEL(pack_conv_bf16, PackConvBf16Call, portable);

LISSOME_KERNEL(pad, PadCall, portable);

LISSOME_KERNEL(peak_multiply_bf16, PeakCall, amx);
LISSOME_KERNEL(peak_multiply_bf16, PeakCall, avx512_bf16);
LISSOME_KERNEL(peak_multiply_f32, PeakCall, avx512);
LISSOME_KERNEL(peak_multiply_f32, PeakCall, avx2);
LISSOME_KERNEL(peak_multiply_u8s8, PeakCall, amx);
LISSOME_KERNEL(peak_multiply_u8s8, PeakCall, avx512_vnni);
LISSOME_KERNEL(peak_multiply_u8s8, PeakCall, avx2);
LISSOME_KERNEL(peak_read, PeakCall, avx512);
LISSOME_KERNEL(peak_read, PeakCall, avx2);

LISSOME_KERNEL(pool_bf16, PoolCall, avx512);
LISSOME_KERNEL(pool_bf16, PoolCall, avx2);
LISSOME_KERNEL(pool_bf16, PoolCall, portable);

LISSOME_KERNEL(pool_f32, PoolCall, avx512);
LISSOME_KERNEL(pool_f32, PoolCall, avx2);
LISSOME_KERNEL(pool_f32, PoolCall, portable);

LISSOME_KERNEL(pool_u8, PoolCall, avx512);
LISSOME_KERNEL(pool_u8, PoolCall, avx2);
LISSOME_KERNEL(pool_u8, PoolCall, portable);

LISSOME_KERNEL(quantize_image, QuantizeImageCall, avx512_vnni);
LISSOME_KERNEL(quantize_image, QuantizeImageCall, avx2);
LISSOME_KERNEL(quantize_image, QuantizeImageCall, portable);

LISSOME_KERNEL(quantize_rows, QuantizeRowsCall, avx512_vnni);
LISSOME_KERNEL(quantize_rows, QuantizeRowsCall, avx2);
LISSOME_KERNEL(quantize_rows, QuantizeRowsCall, portable);

LISSOME_KERNEL(reduce, ReduceCall, avx512);
LISSOME_KERNEL(reduce, ReduceCall, avx2);
LISSOME_KERNEL(reduce, ReduceCall, portable);

LISSOME_KERNEL(reduce_bf16, ReduceBf16Call, avx512);
LISSOME_KERNEL(reduce_bf16, ReduceBf16Call, avx2);
LISSOME_KERNEL(reduce_bf16, ReduceBf16Call, portable);

LISSOME_KERNEL(separable_f32, SeparableF32Call, avx512);
LISSOME_KERNEL(separable_f32, SeparableF32Call, avx2);
LISSOME_KERNEL(separable_f32, SeparableF32Call, portable);

LISSOME_KERNEL(sgd, SgdCall, avx512);
LISSOME_KERNEL(sgd, SgdCall, avx2);
LISSOME_KERNEL(sgd, SgdCall, portable);

LISSOME_KERNEL(softmax, SoftmaxCall, avx512);
LISSOME_KERNEL(softmax, SoftmaxCall, avx2);
LISSOME_KERNEL(softmax, SoftmaxCall, portable);

LISSOME_KERNEL(softmax_bf16, SoftmaxBf16Call, avx512);
LISSOME_KERNEL(softmax_bf16, SoftmaxBf16Call, avx2);
LISSOME_KERNEL(softmax_bf16, SoftmaxBf16Call, portable);

LISSOME_KERNEL(softmax_gradient, SoftmaxGradientCall, avx512);
LISSOME_KERNEL(softmax_gradient, SoftmaxGradientCall, avx2);
LISSOME_KERNEL(softmax_gradient, SoftmaxGradientCall, portable);

LISSOME_KERNEL(sum_squares, SumSquaresCall, avx512);
LISSOME_KERNEL(sum_squares, SumSquaresCall, avx2);
LISSOME_KERNEL(sum_squares, SumSquaresCall, portable);

LISSOME_KERNEL(table_u8, TableU8Call, avx512_vnni);
LISSOME_KERNEL(table_u8, TableU8Call, avx2);
LISSOME_KERNEL(table_u8, TableU8Call, portable);

LISSOME_KERNEL(take, TakeCall, portable);

LISSOME_KERNEL(winograd_bf16, WinogradBf16Call, avx512);
LISSOME_KERNEL(winograd_bf16, WinogradBf16Call, avx2);
LISSOME_KERNEL(winograd_bf16, WinogradBf16Call, portable);
LISSOME_KERNEL(winograd_f32, WinogradF32Call, avx512);
LISSOME_KERNEL(winograd_f32, WinogradF32Call, avx2);
LISSOME_KERNEL(winograd_f32, WinogradF32Call, portable);

LISSOME_KERNEL(winograd_u8s8, WinogradU8S8Call, avx512_vnni);
LISSOME_KERNEL(winograd_u8s8, WinogradU8S8Call, avx2);
LISSOME_KERNEL(winograd_u8s8, WinogradU8S8Call, portable);

#undef LISSOME_KERNEL

}  // namespace lissome
