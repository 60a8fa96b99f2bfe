"""Classifiers of images that are made of convolutions, at the sizes that servers run."""

import torch
import torch.nn.functional as F
from torch import nn

from field.model import FieldModel, draw_images


def conv_norm(inner: int, outer: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outer)]


def conv_norm_relu(inner: int, outer: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [*conv_norm(inner, outer, kernel, stride, groups), nn.ReLU()]


def pool(x: torch.Tensor) -> torch.Tensor:
    """x [N, C, H, W] -> its mean over the pixels [N, C]."""
    return F.adaptive_avg_pool2d(x, 1).flatten(1)


def smooth_kernels(module: nn.Module) -> nn.Module:
    """Strengthens the mean of each drawn kernel: else roundings grow from layer to layer. Kernels that are larger
    than 7 would average the whole image and are left as they are."""
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, nn.Conv2d) and 1 < part.kernel_size[0] <= 7:
                part.weight += 3 * part.weight.mean((2, 3), keepdim=True)
    return module


class Vgg11(nn.Module):
    """VGG configuration A (Simonyan and Zisserman, 2014) with batch norms: images f32 [N, 3, 224, 224] -> logits
    f32 [N, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inner = 3
        for widths in ((64,), (128,), (256, 256), (512, 512), (512, 512)):
            for outer in widths:
                # Unlike the later networks, VGG has biases before its batch norms.
                layers += [nn.Conv2d(inner, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU()]
                inner = outer
            layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten())
        self.classes = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Dropout(),
            nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(),
            nn.Linear(4096, 1000),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(self.layers(images))


class Bottleneck(nn.Module):
    def __init__(self, inner: int, width: int, outer: int, stride: int, groups: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *conv_norm_relu(inner, width, 1),
            *conv_norm_relu(width, width, 3, stride, groups),
            *conv_norm(width, outer, 1),
        )
        self.shortcut = nn.Identity() if inner == outer else nn.Sequential(*conv_norm(inner, outer, 1, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layers(x) + self.shortcut(x))


class ResNet50(nn.Module):
    """ResNet-50 (He et al., 2015) with the stride in the 3x3 convolutions; with groups, ResNeXt-50 (Xie et al., 2016).
    images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self, width: int = 64, groups: int = 1) -> None:
        super().__init__()
        self.stem = nn.Sequential(*conv_norm_relu(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
        blocks = []
        inner = 64
        for stage, depth in enumerate((3, 4, 6, 3)):
            outer = 256 << stage
            for block in range(depth):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(Bottleneck(inner, width << stage, outer, stride, groups))
                inner = outer
        self.blocks = nn.Sequential(*blocks)
        self.classes = nn.Linear(inner, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(pool(self.blocks(self.stem(images))))


class DenseLayer(nn.Module):
    def __init__(self, inner: int, growth: int) -> None:
        super().__init__()
        width = 4 * growth
        self.layers = nn.Sequential(
            nn.BatchNorm2d(inner), nn.ReLU(), nn.Conv2d(inner, width, 1, bias=False),
            nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, growth, 3, padding=1, bias=False),
        )

    def forward(self, parts: list[torch.Tensor]) -> torch.Tensor:
        return self.layers(torch.cat(parts, 1))


class DenseBlock(nn.Module):
    def __init__(self, inner: int, growth: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DenseLayer(inner + layer * growth, growth) for layer in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [x]
        for layer in self.layers:
            parts.append(layer(parts))
        return torch.cat(parts, 1)


class DenseNet121(nn.Module):
    """DenseNet-121 (Huang et al., 2016): images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self, growth: int = 32) -> None:
        super().__init__()
        layers: list[nn.Module] = [*conv_norm_relu(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
        inner = 64
        for depth in (6, 12, 24):
            layers.append(DenseBlock(inner, growth, depth))
            inner += depth * growth
            # A transition halves the channels and the pixels.
            layers += [nn.BatchNorm2d(inner), nn.ReLU(), nn.Conv2d(inner, inner // 2, 1, bias=False), nn.AvgPool2d(2)]
            inner //= 2
        layers.append(DenseBlock(inner, growth, 16))
        inner += 16 * growth
        self.layers = nn.Sequential(*layers, nn.BatchNorm2d(inner), nn.ReLU())
        self.classes = nn.Linear(inner, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(pool(self.layers(images)))


class SqueezeExcite(nn.Module):
    """Scales the channels by factors that their means give (Hu et al., 2017)."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.squeeze, self.excite = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        means = F.adaptive_avg_pool2d(x, 1)
        return x * torch.sigmoid(self.excite(torch.relu(self.squeeze(means))))


class RegNetBlock(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int, groups: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *conv_norm_relu(inner, outer, 1),
            *conv_norm_relu(outer, outer, 3, stride, groups),
            SqueezeExcite(outer, inner // 4),
            *conv_norm(outer, outer, 1),
        )
        self.shortcut = nn.Identity() if inner == outer else nn.Sequential(*conv_norm(inner, outer, 1, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layers(x) + self.shortcut(x))


class RegNetY800(nn.Module):
    """RegNetY-800MF (Radosavovic et al., 2020), groups of 16 channels: images f32 [N, 3, 224, 224] -> logits
    f32 [N, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        layers = conv_norm_relu(3, 32, 3, 2)
        inner = 32
        for outer, depth in ((64, 1), (128, 3), (320, 8), (768, 2)):
            for block in range(depth):
                layers.append(RegNetBlock(inner, outer, 2 if block == 0 else 1, outer // 16))
                inner = outer
        self.layers = nn.Sequential(*layers)
        self.classes = nn.Linear(inner, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(pool(self.layers(images)))


class Fire(nn.Module):
    def __init__(self, inner: int, squeezed: int, outer: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inner, squeezed, 1)
        self.expand1, self.expand3 = nn.Conv2d(squeezed, outer // 2, 1), nn.Conv2d(squeezed, outer // 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.expand1(x)), torch.relu(self.expand3(x))], 1)


class SqueezeNet(nn.Module):
    """SqueezeNet 1.1 (Iandola et al., 2016): images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(64, 16, 128), Fire(128, 16, 128), nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(128, 32, 256), Fire(256, 32, 256), nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(256, 48, 384), Fire(384, 48, 384), Fire(384, 64, 512), Fire(512, 64, 512),
            nn.Dropout(), nn.Conv2d(512, 1000, 1), nn.ReLU(),
        )
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                # There are no norms, and under PyTorch's own draw the signal would fade on the way.
                nn.init.kaiming_uniform_(part.weight)
                nn.init.zeros_(part.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return pool(self.layers(images))


class LargeKernelBlock(nn.Module):
    """A depthwise convolution of a large kernel, in which the small kernel and the norms of training are merged."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        large = nn.Conv2d(width, width, kernel, padding=kernel // 2, groups=width)
        # Trained kernels are strong in the middle.
        first, last = kernel // 2 - 1, kernel // 2 + 2
        with torch.no_grad():
            large.weight[:, :, first:last, first:last] += torch.empty(width, 1, 3, 3).uniform_(0, 0.4)
        self.layers = nn.Sequential(
            nn.BatchNorm2d(width), *conv_norm_relu(width, width, 1), large, nn.ReLU(),
            *conv_norm(width, width, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


class PointwiseBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm2d(width), *conv_norm(width, 4 * width, 1), nn.GELU(), *conv_norm(4 * width, width, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


class LargeKernelNet(nn.Module):
    """RepLKNet-31 (Ding et al., 2022), re-parameterized, with the depths and widths of Swin-T where the paper's base
    size has Swin-B's: images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        widths = (96, 192, 384, 768)
        first = widths[0]
        layers = [
            *conv_norm_relu(3, first, 3, 2), *conv_norm_relu(first, first, 3, groups=first),
            *conv_norm_relu(first, first, 1), *conv_norm_relu(first, first, 3, 2, groups=first),
        ]
        inner = first
        for width, depth, kernel in zip(widths, (2, 2, 6, 2), (31, 29, 27, 13)):
            if width != inner:
                layers += [*conv_norm_relu(inner, width, 1), *conv_norm_relu(width, width, 3, 2, groups=width)]
            for _ in range(depth):
                layers += [LargeKernelBlock(width, kernel), PointwiseBlock(width)]
            inner = width
        self.layers = nn.Sequential(*layers, nn.BatchNorm2d(inner))
        self.classes = nn.Linear(inner, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(pool(self.layers(images)))


class ChannelNorm(nn.LayerNorm):
    """A layer norm over the channels of x [N, C, H, W]."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        # Training starts at 1e-6, where a block would not show in the answer.
        self.scale = nn.Parameter(torch.empty(width).uniform_(0.2, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.mlp(y)).permute(0, 3, 1, 2)


class ConvNextTiny(nn.Module):
    """ConvNeXt-T (Liu et al., 2022): images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96, eps=1e-6)]
        inner = 96
        for width, depth in ((96, 3), (192, 3), (384, 9), (768, 3)):
            if width != inner:
                layers += [ChannelNorm(inner, eps=1e-6), nn.Conv2d(inner, width, 2, 2)]
            layers += [ConvNextBlock(width) for _ in range(depth)]
            inner = width
        self.layers = nn.Sequential(*layers)
        self.norm, self.classes = nn.LayerNorm(inner, eps=1e-6), nn.Linear(inner, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(self.norm(pool(self.layers(images))))


MODELS = [
    FieldModel("vgg11", "VGG-11 with batch norms", "classifier", "vgg", Vgg11, draw_images(224)),
    FieldModel("resnet50", "ResNet-50", "classifier", "resnet", lambda: smooth_kernels(ResNet50()), draw_images(224)),
    FieldModel("densenet121", "DenseNet-121", "classifier", "densenet", DenseNet121, draw_images(224)),
    FieldModel("resnext50", "ResNeXt-50 32x4d", "classifier", "resnet", lambda: smooth_kernels(ResNet50(128, 32)),
               draw_images(224)),
    FieldModel("regnet_y_800", "RegNetY-800MF", "classifier", "regnet", lambda: smooth_kernels(RegNetY800()),
               draw_images(224)),
    FieldModel("squeezenet", "SqueezeNet 1.1", "classifier", "squeezenet", SqueezeNet, draw_images(224)),
    FieldModel("large_kernel_net", "RepLKNet-31 tiny", "classifier", "replknet",
               lambda: smooth_kernels(LargeKernelNet()), draw_images(224)),
    FieldModel("convnext_tiny", "ConvNeXt-T", "classifier", "convnext", ConvNextTiny, draw_images(224)),
]
