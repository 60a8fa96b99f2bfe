"""Classifiers of images that are made for phones: depthwise convolutions and few weights."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from field.model import FieldModel, draw_images

Activation = Callable[[], nn.Module]
EPSILON = 1e-3  # of the batch norms whose authors trained in TensorFlow


def conv_norm(
    inner: int, outer: int, kernel: int, stride: int = 1, groups: int = 1, activation: Activation = nn.Identity,
    epsilon: float = 1e-5,
) -> nn.Sequential:
    """A convolution without bias and its batch norm, and an activation where one is given."""
    convolution = nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups, bias=False)
    layers = [convolution, nn.BatchNorm2d(outer, eps=epsilon)]
    return nn.Sequential(*layers) if activation is nn.Identity else nn.Sequential(*layers, activation())


def smooth_kernels(module: nn.Module) -> nn.Module:
    """Strengthens the mean of each drawn kernel: else roundings grow from layer to layer."""
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, nn.Conv2d) and part.kernel_size != (1, 1):
                part.weight += 3 * part.weight.mean((2, 3), keepdim=True)
    return module


def pool(x: torch.Tensor) -> torch.Tensor:
    """x [N, C, H, W] -> its mean over the pixels [N, C]."""
    return F.adaptive_avg_pool2d(x, 1).flatten(1)


def round_channels(channels: float, step: int) -> int:
    """The multiple of `step` nearest to `channels`, at least `step` and at least 0.9 of `channels`."""
    nearest = max(step, int(channels + step / 2) // step * step)
    return nearest + step if nearest < 0.9 * channels else nearest


def hard_sigmoid_of_relu6(x: torch.Tensor) -> torch.Tensor:
    return F.relu6(x + 3) / 6


class SqueezeExcite(nn.Module):
    """Scales the channels by factors that their means give (Hu et al., 2017)."""

    def __init__(self, channels: int, squeezed: int, activation: Activation, gate: Callable) -> None:
        super().__init__()
        self.squeeze, self.excite = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.activation, self.gate = activation(), gate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        means = F.adaptive_avg_pool2d(x, 1)
        return x * self.gate(self.excite(self.activation(self.squeeze(means))))


def measure_same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """What TensorFlow's padding "SAME" puts before and after: the odd one after."""
    total = max(0, ((size - 1) // stride) * stride + kernel - size)
    return total // 2, total - total // 2


class SamePaddedConv(nn.Conv2d):
    """A convolution that pads as TensorFlow does, by the size of what it gets."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = (measure_same_padding(x.shape[d], self.kernel_size[d - 2], self.stride[d - 2]) for d in (2, 3))
        return super().forward(F.pad(x, (*columns, *rows)))


def same_padded(inner: int, outer: int, stride: int, groups: int) -> list[nn.Module]:
    convolution = SamePaddedConv(inner, outer, 3, stride, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(outer, eps=EPSILON), nn.ReLU6()]


class InvertedResidual(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = inner * expansion
        layers = [] if expansion == 1 else [conv_norm(inner, width, 1, activation=nn.ReLU6, epsilon=EPSILON)]
        layers += same_padded(width, width, stride, width)
        self.layers = nn.Sequential(*layers, conv_norm(width, outer, 1, epsilon=EPSILON))
        self.adds = stride == 1 and inner == outer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.adds else self.layers(x)


class MobileNetV2(nn.Module):
    """MobileNetV2 1.0 (Sandler et al., 2018) as TensorFlow's checkpoints have it, with its padding and a class for the
    background: images f32 [N, 3, 224, 224] -> logits f32 [N, 1001]."""

    def __init__(self) -> None:
        super().__init__()
        # Expansion, channels, blocks and the first block's stride.
        table = [
            (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
        ]
        layers = same_padded(3, 32, 2, 1)
        inner = 32
        for expansion, outer, blocks, stride in table:
            for block in range(blocks):
                layers.append(InvertedResidual(inner, outer, stride if block == 0 else 1, expansion))
                inner = outer
        self.layers = nn.Sequential(*layers, conv_norm(inner, 1280, 1, activation=nn.ReLU6, epsilon=EPSILON))
        self.classes = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1001))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(pool(self.layers(images)))


class MobileBlock(nn.Module):
    """Expands the channels, convolves each by itself, scales them where `scaler` is given, and projects them."""

    def __init__(
        self, inner: int, width: int, outer: int, kernel: int, stride: int, activation: Activation,
        scaler: nn.Module | None,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        if width != inner:
            layers.append(conv_norm(inner, width, 1, activation=activation, epsilon=EPSILON))
        layers.append(conv_norm(width, width, kernel, stride, width, activation, EPSILON))
        if scaler is not None:
            layers.append(scaler)
        self.layers = nn.Sequential(*layers, conv_norm(width, outer, 1, epsilon=EPSILON))
        self.adds = stride == 1 and inner == outer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.adds else self.layers(x)


class MobileNetV3Small(nn.Module):
    """MobileNetV3-Small 1.0 (Howard et al., 2019): images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        # Kernel, expanded channels, channels, whether they are squeezed, activation and stride.
        table = [
            (3, 16, 16, True, nn.ReLU, 2), (3, 72, 24, False, nn.ReLU, 2), (3, 88, 24, False, nn.ReLU, 1),
            (5, 96, 40, True, nn.Hardswish, 2), (5, 240, 40, True, nn.Hardswish, 1),
            (5, 240, 40, True, nn.Hardswish, 1), (5, 120, 48, True, nn.Hardswish, 1),
            (5, 144, 48, True, nn.Hardswish, 1), (5, 288, 96, True, nn.Hardswish, 2),
            (5, 576, 96, True, nn.Hardswish, 1), (5, 576, 96, True, nn.Hardswish, 1),
        ]
        layers: list[nn.Module] = [conv_norm(3, 16, 3, 2, activation=nn.Hardswish, epsilon=EPSILON)]
        inner = 16
        for kernel, width, outer, squeezes, activation, stride in table:
            squeezed = round_channels(width / 4, 8)
            scaler = SqueezeExcite(width, squeezed, nn.ReLU, F.hardsigmoid) if squeezes else None
            layers.append(MobileBlock(inner, width, outer, kernel, stride, activation, scaler))
            inner = outer
        self.layers = nn.Sequential(*layers, conv_norm(inner, 576, 1, activation=nn.Hardswish, epsilon=EPSILON))
        self.classes = nn.Sequential(nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(1024, 1000))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(pool(self.layers(images)))


class EfficientNetB0(nn.Module):
    """EfficientNet-B0 (Tan and Le, 2019) with symmetric padding: images f32 [N, 3, 224, 224] -> logits
    f32 [N, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        # Expansion, kernel, the first block's stride, channels and blocks.
        table = [
            (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
            (6, 5, 2, 192, 4), (6, 3, 1, 320, 1),
        ]
        layers: list[nn.Module] = [conv_norm(3, 32, 3, 2, activation=nn.SiLU, epsilon=EPSILON)]
        inner = 32
        for expansion, kernel, stride, outer, blocks in table:
            for block in range(blocks):
                width = inner * expansion
                scaler = SqueezeExcite(width, inner // 4, nn.SiLU, torch.sigmoid)
                layers.append(MobileBlock(inner, width, outer, kernel, stride if block == 0 else 1, nn.SiLU, scaler))
                inner = outer
        self.layers = nn.Sequential(*layers, conv_norm(inner, 1280, 1, activation=nn.SiLU, epsilon=EPSILON))
        self.classes = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(pool(self.layers(images)))


def shuffle_channels(x: torch.Tensor, groups: int) -> torch.Tensor:
    n, channels, height, width = x.shape
    x = x.view(n, groups, channels // groups, height, width).transpose(1, 2)
    return x.reshape(n, channels, height, width)


class ShuffleBlock(nn.Module):
    """Half of the channels pass by; where the block has a stride, both branches get all of them."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        half = outer // 2
        self.splits = stride == 1
        self.left = nn.Identity()
        if not self.splits:
            self.left = nn.Sequential(
                conv_norm(inner, inner, 3, stride, inner), conv_norm(inner, half, 1, activation=nn.ReLU))
        self.right = nn.Sequential(
            conv_norm(half if self.splits else inner, half, 1, activation=nn.ReLU),
            conv_norm(half, half, 3, stride, half), conv_norm(half, half, 1, activation=nn.ReLU))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, dim=1) if self.splits else (x, x)
        return shuffle_channels(torch.cat([self.left(left), self.right(right)], dim=1), 2)


class ShuffleNetV2(nn.Module):
    """ShuffleNetV2 1.0x (Ma et al., 2018): images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 24, 3, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1)]
        inner = 24
        for outer, blocks in ((116, 4), (232, 8), (464, 4)):
            for block in range(blocks):
                layers.append(ShuffleBlock(inner, outer, 2 if block == 0 else 1))
                inner = outer
        self.layers = nn.Sequential(*layers, conv_norm(inner, 1024, 1, activation=nn.ReLU))
        self.classes = nn.Linear(1024, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(pool(self.layers(images)))


class GhostModule(nn.Module):
    """Half of the channels by a 1x1 convolution, and the other half from those by a depthwise one."""

    def __init__(self, inner: int, outer: int, activation: Activation) -> None:
        super().__init__()
        half = outer // 2
        self.primary = conv_norm(inner, half, 1, activation=activation)
        self.cheap = conv_norm(half, half, 3, groups=half, activation=activation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.primary(x)
        return torch.cat([x, self.cheap(x)], dim=1)


class GhostBottleneck(nn.Module):
    def __init__(self, inner: int, width: int, outer: int, kernel: int, stride: int, squeezes: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = [GhostModule(inner, width, nn.ReLU)]
        if stride > 1:
            layers.append(conv_norm(width, width, kernel, stride, width))
        if squeezes:
            layers.append(SqueezeExcite(width, round_channels(width / 4, 4), nn.ReLU, hard_sigmoid_of_relu6))
        self.layers = nn.Sequential(*layers, GhostModule(width, outer, nn.Identity))
        self.shortcut = nn.Identity()
        if stride > 1 or inner != outer:
            self.shortcut = nn.Sequential(conv_norm(inner, inner, kernel, stride, inner), conv_norm(inner, outer, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x) + self.shortcut(x)


class GhostNet(nn.Module):
    """GhostNet 1.0x (Han et al., 2019): images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        # Kernel, expanded channels, channels, whether they are squeezed, and stride.
        table = [
            (3, 16, 16, False, 1), (3, 48, 24, False, 2), (3, 72, 24, False, 1), (5, 72, 40, True, 2),
            (5, 120, 40, True, 1), (3, 240, 80, False, 2), (3, 200, 80, False, 1), (3, 184, 80, False, 1),
            (3, 184, 80, False, 1), (3, 480, 112, True, 1), (3, 672, 112, True, 1), (5, 672, 160, True, 2),
            (5, 960, 160, False, 1), (5, 960, 160, True, 1), (5, 960, 160, False, 1), (5, 960, 160, True, 1),
        ]
        layers: list[nn.Module] = [conv_norm(3, 16, 3, 2, activation=nn.ReLU)]
        inner = 16
        for kernel, width, outer, squeezes, stride in table:
            layers.append(GhostBottleneck(inner, width, outer, kernel, stride, squeezes))
            inner = outer
        self.layers = nn.Sequential(
            *layers, conv_norm(inner, 960, 1, activation=nn.ReLU), nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(960, 1280, 1), nn.ReLU(), nn.Flatten(),
        )
        self.classes = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(self.layers(images))


MODELS = [
    FieldModel("mobilenet_v2_tf", "MobileNetV2 with TensorFlow's padding", "classifier", "mobilenet",
               lambda: smooth_kernels(MobileNetV2()), draw_images(224)),
    FieldModel("mobilenet_v3_small", "MobileNetV3-Small", "classifier", "mobilenet",
               MobileNetV3Small, draw_images(224)),
    FieldModel("efficientnet_b0", "EfficientNet-B0", "classifier", "efficientnet",
               EfficientNetB0, draw_images(224)),
    FieldModel("shufflenet_v2", "ShuffleNetV2 1.0x", "classifier", "shufflenet",
               lambda: smooth_kernels(ShuffleNetV2()), draw_images(224)),
    FieldModel("ghostnet", "GhostNet 1.0x", "classifier", "ghostnet", GhostNet, draw_images(224)),
]
