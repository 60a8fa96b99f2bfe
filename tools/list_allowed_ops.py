"""Writes lissome/program/check/allowed_ops.h: the ops of ATen that a model file may call.

The dispatcher's schemas are walked, rules below drop whole classes, and what is left was read by a person name by
name; DENIED keeps what that reading took out, with the reason. Run it again with a newer torch, read the difference,
and attack what is new (tests/refuse/attack_ops.py) before it is committed.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import torch

TABLE = Path(__file__).resolve().parents[1] / "lissome" / "program" / "check" / "allowed_ops.h"

# Dispatch keys of which one must have a kernel: what only runs on other devices is nothing for a file.
KEYS = (
    "CPU",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "SparseCPU",
    "SparseCsrCPU",
)

# Public ops without writes that are refused all the same: a pattern of the whole name behind `aten::`, and why.
DENIED = {
    "touches files": r"from_file",
    "device memory": r"(is_pinned|pin_memory|cudnn_.*|is_vulkan_available|miopen_.*|mps_.*)",
    "re-points or resizes storage": r"(set|resize_as_sparse|sparse_resize|sparse_resize_and_clear)",
    "speaks of autograd's or the tensor object's own state": r"(data|get_gradients|output_nr|retains_grad|is_leaf"
    r"|is_distributed|is_inference|is_set_to|get_device)",
    "layouts of oneDNN: the tensor is opaque": r"(to_mkldnn|mkldnn_.*)",
    "packed or quantized tensors, which no program holds": r"(fbgemm_.*|quantized_.*|quantize_per_.*|dequantize"
    r"|choose_qparams_optimized|nested_to_padded_tensor|int_repr|q_.*|qscheme)",
    "a placeholder of backends": r"(convolution_overrideable|copy_sparse_to_sparse|exponential_)",
    "takes its arguments for what the op around it has checked": r"(lstm_mps|slow_conv3d_forward"
    r"|batch_norm_update_stats|hspmm|sspaddmm|slice_inverse)",
}

# Ops whose name begins with an underscore are inner ones, which check less; these are what exports and passes hold.
INNER = """
    __and__ __lshift__ __or__ __rshift__ __xor__
    _adaptive_avg_pool2d _adaptive_avg_pool3d _add_relu _addmm_activation _aminmax _assert_async _assert_scalar
    _assert_tensor_metadata _batch_norm_impl_index _batch_norm_no_update _batch_norm_with_update_functional
    _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short
    _cdist_forward _chunk_cat _conj _conj_copy _conj_physical _convolution _convolution_mode _ctc_loss
    _dim_arange _embedding_bag _embedding_bag_forward_only _euclidean_dist
    _fake_quantize_learnable_per_channel_affine _fake_quantize_learnable_per_tensor_affine _fft_c2c _fft_c2r _fft_r2c
    _foreach_abs _foreach_add _foreach_addcdiv _foreach_addcmul _foreach_ceil _foreach_clamp_max _foreach_clamp_min
    _foreach_div _foreach_exp _foreach_floor _foreach_lerp _foreach_log _foreach_max _foreach_maximum _foreach_minimum
    _foreach_mul _foreach_neg _foreach_norm _foreach_pow _foreach_reciprocal _foreach_round _foreach_rsqrt
    _foreach_sigmoid _foreach_sign _foreach_sqrt _foreach_sub _foreach_tanh _foreach_trunc
    _functional_assert_async _functional_assert_scalar _functional_sym_constrain_range
    _functional_sym_constrain_range_for_size _fused_rms_norm _int_mm _is_all_true
    _is_any_true _linalg_check_errors _linalg_det _linalg_eigh _linalg_eigvals _linalg_slogdet _linalg_solve_ex
    _linalg_svd _local_scalar_dense _log_softmax _logcumsumexp _lu_with_info _masked_softmax
    _batch_norm_with_update _native_batch_norm_legit _native_batch_norm_legit_functional
    _native_batch_norm_legit_no_training
    _native_multi_head_attention _neg_view _neg_view_copy _pack_padded_sequence _pad_circular _pad_enum
    _pad_packed_sequence _pdist_forward _prelu_kernel _reshape_copy _safe_softmax
    _scaled_dot_product_attention_math _scaled_dot_product_flash_attention_for_cpu _shape_as_tensor _softmax
    _sparse_addmm _sparse_broadcast_to _sparse_log_softmax _sparse_mm _sparse_softmax _sparse_sparse_matmul
    _sparse_sum _standard_gamma _sample_dirichlet _to_copy _to_cpu _to_dense _to_sparse _to_sparse_bsc
    _to_sparse_bsr _to_sparse_csc _to_sparse_csr _transform_bias_rescale_qkv _transformer_encoder_layer_fwd _trilinear
    _unique _unique2 _unsafe_index _unsafe_index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate
    _unsafe_view _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_lanczos2d_aa _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d _weight_norm _weight_norm_interface _indices _values _nnz
    _dimI _dimV _coalesce _indices_copy _values_copy
""".split()

# In-place ops whose name does not follow from a pure one that is allowed, but which exports hold. detach_ changes what
# autograd knows alone; the others write into a tensor of their own sizes, or permute sizes that fit one storage.
IN_PLACE = """
    copy_ detach_ fill_diagonal_ zero_ fill_ squeeze_ unsqueeze_ transpose_ t_ swapaxes_ swapdims_ random_ rrelu_
    normal_ uniform_ requires_grad_ __iand__ __ilshift__ __ior__ __irshift__ __ixor__
""".split()
# Pure forms are allowed, the writing ones are not: no export holds them.
NOT_IN_PLACE = re.compile(
    r"(_foreach_.*_|as_strided_|resize_|resize_as_|conj_physical_|_index_put_impl_|_fused_.*|_amp_.*|_sobol_.*)")

# oneDNN's ops that lowering puts into reference steps; their arguments are checked before the call (check_values.cpp).
LOWERED = [
    "mkldnn::_convolution_pointwise",
    "mkldnn::_convolution_pointwise.binary",
    "mkldnn::_linear_pointwise",
    "mkldnn::_linear_pointwise.binary",
    "mkldnn::_reorder_convolution_weight",
    "mkldnn::_reorder_linear_weight",
    "onednn::qconv_pointwise",
    "onednn::qconv_prepack",
    "onednn::qlinear_pointwise",
    "onednn::qlinear_prepack",
]


def full_name(schema: torch.FunctionSchema) -> str:
    return schema.name + ("." + schema.overload_name if schema.overload_name else "")


def is_out(schema: torch.FunctionSchema) -> bool:
    overload = schema.overload_name
    return any(argument.is_out for argument in schema.arguments) or overload == "out" or overload.endswith("_out")


def is_denied(word: str) -> bool:
    return any(re.fullmatch(pattern, word) for pattern in DENIED.values())


def is_pure_allowed(word: str) -> bool:
    if is_denied(word) or "backward" in word or word.endswith("_jvp"):
        return False
    if word.startswith("_"):
        return word in INNER
    return True


def is_allowed(schema: torch.FunctionSchema, known: set[str]) -> bool:
    word, overload = schema.name.removeprefix("aten::"), schema.overload_name
    if is_out(schema) or "generator" in overload:
        return False
    if any(str(a.type) in ("Storage", "Stream", "AnyClassType") for a in schema.arguments):
        return False
    name = full_name(schema)
    if not any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in KEYS):
        return False
    if not schema.is_mutable:
        return is_pure_allowed(word)
    if word in IN_PLACE:
        return not is_denied(word)
    if NOT_IN_PLACE.fullmatch(word):
        return False
    if not word.endswith("_") or word.startswith("_"):
        return word in INNER or word in ("rrelu_with_noise",)
    pure = word.removesuffix("_")
    return pure in known and is_pure_allowed(pure)


def list_ops() -> list[str]:
    names = [name.partition(".") for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    schemas = [torch._C._get_schema(word, overload) for word, _, overload in names]
    known = {s.name.removeprefix("aten::") for s in schemas}
    return sorted({full_name(s) for s in schemas if is_allowed(s, known)} | set(LOWERED))


def format_table(names: list[str]) -> str:
    lines = [
        "// Made by tools/list_allowed_ops.py from the schemas of torch 2.13, read by a person, and attacked by",
        "// tests/refuse/attack_ops.py. Sorted. Reasons for what is missing stand in the tool.",
        "#pragma once",
        "",
        "#include <string_view>",
        "",
        "namespace lissome {",
        "",
        "// clang-format off",
        "inline constexpr std::string_view kAllowedOps[] = {",
    ]
    line = ""
    for name in names:
        word = f'"{name}",'
        if len(line) + len(word) + 1 > 120:
            lines.append(line)
            line = ""
        line += (" " if line else "") + word
    return "\n".join([*lines, line, "};", "// clang-format on", "", "}  // namespace lissome"]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed table instead of writing it")
    arguments = parser.parse_args()
    text = format_table(list_ops())
    if not arguments.check:
        TABLE.write_text(text)
        return 0
    if TABLE.read_text() == text:
        return 0
    print("allowed_ops.h differs from what tools/list_allowed_ops.py writes", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
