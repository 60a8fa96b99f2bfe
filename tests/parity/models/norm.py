# Normalization: batch (evaluated and trained), layer, group, instance, RMS, local response,
# and the parametrizations that rewrite a weight.

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim
from torch.nn.utils import parametrizations

from case import Case, apply, call


def with_statistics(norm: nn.Module) -> nn.Module:
    """Running statistics and affine parameters other than those of a fresh layer."""
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    if norm.affine:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    return norm


class TrainedStack(nn.Module):
    """Two batch norms that see each other's output, one with a momentum of its own."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.first = nn.BatchNorm2d(6)
        self.second = nn.BatchNorm2d(6, momentum=0.3, affine=False)

    def forward(self, x):
        return self.second(F.relu(self.first(self.conv(x)), inplace=True))


class TrainedWithDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(12, 16)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        return self.drop(F.gelu(self.norm(self.linear(x))))


class RmsNormByHand(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size))

    def forward(self, x):
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (x.float() * scale).type_as(x)


class LayerNormByHand(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(size))
        self.bias = nn.Parameter(torch.randn(size))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).pow(2).mean(-1, keepdim=True)
        return self.gain * (x - mean) / torch.sqrt(variance + 1e-5) + self.bias


def rows(batch=5, size=12):
    return call(torch.randn(batch, size) * 2 + 1)


def images(batch=2, channels=6, size=7):
    return call(torch.randn(batch, channels, size, size) * 2 + 1)


CASES = [
    Case("batch_norm1d", lambda: with_statistics(nn.BatchNorm1d(12)), rows),
    Case("batch_norm1d_sequence", lambda: with_statistics(nn.BatchNorm1d(6)), lambda: call(torch.randn(2, 6, 9))),
    Case("batch_norm2d_dynamic", lambda: with_statistics(nn.BatchNorm2d(6)), images, variants=((3,), (1,), (8,)),
         dynamic={"input": {0: Dim("batch", min=1, max=16)}}),
    Case("batch_norm3d", lambda: with_statistics(nn.BatchNorm3d(3)), lambda: call(torch.randn(2, 3, 4, 5, 6))),
    Case("batch_norm2d_no_statistics", lambda: nn.BatchNorm2d(6, track_running_stats=False), images),
    Case("batch_norm1d_train", lambda: nn.BatchNorm1d(12), rows, mode="train", steps=3),
    Case("batch_norm2d_train", lambda: nn.BatchNorm2d(6), images, mode="train", steps=3, forms=("core",)),
    Case("batch_norm3d_train", lambda: nn.BatchNorm3d(3), lambda: call(torch.randn(2, 3, 4, 5, 6)),
         mode="train", steps=3),
    Case("batch_norm2d_train_dynamic", lambda: nn.BatchNorm2d(6, momentum=0.25), images,
         mode="train", steps=3, variants=((4,), (2,), (7,)), dynamic={"input": {0: Dim("batch", min=2, max=16)}}),
    Case("batch_norm_stack_train", TrainedStack, lambda: images(3, 3, 9), mode="train", steps=3,
         forms=("core", "functional")),
    Case("batch_norm_dropout_train", TrainedWithDropout, rows, mode="train", steps=3),
    Case("batch_norm_no_affine_train", lambda: nn.BatchNorm1d(12, affine=False), rows,
         mode="train", steps=3),
    Case("instance_norm_train", lambda: nn.InstanceNorm2d(6, affine=True, track_running_stats=True), images,
         mode="train", steps=3),
    Case("layer_norm", lambda: nn.LayerNorm(12), rows),
    Case("layer_norm_two_dims", lambda: nn.LayerNorm((4, 6), elementwise_affine=False),
         lambda: call(torch.randn(3, 4, 6))),
    Case("layer_norm_by_hand", lambda: LayerNormByHand(12), rows),
    Case("group_norm", lambda: nn.GroupNorm(3, 6), images),
    Case("group_norm_dynamic", lambda: nn.GroupNorm(2, 6, affine=False),
         lambda b, n: call(torch.randn(b, 6, n)), variants=((2, 8), (1, 2), (5, 33)),
         dynamic={"input": {0: Dim("batch", min=1, max=8), 2: Dim("length", min=2, max=64)}}, since=(2, 13)),
    Case("instance_norm1d", lambda: nn.InstanceNorm1d(6), lambda: call(torch.randn(2, 6, 9))),
    Case("instance_norm2d_affine", lambda: nn.InstanceNorm2d(6, affine=True), images),
    Case("instance_norm2d_tracked", lambda: with_statistics(nn.InstanceNorm2d(6, affine=True, track_running_stats=True)),
         images),
    Case("instance_norm3d", lambda: nn.InstanceNorm3d(3), lambda: call(torch.randn(2, 3, 4, 5, 6))),
    Case("rms_norm", lambda: nn.RMSNorm(12, eps=1e-6), rows),
    Case("rms_norm_by_hand", lambda: RmsNormByHand(12), rows),
    Case("local_response_norm", lambda: nn.LocalResponseNorm(3), images),
    Case("weight_norm", lambda: parametrizations.weight_norm(nn.Linear(12, 8)), rows),
    Case("weight_norm_conv", lambda: parametrizations.weight_norm(nn.Conv1d(4, 6, 3), dim=1),
         lambda: call(torch.randn(2, 4, 9))),
    Case("spectral_norm", lambda: parametrizations.spectral_norm(nn.Linear(12, 8)), rows),
    Case("normalize", apply(lambda x: F.normalize(x, p=2.0, dim=1)), rows),
]
