"""The networks of the comparison, in plain PyTorch and at the sizes that people deploy.

Weights are drawn with a fixed seed, but for MiniLM and the Fashion-MNIST net, which have their real ones. models.py says
which inputs they get.
"""

import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    """Two layers: images f32 [N, 1, 28, 28] -> logits f32 [N, 10]."""

    def __init__(self, hidden: int = 512):
        super().__init__()
        self.hidden = nn.Linear(28 * 28, hidden)
        self.classes = nn.Linear(hidden, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(torch.relu(self.hidden(images.flatten(1))))


class LstmTagger(nn.Module):
    """A label for each token, from both directions: input_ids i64 [N, T] -> scores f32 [N, T, 17]."""

    def __init__(self, words: int = 30522, width: int = 128, labels: int = 17):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, labels)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(self.embed(input_ids))
        return self.head(hidden)


class Attention(nn.Module):
    """x [N, T, width], and keys and values of earlier tokens where there are any -> the same, and keys and values."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, past=None):
        n, tokens, width = x.shape
        q, k, v = (part.view(n, tokens, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(n, tokens, width)), (k, v)


class Block(nn.Module):
    """A transformer layer, norms first."""

    def __init__(self, width: int, heads: int, approximate: str = "none"):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate), nn.Linear(4 * width, width))

    def forward(self, x, past=None):
        y, kept = self.attention(self.norm1(x), past)
        x = x + y
        return x + self.mlp(self.norm2(x)), kept


class VitTiny(nn.Module):
    """images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self, width: int = 192, layers: int = 12, heads: int = 3, patch: int = 16, image: int = 224):
        super().__init__()
        self.embed = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.embed(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        for block in self.blocks:
            x, _ = block(x)
        return self.head(self.norm(x)[:, 0])


class Gpt2Step(nn.Module):
    """One step of decoding: token i64 [N, 1], keys and values of each layer in turn, f32 [N, heads, T, size] -> logits
    f32 [N, words] and every cache, one token longer. The logits' weights are the embedding's."""

    def __init__(self, words: int = 16384, width: int = 512, layers: int = 8, heads: int = 8, positions: int = 1024):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads, "tanh") for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, token: torch.Tensor, *caches: torch.Tensor):
        at = caches[0].shape[2]
        x = self.words(token) + self.positions.weight[at : at + 1]
        grown = []
        for layer, block in enumerate(self.blocks):
            x, kept = block(x, caches[2 * layer : 2 * layer + 2])
            grown += kept
        return F.linear(self.norm(x)[:, -1], self.words.weight), *grown


class ResidualBlock(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outer)
        self.shortcut = nn.Identity()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    """images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        shapes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
        self.blocks = nn.Sequential(*(ResidualBlock(*shape) for shape in shapes))
        self.classes = nn.Linear(512, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(F.adaptive_avg_pool2d(self.blocks(self.stem(images)), 1).flatten(1))


class InvertedResidual(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int, expansion: int):
        super().__init__()
        width = inner * expansion
        layers = [] if expansion == 1 else [nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU6()]
        layers += [nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False), nn.BatchNorm2d(width), nn.ReLU6()]
        self.layers = nn.Sequential(*layers, nn.Conv2d(width, outer, 1, bias=False), nn.BatchNorm2d(outer))
        self.adds = stride == 1 and inner == outer

    def forward(self, x):
        return x + self.layers(x) if self.adds else self.layers(x)


class MobileNetV2(nn.Module):
    """images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self):
        super().__init__()
        # Expansion, channels, blocks and the first block's stride, as the paper's table 2 has them.
        table = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
        layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
        inner = 32
        for expansion, outer, blocks, stride in table:
            for block in range(blocks):
                layers.append(InvertedResidual(inner, outer, stride if block == 0 else 1, expansion))
                inner = outer
        layers += [nn.Conv2d(inner, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()]
        self.layers = nn.Sequential(*layers)
        self.classes = nn.Linear(1280, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classes(self.layers(images).mean((2, 3)))


class DoubleConv(nn.Sequential):
    def __init__(self, inner: int, outer: int):
        super().__init__(
            nn.Conv2d(inner, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(),
            nn.Conv2d(outer, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(),
        )


class UNet(nn.Module):
    """images f32 [N, 3, 128, 128] -> a score for each pixel and class, f32 [N, 4, 128, 128]."""

    def __init__(self, width: int = 32, classes: int = 4):
        super().__init__()
        widths = (width, 2 * width, 4 * width)
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip((3, *widths), widths))
        self.middle = DoubleConv(4 * width, 8 * width)
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * n, n, 2, 2) for n in reversed(widths))
        self.join = nn.ModuleList(DoubleConv(2 * n, n) for n in reversed(widths))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for block in self.down:
            skips.append(block(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.middle(x)
        for up, join, skip in zip(self.up, self.join, reversed(skips)):
            x = join(torch.cat([skip, up(x)], dim=1))
        return self.head(x)


def make_minilm() -> nn.Module:
    """Without the weights: only what describes the model is read."""
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples" / "sentences"))
    import transformers
    from sentence_encoder import SentenceEncoder, find_weights

    config = transformers.BertConfig.from_pretrained(find_weights())
    return SentenceEncoder(transformers.BertModel(config, add_pooling_layer=False))


def make_fashion_mnist_net() -> nn.Module:
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples" / "fashion_mnist"))
    from fashion_mnist_net import FashionMnistNet

    return FashionMnistNet()


MAKERS = {
    "net": make_fashion_mnist_net,
    "mlp": Mlp,
    "tagger": LstmTagger,
    "minilm16": make_minilm,
    "minilm": make_minilm,
    "vit": VitTiny,
    "resnet18": ResNet18,
    "unet": UNet,
    "mobilenet": MobileNetV2,
    "gpt2": Gpt2Step,
}


def make_module(name: str) -> nn.Module:
    """One of the models by its name in models.py, weights drawn anew."""
    return MAKERS[name]()
