# Embeddings: plain, padded, bags with their three modes, tied to the output projection.

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, apply, call


class TiedLanguageHead(nn.Module):
    """Input embedding and output projection are one parameter."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 12)
        self.mix = nn.Linear(12, 12)
        self.head = nn.Linear(12, 30, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(torch.tanh(self.mix(self.embed(ids))))


class PositionalEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(40, 8, padding_idx=0)
        self.positions = nn.Embedding(64, 8)

    def forward(self, ids):
        position = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0)
        return self.words(ids) + self.positions(position)


def ids(*shape, high=30):
    return torch.randint(0, high, shape)


CASES = [
    Case("embedding", lambda: nn.Embedding(30, 8), lambda: call(ids(3, 5))),
    Case("embedding_int32", lambda: nn.Embedding(30, 8), lambda: call(ids(4).int())),
    Case("embedding_positional_dynamic", PositionalEmbedding, lambda b, n: call(ids(b, n)),
         variants=((2, 7), (1, 2), (3, 64)),
         dynamic={"ids": {0: Dim("batch", min=1, max=8), 1: Dim("length", min=2, max=64)}}),
    Case("embedding_tied", TiedLanguageHead, lambda: call(ids(2, 6)), forms=("core",)),
    Case("embedding_max_norm", lambda: nn.Embedding(30, 8, max_norm=None, norm_type=1.0, scale_grad_by_freq=True),
         lambda: call(ids(3, 5))),
    Case("embedding_bag_mean", lambda: nn.EmbeddingBag(30, 8), lambda: call(ids(3, 4))),
    Case("embedding_bag_offsets", lambda: nn.EmbeddingBag(30, 8, mode="sum"),
         lambda: call(ids(7), torch.tensor([0, 2, 2, 5]))),
    Case("embedding_bag_weighted", lambda: nn.EmbeddingBag(30, 8, mode="sum", include_last_offset=True),
         lambda: call(ids(7), torch.tensor([0, 3, 4, 7]), torch.rand(7))),
    Case("embedding_bag_max", lambda: nn.EmbeddingBag(30, 8, mode="max", padding_idx=2), lambda: call(ids(3, 4))),
    Case("one_hot", apply(lambda x: F.one_hot(x, 12).float()), lambda: call(ids(3, 4, high=12))),
    Case("positional_sinusoid", apply(lambda x: torch.cat([x.sin(), x.cos()], -1)),
         lambda: call(torch.arange(10.0)[:, None] / 10000 ** (torch.arange(0, 8, 2) / 8))),
]
