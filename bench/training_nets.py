"""The networks whose training is compared, in plain PyTorch: those of nets.py as they are trained, with their data.

Images come from Fashion-MNIST, tokens are drawn with a fixed seed: a step takes as long whatever they say.
"""

from collections.abc import Callable
from dataclasses import dataclass

import nets
import numpy
import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    """MiniLM with a head, fine-tuned: input_ids, attention_mask i64 [N, 128] -> logits f32 [N, 8]."""

    def __init__(self, classes: int = 8):
        super().__init__()
        self.encoder = nets.make_minilm()
        self.head = nn.Linear(384, classes)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(input_ids, attention_mask))


class CausalBlock(nn.Module):
    """A decoder layer, norms first."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, tokens, width = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (part.view(n, tokens, self.heads, -1).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, tokens, width))
        return x + self.mlp(self.norm2(x))


class Gpt2(nn.Module):
    """tokens i64 [N, 128] -> logits f32 [N, 128, 8192]; the logits' weights are the embedding's."""

    def __init__(self, words: int = 8192, width: int = 256, layers: int = 6, heads: int = 4, tokens: int = 128):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Parameter(torch.randn(tokens, width) * 0.02)
        nn.init.normal_(self.words.weight, 0, 0.02)
        self.blocks = nn.ModuleList(CausalBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.words.weight)


@dataclass
class Training:
    make: Callable[[], nn.Module]
    batch: int
    data: Callable[[int], dict[str, numpy.ndarray]]  # of so many samples, the array `labels` last


def draw_images(side: int, channels: int, classes: int, per_pixel: bool = False) -> Callable[[int], dict[str, numpy.ndarray]]:
    def draw(samples: int) -> dict[str, numpy.ndarray]:
        random = numpy.random.default_rng(1)
        images = random.standard_normal((samples, channels, side, side)).astype(numpy.float32)
        return {"images": images, "labels": random.integers(0, classes, (samples, side, side) if per_pixel else samples)}

    return draw


def draw_sentences(samples: int) -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(1)
    ids = random.integers(1000, 30000, (samples, 128))
    return {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "labels": random.integers(0, 8, samples)}


def draw_tokens(samples: int) -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(1)
    text = random.integers(0, 8192, (samples, 129))
    return {"tokens": numpy.ascontiguousarray(text[:, :-1]), "labels": numpy.ascontiguousarray(text[:, 1:])}


TRAININGS = {
    "net": Training(nets.make_fashion_mnist_net, 128, draw_images(28, 1, 10)),
    "vit": Training(nets.VitTiny, 8, draw_images(224, 3, 1000)),
    "resnet18": Training(nets.ResNet18, 8, draw_images(224, 3, 1000)),
    "minilm": Training(Classifier, 8, draw_sentences),
    "gpt2": Training(Gpt2, 8, draw_tokens),
    "unet": Training(nets.UNet, 8, draw_images(128, 3, 4, per_pixel=True)),
}
