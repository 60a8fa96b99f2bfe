"""The model that the hostile files are made from; its lines show up in errors."""

from __future__ import annotations

import torch
from torch import nn


class HostileModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 4)
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.fc(x)) * self.scale
