# Convolutions: every rank, transposed, grouped, dilated, depthwise, string and mode padding.

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, apply, call


class ConvBlock(nn.Module):
    """conv, batch norm, activation: the block that inference folds into one step."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class SeparableConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.depthwise = nn.Conv2d(8, 16, 3, padding=1, groups=8)
        self.pointwise = nn.Conv2d(16, 12, 1)

    def forward(self, x):
        return self.pointwise(F.relu6(self.depthwise(x)))


class CausalConv(nn.Module):
    """Dilated causal stack with residuals, as in WaveNet."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(8, 8, 2, dilation=2**i) for i in range(3))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = x + torch.tanh(layer(F.pad(x, (2**i, 0))))
        return x


def images(batch=2, channels=3, size=9):
    return call(torch.randn(batch, channels, size, size))


def signals(batch=2, channels=4, length=17):
    return call(torch.randn(batch, channels, length))


def volumes(channels=2):
    return call(torch.randn(2, channels, 6, 7, 8))


CASES = [
    Case("conv1d", lambda: nn.Conv1d(4, 6, 3, padding=1), signals),
    Case("conv1d_strided_dilated", lambda: nn.Conv1d(4, 6, 3, stride=2, dilation=3), signals),
    Case("conv1d_causal_dynamic", CausalConv, lambda b, n: signals(b, 8, n), variants=((2, 17), (1, 2), (3, 40)),
         dynamic={"x": {0: Dim("batch", min=1, max=16), 2: Dim("length", min=2, max=64)}}),
    Case("conv2d", lambda: nn.Conv2d(3, 8, 3), images),
    Case("conv2d_block_dynamic", lambda: ConvBlock(8), images, variants=((2,), (1,), (7,)), forms=("core",),
         dynamic={"x": {0: Dim("batch", min=1, max=32)}}),
    Case("conv2d_asymmetric", lambda: nn.Conv2d(3, 5, (1, 5), stride=(2, 1), padding=(0, 2)), images),
    Case("conv2d_same", lambda: nn.Conv2d(3, 4, (3, 4), padding="same", dilation=(2, 1)), images),
    Case("conv2d_valid", lambda: nn.Conv2d(3, 4, 5, padding="valid"), images),
    Case("conv2d_reflect", lambda: nn.Conv2d(3, 4, 3, padding=2, padding_mode="reflect"), images),
    Case("conv2d_circular", lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), images),
    Case("conv2d_grouped", lambda: nn.Conv2d(6, 9, 3, groups=3), lambda: images(2, 6)),
    Case("conv2d_separable", SeparableConv, lambda: images(2, 8)),
    Case("conv2d_unbatched", lambda: nn.Conv2d(3, 4, 3), lambda: call(torch.randn(3, 8, 8))),
    Case("conv2d_functional", apply(lambda x, w: F.conv2d(x, w, stride=2)),
         lambda: call(torch.randn(1, 3, 9, 9), torch.randn(4, 3, 3, 3))),
    Case("conv2d_channels_last", lambda: nn.Conv2d(4, 8, 3, padding=1).to(memory_format=torch.channels_last),
         lambda: call(torch.randn(2, 4, 8, 8).to(memory_format=torch.channels_last))),
    Case("conv3d", lambda: nn.Conv3d(2, 4, 3, stride=(1, 2, 1), padding=1), volumes),
    Case("conv3d_grouped_dilated", lambda: nn.Conv3d(4, 4, 2, groups=2, dilation=2), lambda: volumes(4)),
    Case("conv_transpose1d", lambda: nn.ConvTranspose1d(4, 3, 4, stride=3, output_padding=1), signals),
    Case("conv_transpose2d", lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
         lambda: images(2, 4, 5)),
    Case("conv_transpose2d_dynamic", lambda: nn.ConvTranspose2d(3, 4, 2, stride=2),
         lambda h, w: call(torch.randn(2, 3, h, w)), variants=((5, 6), (1, 1), (9, 4)),
         dynamic={"input": {2: Dim("height", min=1, max=32), 3: Dim("width", min=1, max=32)}}),
    Case("conv_transpose3d", lambda: nn.ConvTranspose3d(2, 3, 3, stride=2, dilation=2), volumes),
]
