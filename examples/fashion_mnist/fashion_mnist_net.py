"""The net of fashion_mnist_net.h in Python: same layers, same parameter names."""

import torch
from torch import nn


class ConvBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out_channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.conv(x)))


class FashionMnistNet(nn.Module):
    """images f32 [N, 1, 28, 28] in 0..1 -> logits f32 [N, 10]."""

    def __init__(self):
        super().__init__()
        self.block1 = ConvBlock(1, 32)
        self.block2 = ConvBlock(32, 64)
        self.block3 = ConvBlock(64, 64)
        self.block4 = ConvBlock(64, 128)
        self.block5 = ConvBlock(128, 128)
        self.dropout = nn.Dropout(0.2)
        self.hidden = nn.Linear(128 * 3 * 3, 256)
        self.classes = nn.Linear(256, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = torch.max_pool2d(self.block1(images), 2)
        x = torch.max_pool2d(self.block3(self.block2(x)), 2)
        x = torch.max_pool2d(self.block5(self.block4(x)), 2)
        x = self.dropout(x.flatten(1))
        return self.classes(torch.relu(self.hidden(x)))
