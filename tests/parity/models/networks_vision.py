# Whole networks for images, in plain torch and from transformers configurations.

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, call


def with_random_statistics(module: nn.Module) -> nn.Module:
    """Running statistics as after some training: a fresh batch norm would be the identity."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias, 0, 0.1)
    return module


class BasicBlock(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inner != outer:
            self.downsample = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, blocks: tuple, widths: tuple, classes: int):
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        layers, inner = [], widths[0]
        for stage, (count, width) in enumerate(zip(blocks, widths)):
            for i in range(count):
                layers.append(BasicBlock(inner, width, 2 if stage > 0 and i == 0 else 1))
                inner = width
        self.layers = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inner, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layers(x)), 1))


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, channels // 4, 1)
        self.fc2 = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x):
        scale = F.adaptive_avg_pool2d(x, 1)
        return x * F.hardsigmoid(self.fc2(F.relu(self.fc1(scale))))


def conv_norm_act(inner, outer, kernel, stride=1, groups=1, act=None):
    layers = [nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outer)]
    return nn.Sequential(*layers, *([act] if act else []))


class InvertedResidual(nn.Module):
    def __init__(self, inner, outer, expand, kernel, stride, act, squeeze):
        super().__init__()
        middle = inner * expand
        self.skip = stride == 1 and inner == outer
        self.body = nn.Sequential(
            conv_norm_act(inner, middle, 1, act=act),
            conv_norm_act(middle, middle, kernel, stride, groups=middle, act=act),
            SqueezeExcite(middle) if squeeze else nn.Identity(),
            conv_norm_act(middle, outer, 1),
        )

    def forward(self, x):
        return x + self.body(x) if self.skip else self.body(x)


class MobileNet(nn.Module):
    """version 2: ReLU6, no squeeze; version 3: hard swish, squeeze and excite."""

    def __init__(self, version: int, classes: int):
        super().__init__()
        act = nn.ReLU6(inplace=True) if version == 2 else nn.Hardswish(inplace=True)
        kernel, squeeze = (3, False) if version == 2 else (5, True)
        self.stem = conv_norm_act(3, 16, 3, 2, act=act)
        settings = ((16, 16, 1), (16, 24, 2), (24, 24, 1), (24, 40, 2), (40, 40, 1), (40, 64, 1))
        self.blocks = nn.Sequential(*(InvertedResidual(a, b, 4, kernel, s, act, squeeze) for a, b, s in settings))
        self.head = conv_norm_act(64, 160, 1, act=act)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(160, classes))

    def forward(self, x):
        return self.classifier(self.head(self.blocks(self.stem(x))).mean([2, 3]))


class DoubleConv(nn.Sequential):
    def __init__(self, inner, outer):
        super().__init__(conv_norm_act(inner, outer, 3, act=nn.ReLU(inplace=True)),
                         conv_norm_act(outer, outer, 3, act=nn.ReLU(inplace=True)))


class UNet(nn.Module):
    def __init__(self, width: int, classes: int):
        super().__init__()
        self.down = nn.ModuleList([DoubleConv(3, width), DoubleConv(width, 2 * width), DoubleConv(2 * width, 4 * width)])
        self.pool = nn.MaxPool2d(2)
        self.middle = DoubleConv(4 * width, 8 * width)
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * n, n, 2, 2) for n in (4 * width, 2 * width, width))
        self.join = nn.ModuleList(DoubleConv(2 * n, n) for n in (4 * width, 2 * width, width))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        skips = []
        for block in self.down:
            skips.append(block(x))
            x = self.pool(skips[-1])
        x = self.middle(x)
        for up, join, skip in zip(self.up, self.join, reversed(skips)):
            x = join(torch.cat([skip, up(x)], dim=1))
        return self.head(x)


class ConvNextBlock(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.depthwise = nn.Conv2d(size, size, 7, padding=3, groups=size)
        self.norm = nn.LayerNorm(size, eps=1e-6)
        self.expand, self.shrink = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.scale = nn.Parameter(torch.full((size,), 0.5))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.shrink(F.gelu(self.expand(y))) * self.scale
        return x + y.permute(0, 3, 1, 2)


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNext(nn.Sequential):
    def __init__(self, width: int, classes: int):
        super().__init__(
            nn.Conv2d(3, width, 4, 4), LayerNorm2d(width), ConvNextBlock(width), ConvNextBlock(width),
            LayerNorm2d(width), nn.Conv2d(width, 2 * width, 2, 2), ConvNextBlock(2 * width), ConvNextBlock(2 * width),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(2 * width), nn.Linear(2 * width, classes),
        )


class MlpMixer(nn.Module):
    def __init__(self, patches: int, size: int, layers: int, classes: int):
        super().__init__()
        self.embed = nn.Conv2d(3, size, 8, 8)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({
                "norm1": nn.LayerNorm(size), "tokens": nn.Sequential(nn.Linear(patches, 32), nn.GELU(), nn.Linear(32, patches)),
                "norm2": nn.LayerNorm(size), "channels": nn.Sequential(nn.Linear(size, 128), nn.GELU(), nn.Linear(128, size)),
            }) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, classes)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = x + block["tokens"](block["norm1"](x).transpose(1, 2)).transpose(1, 2)
            x = x + block["channels"](block["norm2"](x))
        return self.head(self.norm(x).mean(dim=1))


class ViT(nn.Module):
    """With nn.TransformerEncoder, class token and learned positions."""

    def __init__(self, size=64, layers=3, heads=4, patch=8, image=32, classes=10):
        super().__init__()
        self.embed = nn.Conv2d(3, size, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, size) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, size) * 0.02)
        layer = nn.TransformerEncoderLayer(size, heads, 2 * size, 0.1, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, classes)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        return self.head(self.norm(self.encoder(x))[:, 0])


def transformers_vit():
    from transformers import ViTConfig, ViTForImageClassification
    config = ViTConfig(hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96, image_size=32,
                       patch_size=8, num_labels=7)
    return ViTForImageClassification(config)


def transformers_swin():
    from transformers import SwinConfig, SwinForImageClassification
    config = SwinConfig(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4,
                        num_labels=5)
    return SwinForImageClassification(config)


class Detector(nn.Module):
    """Two feature levels, one head over both, boxes decoded against a grid."""

    def __init__(self):
        super().__init__()
        self.stem = conv_norm_act(3, 16, 3, 2, act=nn.SiLU())
        self.low = conv_norm_act(16, 24, 3, 2, act=nn.SiLU())
        self.high = conv_norm_act(24, 24, 3, 2, act=nn.SiLU())
        self.head = nn.Conv2d(24, 4 + 3, 1)

    def forward(self, x):
        low = self.low(self.stem(x))
        high = self.high(low)
        low = low + F.interpolate(high, scale_factor=2, mode="nearest")
        boxes, scores = [], []
        for level, stride in ((low, 4), (high, 8)):
            raw = self.head(level)
            rows = torch.arange(level.shape[2], dtype=x.dtype)
            columns = torch.arange(level.shape[3], dtype=x.dtype)
            grid = torch.stack(torch.meshgrid(columns, rows, indexing="xy"))
            center = (raw[:, :2].sigmoid() * 2 - 0.5 + grid) * stride
            size = raw[:, 2:4].exp() * stride
            boxes.append(torch.cat([center - size / 2, center + size / 2], 1).flatten(2))
            scores.append(raw[:, 4:].sigmoid().flatten(2))
        boxes, scores = torch.cat(boxes, 2).transpose(1, 2), torch.cat(scores, 2).transpose(1, 2)
        best, label = scores.max(-1)
        value, order = best.topk(5, dim=1)
        return {"boxes": boxes.gather(1, order[..., None].expand(-1, -1, 4)), "scores": value, "labels": label.gather(1, order)}


def images(batch=2, side=32):
    return call(torch.randn(batch, 3, side, side))


def dynamic_batch(name):
    return dict(variants=((2,), (1,), (5,)), dynamic={name: {0: Dim("batch", min=1, max=32)}})


CASES = [
    Case("resnet18", lambda: with_random_statistics(ResNet((2, 2, 2, 2), (64, 128, 256, 512), 1000)),
         lambda b: images(b, 64), **dynamic_batch("x")),
    Case("resnet_small", lambda: with_random_statistics(ResNet((1, 1), (16, 32), 10)), lambda: images(2, 48),
         forms=("core", "functional", "strict")),
    Case("resnet_small_train", lambda: ResNet((1, 1), (8, 16), 10), lambda: images(4, 32), mode="train", steps=3,
         forms=("core",)),
    Case("mobilenet_v2", lambda: with_random_statistics(MobileNet(2, 10)), images, **dynamic_batch("x")),
    Case("mobilenet_v3", lambda: with_random_statistics(MobileNet(3, 10)), images, forms=("core",)),
    Case("mobilenet_v3_train", lambda: MobileNet(3, 10), lambda: images(4), mode="train", steps=3),
    Case("unet", lambda: with_random_statistics(UNet(8, 3)), images),
    Case("unet_dynamic", lambda: with_random_statistics(UNet(4, 3)), lambda h, w: call(torch.randn(1, 3, 8 * h, 8 * w)),
         variants=((4, 5), (2, 2), (3, 8)),
         dynamic={"x": {2: 8 * Dim("rows", min=2, max=16), 3: 8 * Dim("columns", min=2, max=16)}}),
    Case("convnext", lambda: ConvNext(24, 10), images, forms=("core",)),
    Case("mlp_mixer", lambda: MlpMixer(16, 48, 3, 10), images, **dynamic_batch("x")),
    Case("vit", ViT, images, **dynamic_batch("x"), forms=("core",)),
    Case("vit_transformers", transformers_vit, lambda: images(2)),
    Case("swin_transformers", transformers_swin, lambda: images(2)),
    Case("detector", lambda: with_random_statistics(Detector()), images),
]
