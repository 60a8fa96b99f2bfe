"""Layers between convolutions get PyTorch's gradients: what a convolution gives may lie in memory with its channels last."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

import lissome

CHANNELS = 8


class Call(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


# Each takes and gives 8 channels, of pictures of any size.
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "GroupNorm": lambda: nn.GroupNorm(2, CHANNELS),
    "GroupNorm of channels": lambda: nn.GroupNorm(CHANNELS, CHANNELS),
    "BatchNorm2d": lambda: nn.BatchNorm2d(CHANNELS),
    "InstanceNorm2d": lambda: nn.InstanceNorm2d(CHANNELS, affine=True),
    "LayerNorm": lambda: nn.LayerNorm([CHANNELS, 8, 8]),
    "LayerNorm of channels": lambda: Call(lambda x: functional.layer_norm(x.permute(0, 2, 3, 1), (CHANNELS,)).permute(0, 3, 1, 2)),
    "RMSNorm": lambda: nn.RMSNorm([CHANNELS, 8, 8]),
    "LocalResponseNorm": lambda: nn.LocalResponseNorm(3),
    "MaxPool2d": lambda: nn.MaxPool2d(2),
    "MaxPool2d, overlapping": lambda: nn.MaxPool2d(3, 2, 1),
    "AvgPool2d": lambda: nn.AvgPool2d(2),
    "LPPool2d": lambda: nn.LPPool2d(2, 2),
    "AdaptiveAvgPool2d": lambda: nn.AdaptiveAvgPool2d(3),
    "AdaptiveMaxPool2d": lambda: nn.AdaptiveMaxPool2d(3),
    "FractionalMaxPool2d": lambda: nn.FractionalMaxPool2d(2, output_size=4, _random_samples=torch.full((16, CHANNELS, 2), 0.4)),
    "Upsample, nearest": lambda: nn.Upsample(scale_factor=2),
    "Upsample, bilinear": lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
    "Upsample, bicubic": lambda: nn.Upsample(scale_factor=2, mode="bicubic", align_corners=True),
    "PixelShuffle": lambda: nn.Sequential(nn.PixelShuffle(2), nn.PixelUnshuffle(2)),
    "ChannelShuffle": lambda: nn.ChannelShuffle(2),
    "ReflectionPad2d": lambda: nn.ReflectionPad2d(1),
    "ReplicationPad2d": lambda: nn.ReplicationPad2d(1),
    "ZeroPad2d": lambda: nn.ZeroPad2d(1),
    "CircularPad2d": lambda: nn.CircularPad2d(1),
    "PReLU": lambda: nn.PReLU(CHANNELS),
    "GLU": lambda: Call(lambda x: torch.cat([functional.glu(x, 1)] * 2, 1)),
    "Softmax2d": lambda: nn.Softmax2d(),
    "LogSoftmax": lambda: nn.LogSoftmax(1),
    "Softmin": lambda: nn.Softmin(3),
    "Hardshrink": lambda: nn.Hardshrink(0.1),
    "GELU": lambda: nn.GELU(),
    "Mish": lambda: nn.Mish(),
    "RReLU of no range": lambda: nn.RReLU(0.2, 0.2),
    "ConvTranspose2d": lambda: nn.ConvTranspose2d(CHANNELS, CHANNELS, 2, 2),
    "ConvTranspose2d in groups": lambda: nn.ConvTranspose2d(CHANNELS, CHANNELS, 3, 2, groups=4),
    "Conv2d in groups": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS),
    "Unfold and Fold": lambda: nn.Sequential(nn.Unfold(2, stride=2), nn.Fold((8, 8), 2, stride=2)),
    "grid_sample": lambda: Call(lambda x: functional.grid_sample(x, x[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False)),
    "cumsum": lambda: Call(lambda x: x.cumsum(1)),
    "flip and roll": lambda: Call(lambda x: x.flip(2).roll(1, 1)),
    "topk": lambda: Call(lambda x: x.topk(4, 1).values.repeat(1, 2, 1, 1)),
    "sort": lambda: Call(lambda x: x.sort(3).values),
    "amax": lambda: Call(lambda x: x - x.amax((2, 3), keepdim=True)),
    "norm": lambda: Call(lambda x: functional.normalize(x, dim=1)),
    "variance": lambda: Call(lambda x: x / (x.var((1, 2), keepdim=True) + 1)),
    "einsum": lambda: Call(lambda x: torch.einsum("nchw,nchv->nchw", x, x)),
    "matmul": lambda: Call(lambda x: x @ x.transpose(2, 3)),
    "attention": lambda: Call(
        lambda x: functional.scaled_dot_product_attention(*[x.flatten(2).unsqueeze(1)] * 3).squeeze(1).view(x.shape)
    ),
    "gather": lambda: Call(lambda x: x.gather(1, x.argmax(1, keepdim=True).expand_as(x))),
    "where": lambda: Call(lambda x: torch.where(x > 0, x, x.mean(1, keepdim=True))),
    "unbind and stack": lambda: Call(lambda x: torch.stack(x.unbind(1)[::-1], 1)),
}


class Between(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.first, self.layer = nn.Conv2d(3, CHANNELS, 3, padding=1), layer
        self.second, self.head = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.Linear(CHANNELS, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.second(self.layer(self.first(x))).mean((2, 3)))


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_between_convolutions(layer: str):
    torch.manual_seed(0)
    net, x, labels = Between(LAYERS[layer]()).train(), torch.randn(16, 3, 8, 8), torch.arange(16) % 4
    reference, exact = copy.deepcopy(net), copy.deepcopy(net).double()
    functional.cross_entropy(reference(x), labels).backward()
    functional.cross_entropy(exact(x.double()), labels).backward()
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    examples = (x,) if "Fractional" in layer else (x[:4],)  # its random numbers fix the batch
    lissome.train(net, x, labels=labels, optimizer="sgd", lr=1.0, clip=0.0, batch=16, example_inputs=examples, threads=2)
    parameters = zip(net.named_parameters(), reference.parameters(), exact.parameters(), strict=True)
    for (name, parameter), single, double in parameters:
        gradient = before[name] - parameter.detach()
        # What is subtracted has been rounded to the size of the weight; sums that cancel are no better in PyTorch.
        rounding = torch.finfo(torch.float32).eps * before[name].abs().max() + 2 * (single.grad - double.grad).abs().max()
        error, largest = (gradient - double.grad).abs().max(), double.grad.abs().max()
        assert error <= 1e-5 * largest + rounding, f"{name}: {error:.2g} of {largest:.2g}"
