# Pooling of every kind and rank.

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, apply, call


class MaxUnpool(nn.Module):
    """The indices of the pooling are read again by the unpooling."""

    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(2, stride=2, return_indices=True)
        self.unpool = nn.MaxUnpool2d(2, stride=2)

    def forward(self, x):
        y, indices = self.pool(x)
        return self.unpool(y * 2, indices), indices


def signals(batch=2, channels=4, length=15):
    return call(torch.randn(batch, channels, length))


def images(batch=2, channels=3, height=10, width=11):
    return call(torch.randn(batch, channels, height, width))


def volumes():
    return call(torch.randn(2, 3, 6, 7, 8))


CASES = [
    Case("max_pool1d", lambda: nn.MaxPool1d(3, stride=2, padding=1), signals),
    Case("max_pool2d", lambda: nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True), images),
    Case("max_pool2d_dilated", lambda: nn.MaxPool2d(2, stride=1, dilation=3), images),
    Case("max_pool2d_indices", lambda: nn.MaxPool2d(2, return_indices=True), images),
    Case("max_pool2d_dynamic", lambda: nn.MaxPool2d(2), lambda b, h: images(b, 3, h, 12),
         variants=((2, 10), (1, 4), (3, 30)),
         dynamic={"input": {0: Dim("batch", min=1, max=8), 2: 2 * Dim("half", min=2, max=32)}}),
    Case("max_pool3d", lambda: nn.MaxPool3d((2, 3, 2)), volumes),
    Case("max_unpool2d", MaxUnpool, lambda: images(2, 3, 8, 8)),
    Case("avg_pool1d", lambda: nn.AvgPool1d(4, stride=3, padding=2), signals),
    Case("avg_pool2d", lambda: nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False), images),
    Case("avg_pool2d_divisor", lambda: nn.AvgPool2d(2, divisor_override=3), images),
    Case("avg_pool3d", lambda: nn.AvgPool3d(2), volumes),
    Case("adaptive_avg_pool1d", lambda: nn.AdaptiveAvgPool1d(4), signals),
    Case("adaptive_avg_pool2d", lambda: nn.AdaptiveAvgPool2d((3, None)), images),
    Case("adaptive_avg_pool2d_one", lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), images),
    Case("adaptive_avg_pool3d", lambda: nn.AdaptiveAvgPool3d((2, 3, 4)), volumes),
    Case("adaptive_max_pool1d", lambda: nn.AdaptiveMaxPool1d(4), signals),
    Case("adaptive_max_pool2d", lambda: nn.AdaptiveMaxPool2d((3, 4), return_indices=True), images),
    Case("adaptive_max_pool3d", lambda: nn.AdaptiveMaxPool3d(2), volumes),
    Case("lp_pool1d", lambda: nn.LPPool1d(3, 4), lambda: call(torch.rand(2, 4, 15))),
    Case("lp_pool2d", lambda: nn.LPPool2d(2, (3, 2), stride=2), images),
    Case("fractional_max_pool2d", apply(lambda x, samples: F.fractional_max_pool2d(x, 2, (5, 6), _random_samples=samples)),
         lambda: call(*images().args, torch.rand(2, 3, 2))),
    Case("global_mean_dynamic", apply(lambda x: x.mean((2, 3))), lambda b, h, w: images(b, 3, h, w),
         variants=((2, 8, 9), (1, 1, 1), (4, 17, 5)),
         dynamic={"args": ({0: Dim("batch", min=1, max=8), 2: Dim("height", min=1, max=32), 3: Dim("width", min=1, max=32)},)}),
]
