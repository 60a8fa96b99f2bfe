"""Layers in corners that few models visit: a prepared model answers as the module does."""

from __future__ import annotations

import math
from collections.abc import Callable

import lissome
import pytest
import torch
from torch import nn
from torch.nn import functional

LOWEST = torch.finfo(torch.float32).min


class Layer(nn.Module):
    def __init__(self, forward: Callable[[nn.Module, torch.Tensor], torch.Tensor], **parts: nn.Module) -> None:
        super().__init__()
        self.way = forward
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.way(self, x)


def write_slice(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A write through views that an importer cannot tell from copies."""
    y = module.conv(x).clone()
    y[0].squeeze().reshape(-1)[1:][:] += x.flatten()[0]
    return y


def attend(mask: torch.Tensor | None, scale: float | None, *, causal: bool = False) -> Layer:
    return Layer(lambda _, x: functional.scaled_dot_product_attention(x, x, x, attn_mask=mask, scale=scale, is_causal=causal))


def pool_volumes(pool: Callable[[torch.Tensor], torch.Tensor]) -> Layer:
    """Volumes without a batch have the rank of images with one."""
    return Layer(lambda m, x: pool(functional.avg_pool2d(m.conv(x), (3, 1), 1, (1, 0))), conv=nn.Conv3d(3, 2, 1))


def repeat(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    longer = x.repeat_interleave(torch.tensor([3, 0, 0, 1, 1, 1]), 1)
    return module.conv(functional.embedding(longer.long().abs() % 6, torch.ones(6, 4)))


HEADS, VOLUME = (2, 4, 3, 2), (3, 4, 6, 6)
ALL, LOWER = torch.zeros(3, 3, dtype=torch.bool), torch.ones(3, 3, dtype=torch.bool).tril()
LAYERS = {
    "a write through views": (lambda: Layer(write_slice, conv=nn.ConvTranspose2d(4, 6, (4, 3))), (4, 5, 3)),
    "attention to nothing": (lambda: attend(ALL, None), HEADS),
    "attention to nothing of scale 0": (lambda: attend(ALL, 0.0), HEADS),
    "attention of scale 0 backwards": (lambda: attend(LOWER, 0.0), HEADS),
    "attention of scale 0": (lambda: attend(None, 0.0), HEADS),
    "causal attention of scale 0": (lambda: attend(None, 0.0, causal=True), HEADS),
    "attention of scale 0, infinities": (lambda: attend(torch.full((3, 3), -math.inf).triu(1), 0.0), HEADS),
    "max pool": (lambda: pool_volumes(lambda x: functional.max_pool3d(x, 2)), VOLUME),
    "indices of a max pool": (lambda: pool_volumes(lambda x: functional.max_pool3d(x, 2, return_indices=True)[1]), VOLUME),
    "average pool": (lambda: pool_volumes(lambda x: functional.avg_pool3d(x, 2)), VOLUME),
    "adaptive average pool": (lambda: pool_volumes(lambda x: functional.adaptive_avg_pool3d(x, 2)), VOLUME),
    "adaptive max pool": (lambda: pool_volumes(lambda x: functional.adaptive_max_pool3d(x, 2)), VOLUME),
    "reflected volume": (lambda: pool_volumes(lambda x: functional.pad(x, (1, 1, 1, 1, 1, 1), "reflect")), VOLUME),
    "replicated volume": (lambda: pool_volumes(lambda x: functional.pad(x, (1, 1, 1, 1, 1, 1), "replicate")), VOLUME),
    "repeats by a constant": (lambda: Layer(repeat, conv=nn.Conv1d(6, 2, 2)), (3, 6)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_answers_are_those_of_the_module(name: str):
    torch.manual_seed(0)
    make, sizes = LAYERS[name]
    module, x = make().eval(), torch.randn(sizes)
    exported = torch.export.export(module, (x,))
    torch.testing.assert_close(lissome.prepare(exported)(x), module(x), rtol=1e-5, atol=1e-5, equal_nan=True)


class Enlarged(nn.Module):
    """The export asserts that both sides have equal sizes, one of them a product in floating point."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 12, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.pixel_shuffle(self.conv(x), 2) + functional.interpolate(x, scale_factor=2.0, mode="bicubic")


def test_an_enlarged_image_of_any_size():
    torch.manual_seed(0)
    module, size = Enlarged().eval(), torch.export.Dim.DYNAMIC
    exported = torch.export.export(module, (torch.rand(2, 3, 16, 24),), dynamic_shapes=({2: size, 3: size},))
    assert "sym_float" in str(exported._guards_code)
    x = torch.rand(2, 3, 10, 40)
    torch.testing.assert_close(lissome.prepare(exported)(x), module(x), rtol=1e-5, atol=1e-5)


class Lowered(nn.Module):
    """Attention written out by hand; the padding of a sample lowers its scores, as in models of Hugging Face."""

    def __init__(self, number: float, way: str) -> None:
        super().__init__()
        self.project, self.relate, self.number, self.way = nn.Linear(64, 192), nn.Linear(64, 6), number, way

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        query, key, value = self.project(x).unflatten(-1, (3, 2, 32)).permute(2, 0, 3, 1, 4)
        scores, padding = query @ key.transpose(-1, -2) / 6, mask[:, None, None]
        if self.way == "bias":
            scores = scores + self.relate(x)[:, None]
        scores = scores + padding.float() * self.number if self.way == "sum" else scores.masked_fill(padding, self.number)
        return scores.softmax(-1) @ value


@pytest.mark.parametrize("precision", ["f32", "bf16", "int8"])
@pytest.mark.parametrize("way", ["sum", "fill", "bias"])
@pytest.mark.parametrize("number", [LOWEST, -1e9])
def test_samples_that_are_all_padding(number: float, way: str, precision: str):
    torch.manual_seed(0)
    module, x, mask = Lowered(number, way).eval(), torch.randn(32, 6, 64), torch.zeros(32, 6, dtype=torch.bool)
    mask[1], mask[2, 3:] = True, True
    fast = lissome.prepare(module, (x[:4], mask[:4]), precision=precision, data=(x, mask))
    expected = module(x, mask)
    limit = {"f32": 1e-5, "bf16": 0.02, "int8": 0.1}[precision]  # a sample without any key would be off by 1
    for sample in (1, 2, 3):
        error = (fast(x, mask)[sample] - expected[sample]).norm() / expected[sample].norm()
        assert error < limit, (sample, error)
