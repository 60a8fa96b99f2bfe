"""Models that answer with an image, a map, boxes or a line of text."""

import math
from collections.abc import Callable

import numpy
import torch
import torch.nn.functional as F
from torch import nn

from field.model import Arrays, FieldModel, Generator, draw_images, draw_numbers


def draw_pictures(height: int, width: int, channels: int = 3) -> Callable[[Generator, int], Arrays]:
    """As draw_images, for pictures that are not square."""
    draw_squares = draw_images(max(height, width), channels)

    def draw(generator: Generator, rows: int) -> Arrays:
        squares = draw_squares(generator, rows)["images"]
        return {"images": numpy.ascontiguousarray(squares[:, :, :height, :width])}

    return draw


class ConvNorm(nn.Sequential):
    """Convolution that keeps the size (before its stride), batch norm and an activation where one is given."""

    def __init__(self, inner: int, outer: int, kernel: int = 3, stride: int = 1, dilation: int = 1, groups: int = 1,
                 activation: type[nn.Module] | None = nn.ReLU):
        conv = nn.Conv2d(inner, outer, kernel, stride, dilation * (kernel // 2), dilation, groups, bias=False)
        super().__init__(conv, nn.BatchNorm2d(outer), *([activation()] if activation else []))


def smooth_kernels(module: nn.Module) -> None:
    """Kernels that pass smooth maps on, as trained ones do: drawn ones pass mostly noise, and norms raise it."""
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, nn.Conv2d) and part.groups > 1:
                part.weight.abs_()
            elif isinstance(part, nn.Conv2d) and part.kernel_size[0] > 1:
                part.weight += part.kernel_size[0] * part.weight.mean((2, 3), keepdim=True)


def resize(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return F.interpolate(x, like.shape[2:], mode="bilinear", align_corners=False)


class YoloBottleneck(nn.Module):
    def __init__(self, width: int, adds: bool):
        super().__init__()
        self.layers = nn.Sequential(ConvNorm(width, width, activation=nn.SiLU),
                                    ConvNorm(width, width, activation=nn.SiLU))
        self.adds = adds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.adds else self.layers(x)


class C2f(nn.Module):
    """Half of the channels pass through the bottlenecks, and each bottleneck's answer is kept."""

    def __init__(self, inner: int, outer: int, blocks: int, adds: bool):
        super().__init__()
        half = outer // 2
        self.split = ConvNorm(inner, outer, 1, activation=nn.SiLU)
        self.blocks = nn.ModuleList(YoloBottleneck(half, adds) for _ in range(blocks))
        self.join = ConvNorm((2 + blocks) * half, outer, 1, activation=nn.SiLU)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.split(x).chunk(2, dim=1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.join(torch.cat(parts, dim=1))


class Sppf(nn.Module):
    """Three poolings in a row stand for poolings of three sizes."""

    def __init__(self, width: int):
        super().__init__()
        self.narrow = ConvNorm(width, width // 2, 1, activation=nn.SiLU)
        self.join = ConvNorm(2 * width, width, 1, activation=nn.SiLU)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.narrow(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.join(torch.cat(parts, dim=1))


def make_yolo_branch(inner: int, width: int, outer: int) -> nn.Sequential:
    return nn.Sequential(ConvNorm(inner, width, activation=nn.SiLU), ConvNorm(width, width, activation=nn.SiLU),
                         nn.Conv2d(width, outer, 1))


class YoloNano(nn.Module):
    """YOLOv8n (Jocher et al., 2023): images -> for each cell of three grids the 4 x 16 scores of its box's sides, then
    those of its 80 classes, f32 [N, 144, cells]."""

    def __init__(self, classes: int = 80):
        super().__init__()
        self.to_fine = nn.Sequential(
            ConvNorm(3, 16, 3, 2, activation=nn.SiLU), ConvNorm(16, 32, 3, 2, activation=nn.SiLU), C2f(32, 32, 1, True),
            ConvNorm(32, 64, 3, 2, activation=nn.SiLU), C2f(64, 64, 2, True))
        self.to_medium = nn.Sequential(ConvNorm(64, 128, 3, 2, activation=nn.SiLU), C2f(128, 128, 2, True))
        self.to_coarse = nn.Sequential(ConvNorm(128, 256, 3, 2, activation=nn.SiLU), C2f(256, 256, 1, True), Sppf(256))
        self.up_medium, self.up_fine = C2f(384, 128, 1, False), C2f(192, 64, 1, False)
        self.shrink_fine = ConvNorm(64, 64, 3, 2, activation=nn.SiLU)
        self.shrink_medium = ConvNorm(128, 128, 3, 2, activation=nn.SiLU)
        self.down_medium, self.down_coarse = C2f(192, 128, 1, False), C2f(384, 256, 1, False)
        self.boxes = nn.ModuleList(make_yolo_branch(width, 64, 64) for width in (64, 128, 256))
        self.classes = nn.ModuleList(make_yolo_branch(width, 80, classes) for width in (64, 128, 256))
        smooth_kernels(self)
        for branch in self.boxes:
            nn.init.ones_(branch[-1].bias)  # where training starts

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        fine = self.to_fine(images)
        medium = self.to_medium(fine)
        coarse = self.to_coarse(medium)
        medium = self.up_medium(torch.cat([F.interpolate(coarse, scale_factor=2.0), medium], dim=1))
        fine = self.up_fine(torch.cat([F.interpolate(medium, scale_factor=2.0), fine], dim=1))
        medium = self.down_medium(torch.cat([self.shrink_fine(fine), medium], dim=1))
        coarse = self.down_coarse(torch.cat([self.shrink_medium(medium), coarse], dim=1))
        heads = zip((fine, medium, coarse), self.boxes, self.classes)
        return torch.cat([torch.cat([boxes(x), classes(x)], dim=1).flatten(2) for x, boxes, classes in heads], dim=2)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, as in ResNet-18."""

    def __init__(self, inner: int, outer: int, stride: int = 1, dilation: int = 1):
        super().__init__()
        self.layers = nn.Sequential(ConvNorm(inner, outer, 3, stride, dilation),
                                    ConvNorm(outer, outer, 3, 1, dilation, activation=None))
        same = stride == 1 and inner == outer
        self.shortcut = nn.Identity() if same else ConvNorm(inner, outer, 1, stride, activation=None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layers(x) + self.shortcut(x))


class AtrousPyramid(nn.Module):
    def __init__(self, inner: int, outer: int, dilations: tuple[int, ...] = (6, 12, 18)):
        super().__init__()
        self.branches = nn.ModuleList([ConvNorm(inner, outer, 1)])
        self.branches.extend(ConvNorm(inner, outer, 3, 1, dilation) for dilation in dilations)
        self.whole = nn.Sequential(nn.AdaptiveAvgPool2d(1), ConvNorm(inner, outer, 1))
        self.join = ConvNorm((len(dilations) + 2) * outer, outer, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [branch(x) for branch in self.branches]
        return self.join(torch.cat([*parts, resize(self.whole(x), x)], dim=1))


class DeepLabV3(nn.Module):
    """Chen et al., 2017, on ResNet-18 with a grid of 1/16: images -> scores of each pixel, f32 [N, 21, side, side]."""

    def __init__(self, classes: int = 21):
        super().__init__()
        self.stem = nn.Sequential(ConvNorm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
        # The last stage dilates its kernels in place of a stride.
        self.blocks = nn.Sequential(
            BasicBlock(64, 64), BasicBlock(64, 64), BasicBlock(64, 128, 2), BasicBlock(128, 128),
            BasicBlock(128, 256, 2), BasicBlock(256, 256), BasicBlock(256, 512, 1, 2), BasicBlock(512, 512, 1, 2))
        self.head = nn.Sequential(AtrousPyramid(512, 256), ConvNorm(256, 256), nn.Conv2d(256, classes, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return resize(self.head(self.blocks(self.stem(images))), images)


class SeparableConv(nn.Sequential):
    def __init__(self, inner: int, outer: int, stride: int = 1):
        super().__init__(ConvNorm(inner, inner, 3, stride, groups=inner), ConvNorm(inner, outer, 1))


class InvertedResidual(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int, expansion: int = 6):
        super().__init__()
        width = inner * expansion
        self.layers = nn.Sequential(ConvNorm(inner, width, 1), ConvNorm(width, width, 3, stride, groups=width),
                                    ConvNorm(width, outer, 1, activation=None))
        self.adds = stride == 1 and inner == outer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.adds else self.layers(x)


class PyramidPooling(nn.Module):
    def __init__(self, width: int, cells: tuple[int, ...] = (1, 2, 3, 6)):
        super().__init__()
        narrow = width // len(cells)
        self.branches = nn.ModuleList(nn.Sequential(nn.AdaptiveAvgPool2d(n), ConvNorm(width, narrow, 1)) for n in cells)
        self.join = ConvNorm(2 * width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.join(torch.cat([x, *(resize(branch(x), x) for branch in self.branches)], dim=1))


class FastScnn(nn.Module):
    """Poudel et al., 2019: images -> scores of each pixel, f32 [N, 19, height, width]."""

    def __init__(self, classes: int = 19):
        super().__init__()
        self.downsample = nn.Sequential(ConvNorm(3, 32, 3, 2), SeparableConv(32, 48, 2), SeparableConv(48, 64, 2))
        shapes = [(64, 64, 2), (64, 64, 1), (64, 64, 1), (64, 96, 2), (96, 96, 1), (96, 96, 1), (96, 128, 1),
                  (128, 128, 1), (128, 128, 1)]
        self.features = nn.Sequential(*(InvertedResidual(*shape) for shape in shapes), PyramidPooling(128))
        self.coarse = nn.Sequential(ConvNorm(128, 128, 3, 1, 4, 128), ConvNorm(128, 128, 1, activation=None))
        self.fine = ConvNorm(64, 128, 1, activation=None)
        self.head = nn.Sequential(SeparableConv(128, 128), SeparableConv(128, 128), nn.Conv2d(128, classes, 1))
        smooth_kernels(self)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        fine = self.downsample(images)
        coarse = self.coarse(resize(self.features(fine), fine))
        return resize(self.head(torch.relu(self.fine(fine) + coarse)), images)


class Espcn(nn.Module):
    """Shi et al., 2016, three times as large: images f32 [N, 1, side, side] -> f32 [N, 1, 3 side, 3 side]."""

    def __init__(self, factor: int = 3):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
            nn.Conv2d(32, factor * factor, 3, padding=1), nn.PixelShuffle(factor))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


class EdsrBlock(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
                                    nn.Conv2d(width, width, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


class Edsr(nn.Module):
    """Lim et al., 2017, the baseline: images f32 [N, 3, side, side] -> f32 [N, 3, 2 side, 2 side]."""

    def __init__(self, width: int = 64, blocks: int = 16, factor: int = 2):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.4488, 0.4371, 0.4040]).view(1, 3, 1, 1))
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.Sequential(*(EdsrBlock(width) for _ in range(blocks)), nn.Conv2d(width, width, 3, padding=1))
        self.tail = nn.Sequential(nn.Conv2d(width, factor * factor * width, 3, padding=1), nn.PixelShuffle(factor),
                                  nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.head(images - self.mean)
        return self.tail(x + self.body(x)) + self.mean


class NormResidual(nn.Module):
    """Group norm, SiLU and convolution, twice; where there is a time, it scales and shifts the second norm's answer."""

    def __init__(self, inner: int, outer: int, time: int = 0):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, inner, 1e-6), nn.Conv2d(inner, outer, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(32, outer, 1e-6), nn.Conv2d(outer, outer, 3, padding=1)
        self.time = nn.Linear(time, 2 * outer) if time else None
        self.shortcut = nn.Identity() if inner == outer else nn.Conv2d(inner, outer, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor | None = None) -> torch.Tensor:
        y = self.norm2(self.conv1(F.silu(self.norm1(x))))
        if self.time is not None:
            scale, shift = self.time(F.silu(time))[:, :, None, None].chunk(2, dim=1)
            y = y * (1 + scale) + shift
        return self.shortcut(x) + self.conv2(F.silu(y))


class PixelAttention(nn.Module):
    """Self-attention among the pixels of a map."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(32, width, 1e-6)
        self.qkv, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, channels, height, width = x.shape
        maps = self.qkv(self.norm(x)).view(n, 3, self.heads, channels // self.heads, height * width)
        q, k, v = maps.transpose(3, 4).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(2, 3).reshape(n, channels, height, width))


class Upsample(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class TimedStep(nn.Module):
    """A residual block, then attention and a change of the size where they are given."""

    def __init__(self, inner: int, outer: int, time: int, attends: bool, resizing: nn.Module | None = None):
        super().__init__()
        self.block = NormResidual(inner, outer, time)
        self.attention = PixelAttention(outer, 4) if attends else nn.Identity()
        self.resizing = resizing or nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        return self.resizing(self.attention(self.block(x, time)))


class Downsample(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, 2, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


def embed_times(times: torch.Tensor, width: int) -> torch.Tensor:
    """i64 [N] -> cosines and sines of falling pace, f32 [N, width]."""
    half = width // 2
    pace = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
    angles = times[:, None].float() * pace
    return torch.cat([angles.cos(), angles.sin()], dim=1)


class DiffusionUNet(nn.Module):
    """Denoising diffusion (Ho et al., 2020) as improved for 64 x 64 by Nichol and Dhariwal, 2021, at half their width:
    images f32 [N, 3, 64, 64] and steps i64 [N] -> the noise, f32 [N, 3, 64, 64]."""

    def __init__(self, width: int = 64, factors: tuple[int, ...] = (1, 2, 3, 4), blocks: int = 3):
        super().__init__()
        self.width, time, levels = width, 4 * width, len(factors)
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        inner, skips = width, [width]
        for level, factor in enumerate(factors):
            for _ in range(blocks):
                self.down.append(TimedStep(inner, factor * width, time, level >= 2))
                inner = factor * width
                skips.append(inner)
            if level + 1 < levels:
                self.down.append(Downsample(inner))
                skips.append(inner)
        self.middle = nn.ModuleList([TimedStep(inner, inner, time, True), TimedStep(inner, inner, time, False)])
        for level, factor in reversed(list(enumerate(factors))):
            for block in range(blocks + 1):
                grows = level > 0 and block == blocks
                resizing = Upsample(factor * width) if grows else None
                self.up.append(TimedStep(inner + skips.pop(), factor * width, time, level >= 2, resizing))
                inner = factor * width
        self.head = nn.Sequential(nn.GroupNorm(32, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, images: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        time = self.time(embed_times(steps, self.width))
        x = self.stem(images)
        skips = [x]
        for part in self.down:
            x = part(x, time)
            skips.append(x)
        for part in self.middle:
            x = part(x, time)
        for part in self.up:
            x = part(torch.cat([x, skips.pop()], dim=1), time)
        return self.head(x)


def draw_noisy_images(generator: Generator, rows: int) -> Arrays:
    return draw_images(64)(generator, rows) | {"steps": generator.integers(0, 1000, rows)}


class VaeDecoder(nn.Module):
    """The decoder of latent diffusion (Rombach et al., 2022) at half its width: latents f32 [N, 4, 16, 16] -> images
    f32 [N, 3, 128, 128]."""

    def __init__(self, width: int = 64, factors: tuple[int, ...] = (4, 4, 2, 1), blocks: int = 3):
        super().__init__()
        inner = factors[0] * width
        layers: list[nn.Module] = [nn.Conv2d(4, 4, 1), nn.Conv2d(4, inner, 3, padding=1), NormResidual(inner, inner),
                                   PixelAttention(inner, 1), NormResidual(inner, inner)]
        for level, factor in enumerate(factors):
            layers += [Upsample(inner)] if level > 0 else []
            for _ in range(blocks):
                layers.append(NormResidual(inner, factor * width))
                inner = factor * width
        layers += [nn.GroupNorm(32, inner, 1e-6), nn.SiLU(), nn.Conv2d(inner, 3, 3, padding=1)]
        self.layers = nn.Sequential(*layers)

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        return self.layers(latents)


class Crnn(nn.Module):
    """Shi et al., 2015: grey images f32 [N, 1, 32, 128] -> scores of 36 characters and a gap, f32 [N, 33, 37]."""

    def __init__(self, hidden: int = 256, characters: int = 37):
        super().__init__()
        narrow_pool = {"kernel_size": 2, "stride": (2, 1), "padding": (0, 1)}
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(128, 256, 3, padding=1), nn.BatchNorm2d(256), nn.ReLU(),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(**narrow_pool),
            nn.Conv2d(256, 512, 3, padding=1), nn.BatchNorm2d(512), nn.ReLU(),
            nn.Conv2d(512, 512, 3, padding=1), nn.ReLU(), nn.MaxPool2d(**narrow_pool),
            nn.Conv2d(512, 512, 2), nn.BatchNorm2d(512), nn.ReLU())
        self.first = nn.LSTM(512, hidden, batch_first=True, bidirectional=True)
        self.between = nn.Linear(2 * hidden, hidden)
        self.second = nn.LSTM(hidden, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, characters)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        columns = self.convolutions(images).squeeze(2).transpose(1, 2)
        return self.head(self.second(self.between(self.first(columns)[0]))[0])


class Bottleneck(nn.Module):
    def __init__(self, inner: int, width: int):
        super().__init__()
        self.layers = nn.Sequential(ConvNorm(inner, width, 1), ConvNorm(width, width),
                                    ConvNorm(width, 4 * width, 1, activation=None))
        self.shortcut = nn.Identity() if inner == 4 * width else ConvNorm(inner, 4 * width, 1, activation=None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layers(x) + self.shortcut(x))


def make_path(widths: list[int], start: int, end: int) -> nn.Module:
    """From the map of one resolution to another: a 1x1 convolution and a resizing up, or strided convolutions down."""
    if start == end:
        return nn.Identity()
    if start > end:
        upsample = nn.Upsample(scale_factor=float(2 ** (start - end)), mode="nearest")
        return nn.Sequential(ConvNorm(widths[start], widths[end], 1, activation=None), upsample)
    steps = [ConvNorm(widths[start], widths[start], 3, 2) for _ in range(start, end - 1)]
    return nn.Sequential(*steps, ConvNorm(widths[start], widths[end], 3, 2, activation=None))


class HrModule(nn.Module):
    """Two blocks at each resolution, then each resolution's map becomes the sum of them all."""

    def __init__(self, widths: list[int], outputs: int):
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(BasicBlock(n, n), BasicBlock(n, n)) for n in widths)
        self.paths = nn.ModuleList(nn.ModuleList(make_path(widths, start, end) for start in range(len(widths)))
                                   for end in range(outputs))

    def forward(self, maps: list[torch.Tensor]) -> list[torch.Tensor]:
        maps = [branch(x) for branch, x in zip(self.branches, maps)]
        return [torch.relu(sum(path(x) for path, x in zip(paths, maps))) for paths in self.paths]


class HrNet(nn.Module):
    """HRNet-W18-small v2 (Sun et al., 2019; Wang et al., 2020) for poses: images -> a heat map for each of 17 joints,
    f32 [N, 17, height / 4, width / 4]."""

    def __init__(self, width: int = 18, joints: int = 17):
        super().__init__()
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.stem = nn.Sequential(ConvNorm(3, 64, 3, 2), ConvNorm(64, 64, 3, 2), Bottleneck(64, 64),
                                  Bottleneck(256, 64))
        self.entry = ConvNorm(256, widths[0])
        self.descents = nn.ModuleList([ConvNorm(256, widths[1], 3, 2), ConvNorm(widths[1], widths[2], 3, 2),
                                       ConvNorm(widths[2], widths[3], 3, 2)])
        self.stage2 = nn.ModuleList([HrModule(widths[:2], 2)])
        self.stage3 = nn.ModuleList(HrModule(widths[:3], 3) for _ in range(3))
        self.stage4 = nn.ModuleList([HrModule(widths, 4), HrModule(widths, 1)])
        self.head = nn.Conv2d(width, joints, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        lowest = self.stem(images)
        maps = [self.entry(lowest)]
        for descent, stage in zip(self.descents, (self.stage2, self.stage3, self.stage4)):
            maps.append(descent(lowest))
            for module in stage:
                maps = module(maps)
            lowest = maps[-1]
        return self.head(maps[0])


MODELS = [
    FieldModel("yolo_nano", "YOLOv8 nano, 320 x 320", "detector", "yolo", YoloNano, draw_images(320)),
    FieldModel("deeplab_v3", "DeepLabV3 on ResNet-18, 256 x 256", "segmenter", "deeplab", DeepLabV3, draw_images(256)),
    FieldModel("fast_scnn", "Fast-SCNN, 256 x 512", "segmenter", "fast_scnn", FastScnn, draw_pictures(256, 512)),
    FieldModel("espcn", "ESPCN, 3 x 128 x 128", "super-resolution", "espcn", Espcn, draw_images(128, 1)),
    FieldModel("edsr", "EDSR baseline, 2 x 64 x 64", "super-resolution", "edsr", Edsr, draw_images(64)),
    FieldModel("diffusion_unet", "Diffusion U-Net, 64 x 64", "generator", "diffusion", DiffusionUNet,
               draw_noisy_images),
    FieldModel("vae_decoder", "Latent diffusion decoder, 128 x 128", "generator", "diffusion", VaeDecoder,
               draw_numbers(4, 16, 16, name="latents")),
    FieldModel("crnn", "CRNN, 32 x 128", "text reader", "crnn", Crnn, draw_pictures(32, 128, 1)),
    FieldModel("hrnet", "HRNet-W18 small, 256 x 192", "pose estimator", "hrnet", HrNet, draw_pictures(256, 192)),
]
