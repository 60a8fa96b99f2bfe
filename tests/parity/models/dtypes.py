# Changes of dtype and arithmetic in every dtype: half precision, integers, booleans.

import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401 -- defines quantized_decomposed
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, apply, call


def casts(x):
    return (x.to(torch.float64), x.half(), x.bfloat16(), x.int(), x.long(), x.short(), x.char(), x.abs().byte(), x.bool(),
            x.to(torch.complex64), x.double().float(), x.type_as(x.half()), x.to("cpu"), x.to(x.double()),
            x.half().float() + x, torch.promote_types(torch.int32, torch.float16) == torch.float16, x.type(torch.int16))


def promotions(f, h, i, b):
    return (f + i, f * b, i + b, i / 2, i * 1.5, b * 2, b + b, h + 1.0, h * f, i + torch.tensor(2.5), torch.cat([f, i.float()]),
            torch.where(b, f, i), i == f, b.sum(), b.float().mean(), f + torch.ones(1, dtype=torch.float64),
            i.sum(dtype=torch.int32), (b & (f > 0)).int(), torch.result_type(f, i) == torch.float32)


def reinterpret(x):
    return x.view(torch.int32), x.view(torch.uint8), x.half().view(torch.int16), x.int().view(torch.float32) * 0


def quantize_by_hand(x):
    scale = x.abs().amax(1, keepdim=True) / 127
    q = torch.clamp(torch.round(x / scale), -128, 127).to(torch.int8)
    u = (q.to(torch.int16) + 128).to(torch.uint8)
    return q, u, q.float() * scale, (q.to(torch.int32) @ q.t().to(torch.int32)).sum(1)


def quantize_in_training(x):
    """The quantize-dequantize pairs of quantization-aware training, and an int8 product."""
    by_tensor = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127)
    by_row = torch.fake_quantize_per_channel_affine(x, x.abs().amax(1) / 127, torch.zeros(x.shape[0], dtype=torch.int32), 0, -128, 127)
    return by_tensor, by_row, torch._int_mm(x.char(), x.char().t())


class Int8Linear(nn.Module):
    """Weights kept as int8 with a scale for each row, widened for every use."""

    def __init__(self):
        super().__init__()
        weight = torch.randn(6, 8)
        scale = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("weight", torch.round(weight / scale).to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype) * self.scale)


class QuantizedNet(nn.Module):
    """A convolution and a linear layer as PT2E quantization leaves them: the first with scales found beforehand, the
    second with scales found for each input."""

    def __init__(self):
        super().__init__()
        for name, shape in (("conv", (4, 3, 3, 3)), ("head", (5, 64))):
            self.register_buffer(f"{name}_weight", torch.randint(-127, 128, shape, dtype=torch.int8))
            self.register_buffer(f"{name}_scale", torch.rand(shape[0]) / 100 + 0.001)
            self.register_buffer(f"{name}_zero", torch.zeros(shape[0], dtype=torch.int64))

    def widen(self, name):
        weight, scale, zero = (getattr(self, f"{name}_{part}") for part in ("weight", "scale", "zero"))
        return torch.ops.quantized_decomposed.dequantize_per_channel(weight, scale, zero, 0, -128, 127, torch.int8)

    def forward(self, x):
        ops = torch.ops.quantized_decomposed
        q = ops.quantize_per_tensor(x, 0.031, 122, 0, 255, torch.uint8)
        x = ops.dequantize_per_tensor(q, 0.031, 122, 0, 255, torch.uint8)
        x = F.conv2d(x, self.widen("conv"), padding=1).relu().flatten(1)
        scale, zero = ops.choose_qparams(x, 0, 255, 0.000244140625, torch.uint8)
        q = ops.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
        x = ops.dequantize_per_tensor.tensor(q, scale, zero, 0, 255, torch.uint8)
        return F.linear(x, self.widen("head"))


def quantize_in_every_way(x):
    ops = torch.ops.quantized_decomposed
    s8, u8, wide = (-128, 127, torch.int8), (0, 255, torch.uint8), (-1000, 1000, torch.int32)
    results = []
    scale, zero = ops.choose_qparams_symmetric(x, *s8[:2], 1e-5, torch.int8)
    results += [scale, zero, ops.quantize_per_tensor.tensor(x, scale, zero, *s8), *ops.choose_qparams(x, *u8[:2], 1e-5, torch.uint8)]
    results += [ops.choose_qparams_symmetric(x, *u8[:2], 1e-5, torch.uint8)[1]]
    scales, zeros = x.abs().amax(0) / 127, torch.arange(x.shape[1])
    q = ops.quantize_per_channel(x, scales, zeros, 1, *s8)
    results += [q, ops.dequantize_per_channel(q, scales, zeros, 1, *s8), ops.dequantize_per_channel(q, scales, None, 1, *s8)]
    results += [ops.dequantize_per_channel(q, scales, zeros, 1, *s8, out_dtype=torch.float16)]
    scales, zeros = ops.choose_qparams_per_token(x, torch.int8)
    q = ops.quantize_per_token(x, scales, zeros, *s8)
    results += [scales, zeros, q, ops.dequantize_per_token(q, scales, zeros, *s8, torch.float32)]
    scales, zeros = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
    q = ops.quantize_per_token(x, scales, zeros, *s8)
    results += [scales, zeros, q, ops.dequantize_per_token(q, scales, zeros, *s8, torch.float32)]
    scales, zeros = x.reshape(-1, 4).abs().amax(1).view(x.shape[0], -1) / 7, torch.ones(x.shape[0], x.shape[1] // 4)
    q = ops.quantize_per_channel_group(x, scales, zeros, -8, 7, torch.int8, 4)
    results += [q, ops.dequantize_per_channel_group(q, scales, zeros, -8, 7, torch.int8, 4, torch.float32)]
    results += [ops.quantize_per_tensor(x.half(), 0.01, 0, *wide), ops.convert_element_type.no_fuse(x, torch.bfloat16)]
    return tuple(results)


def half_model(dtype):
    return lambda: nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4)).to(dtype)


def values():
    return call(torch.randn(3, 4) * 10)


CASES = [
    Case("casts", apply(casts), values),
    Case("promotions", apply(promotions), lambda: call(
        torch.randn(3, 4), torch.randn(3, 4).half(), torch.randint(-5, 5, (3, 4)), torch.rand(3, 4) > 0.5)),
    Case("reinterpreted_bits", apply(reinterpret), values),
    Case("float64_model", lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh()).double(),
         lambda: call(torch.randn(3, 4, dtype=torch.float64))),
    Case("half_model", half_model(torch.float16), lambda: call(torch.randn(3, 8).half())),
    Case("bfloat16_model", half_model(torch.bfloat16), lambda: call(torch.randn(3, 8).bfloat16())),
    Case("bfloat16_inside", apply(lambda x, y: ((x.bfloat16() @ y.bfloat16()).float(), x.half().softmax(-1).float())),
         lambda: call(torch.randn(3, 8), torch.randn(8, 5)), f64_limit=1e-2),
    Case("bfloat16_conv", lambda: nn.Conv2d(3, 4, 3).bfloat16(), lambda: call(torch.randn(1, 3, 8, 8).bfloat16())),
    Case("int8_linear", Int8Linear, lambda: call(torch.randn(3, 8))),
    Case("quantized_by_hand", apply(quantize_by_hand), values),
    Case("fake_quantize", apply(quantize_in_training), lambda: call(torch.randn(32, 16) * 10)),
    Case("quantized_net_dynamic", QuantizedNet, lambda b: call(torch.randn(b, 3, 4, 4)), variants=((3,), (1,), (9,)),
         dynamic={"x": {0: Dim("batch", min=1, max=16)}}),
    Case("quantized_in_every_way", apply(quantize_in_every_way), lambda: call(torch.randn(5, 8) * 3)),
    Case("small_integers", apply(lambda x, y: (x + y, x * 2, x // 3, x & y, x.to(torch.int64) * 1000, x.sum(), x.max(), -x)),
         lambda: call(torch.randint(-100, 100, (6,), dtype=torch.int8), torch.randint(-100, 100, (6,), dtype=torch.int8))),
    Case("unsigned_images", apply(lambda x: (x.float() / 255 - 0.5) / 0.25),
         lambda: call(torch.randint(0, 256, (1, 3, 4, 4), dtype=torch.uint8))),
    Case("boolean_logic", apply(lambda a, b: (a & b, a | b, a ^ b, ~a, a.any(), a.all(1), a.sum(0), a.int() - b.int(),
                                              a.cumsum(1), torch.logical_xor(a, b), a == b, a.long().argmax(1))),
         lambda: call(torch.rand(3, 4) > 0.5, torch.rand(3, 4) > 0.5)),
    Case("float8_casts", apply(lambda x: (x.to(torch.float8_e4m3fn).float(), x.to(torch.float8_e5m2))), values),
]
