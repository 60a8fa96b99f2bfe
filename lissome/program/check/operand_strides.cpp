// See operand_strides.h.
#include "lissome/program/check/operand_strides.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lissome/program/check/check_values_rows.h"
#include "lissome/program/check/op_among.h"

namespace lissome {
namespace {

// Numbers that were checked must be those that the kernel reads; autograd's formulas see to the order of rows for norms
// before they call them; pools and paddings of volumes take the channels of an image for one where they come last.
constexpr std::array<std::string_view, 35> kTakesRows = {"aten::avg_pool3d",
                                                         "aten::max_pool3d",
                                                         "aten::max_pool3d_with_indices",
                                                         "aten::adaptive_avg_pool3d",
                                                         "aten::_adaptive_avg_pool3d",
                                                         "aten::adaptive_max_pool3d",
                                                         "aten::reflection_pad3d",
                                                         "aten::replication_pad3d",
                                                         "aten::native_group_norm",
                                                         "aten::native_group_norm_backward",
                                                         "aten::nll_loss2d_backward",
                                                         "aten::embedding_bag",
                                                         "aten::_embedding_bag",
                                                         "aten::_embedding_bag_forward_only",
                                                         "aten::ctc_loss",
                                                         "aten::_ctc_loss",
                                                         "aten::_pack_padded_sequence",
                                                         "aten::_pad_packed_sequence",
                                                         "aten::segment_reduce",
                                                         "aten::_weight_norm",
                                                         "aten::_weight_norm_interface",
                                                         "aten::_pdist_forward",
                                                         "aten::_int_mm",
                                                         "aten::_masked_softmax",
                                                         "aten::rrelu",
                                                         "aten::rrelu_",
                                                         "aten::rrelu_with_noise",
                                                         "aten::rrelu_with_noise_",
                                                         "aten::rrelu_with_noise_functional",
                                                         "aten::linalg_ldl_solve",
                                                         "aten::linalg_lu_solve",
                                                         "aten::lu_solve",
                                                         "aten::lu_unpack",
                                                         "aten::_transform_bias_rescale_qkv",
                                                         "aten::fractional_max_pool2d"};
// Sequences that are packed; the other forms take strides as they are.
constexpr std::array<std::string_view, 4> kTakesPackedRows = {"aten::lstm.data", "aten::gru.data",
                                                              "aten::rnn_tanh.data", "aten::rnn_relu.data"};
constexpr std::array<std::string_view, 1> kTakesLastDense = {"aten::_scaled_dot_product_flash_attention_for_cpu"};

// Ops that look at sizes or strides alone, and copies, products and gathers, which follow them. Element-wise ops,
// reductions and views are known by their tags and schemas.
constexpr std::array<std::string_view, 53> kFollowsStrides = {"aten::is_contiguous",
                                                              "aten::sym_is_contiguous",
                                                              "aten::stride",
                                                              "aten::sym_stride",
                                                              "aten::storage_offset",
                                                              "aten::sym_storage_offset",
                                                              "aten::size",
                                                              "aten::sym_size",
                                                              "aten::numel",
                                                              "aten::sym_numel",
                                                              "aten::as_strided_copy",
                                                              "aten::as_strided_scatter",
                                                              "aten::resize",
                                                              "aten::resize_as",
                                                              "aten::empty_like",
                                                              "aten::zeros_like",
                                                              "aten::ones_like",
                                                              "aten::full_like",
                                                              "aten::new_empty",
                                                              "aten::new_empty_strided",
                                                              "aten::new_full",
                                                              "aten::new_ones",
                                                              "aten::new_zeros",
                                                              "aten::squeeze_",
                                                              "aten::unsqueeze_",
                                                              "aten::transpose_",
                                                              "aten::t_",
                                                              "aten::swapaxes_",
                                                              "aten::swapdims_",
                                                              "aten::detach_",
                                                              "aten::fill",
                                                              "aten::fill_",
                                                              "aten::zero",
                                                              "aten::zero_",
                                                              "aten::copy",
                                                              "aten::copy_",
                                                              "aten::_to_copy",
                                                              "aten::expand_copy",
                                                              "aten::repeat",
                                                              "aten::cat",
                                                              "aten::stack",
                                                              "aten::where",
                                                              "aten::index",
                                                              "aten::index_put",
                                                              "aten::gather",
                                                              "aten::index_select",
                                                              "aten::scatter_add",
                                                              "aten::mm",
                                                              "aten::bmm",
                                                              "aten::addmm",
                                                              "aten::baddbmm",
                                                              "aten::matmul",
                                                              "aten::linear"};

bool returns_view(const c10::FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

// Elements that share memory: along a stride of 0, or because there is less memory than elements.
bool shares_elements(const at::Tensor& tensor) {
  if (tensor.numel() < 2 || tensor.is_non_overlapping_and_dense()) return false;
  int64_t span = 1;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) < 2) continue;
    if (tensor.stride(i) == 0) return true;
    span += (tensor.size(i) - 1) * tensor.stride(i);
  }
  return span < tensor.numel();
}

bool fits(StrideNeed need, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_contiguous()) return true;
  if (need == StrideNeed::rows) return false;
  if (need == StrideNeed::last && tensor.dim() > 0 && tensor.size(-1) > 1 && tensor.stride(-1) != 1) return false;
  return !shares_elements(tensor);
}

at::Tensor fit(const c10::Argument& expected, StrideNeed need, const at::Tensor& tensor) {
  if (fits(need, tensor)) return tensor;
  require_value(expected.alias_info() == nullptr || !expected.alias_info()->isWrite(), "argument '", expected.name(),
                "' is written to, and the elements of its ", print_sizes(tensor.sizes()), " with strides ",
                print_sizes(tensor.strides()), " do not lie one behind the other");
  return tensor.contiguous();
}

}  // namespace

StrideNeed find_stride_need(const Op& op) {
  if (!op.has_schema()) return StrideNeed::any;
  if (is_among(kTakesRows, op)) return StrideNeed::rows;
  if (std::find(kTakesPackedRows.begin(), kTakesPackedRows.end(), op.name()) != kTakesPackedRows.end())
    return StrideNeed::rows;
  if (is_among(kTakesLastDense, op)) return StrideNeed::last;
  const c10::OperatorHandle& handle = op.handle();
  const bool follows = returns_view(op.schema()) || handle.hasTag(at::Tag::pointwise) ||
                       handle.hasTag(at::Tag::reduction) || is_among(kFollowsStrides, op);
  return follows ? StrideNeed::any : StrideNeed::distinct;
}

void fit_strides(const Op& op, StrideNeed need, std::vector<c10::IValue>& stack) {
  if (need == StrideNeed::any) return;
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < stack.size(); ++i) {
    if (stack[i].isTensor()) {
      const at::Tensor& tensor = stack[i].toTensor();
      if (!fits(need, tensor)) stack[i] = fit(arguments[i], need, tensor);
    } else if (stack[i].isTensorList()) {
      c10::List<at::Tensor> fitted = stack[i].toTensorList().copy();
      for (size_t k = 0; k < fitted.size(); ++k) fitted[k] = fit(arguments[i], need, fitted.get(k));
      stack[i] = fitted;
    } else if (stack[i].isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> fitted = stack[i].toOptionalTensorList().copy();
      for (size_t k = 0; k < fitted.size(); ++k) {
        const std::optional<at::Tensor> tensor = fitted.get(k);
        if (tensor) fitted[k] = std::optional<at::Tensor>(fit(arguments[i], need, *tensor));
      }
      stack[i] = fitted;
    }
  }
}

}  // namespace lissome
