"""Models that hear or speak: recognizers, vocoders, a separator of speakers and a spotter of keywords."""

import math

import torch
import torch.nn.functional as F
import transformers
from torch import nn

from field.model import FieldModel, draw_numbers, draw_sound


def draw_weights(module: nn.Module, gain: float = 1.0) -> None:
    """Keeps the deviation of what passes through the convolutions, which the default draw shrinks at each layer."""
    for part in module.modules():
        if isinstance(part, (nn.Conv1d, nn.ConvTranspose1d)):
            spread = part.stride[0] if isinstance(part, nn.ConvTranspose1d) else 1
            inputs = part.in_channels // part.groups * part.kernel_size[0] / spread
            nn.init.normal_(part.weight, 0, gain / math.sqrt(inputs))


class Wav2Vec2Base(nn.Module):
    """Baevski et al., 2020: sound f32 [N, samples] at 16 kHz -> features f32 [N, frames, 768], 49 frames a second."""

    def __init__(self):
        super().__init__()
        self.model = transformers.Wav2Vec2Model(transformers.Wav2Vec2Config())

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        return self.model(sound).last_hidden_state


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, frames, width = x.shape
        q, k, v = (part.view(n, frames, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, frames, width))


class ConformerConvolution(nn.Module):
    def __init__(self, width: int, kernel: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1), nn.GLU(dim=1),
            nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width), nn.BatchNorm1d(width), nn.SiLU(),
            nn.Conv1d(width, width, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(self.norm(x).transpose(1, 2)).transpose(1, 2)


def make_feed_forward(width: int) -> nn.Sequential:
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))


class ConformerBlock(nn.Module):
    def __init__(self, width: int, heads: int, kernel: int):
        super().__init__()
        self.before, self.after = make_feed_forward(width), make_feed_forward(width)
        self.attention = nn.Sequential(nn.LayerNorm(width), SelfAttention(width, heads))
        self.convolution = ConformerConvolution(width, kernel)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 0.5 * self.before(x)
        x = x + self.attention(x)
        x = x + self.convolution(x)
        return self.norm(x + 0.5 * self.after(x))


def make_positions(frames: int, width: int) -> torch.Tensor:
    """Sines and cosines, f32 [frames, width]."""
    pace = torch.exp(-math.log(10000) * torch.arange(0, width, 2) / width)
    angles = torch.arange(frames)[:, None] * pace
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class ConformerSmall(nn.Module):
    """Gulati et al., 2020, at the width of its small form, half as deep and with absolute positions: mel spectrum f32
    [N, 400, 80] -> scores of 1,024 word pieces, f32 [N, 100, 1024]."""

    def __init__(self, width: int = 144, layers: int = 8, heads: int = 4, kernel: int = 31, pieces: int = 1024):
        super().__init__()
        self.subsample = nn.Sequential(nn.Conv2d(1, width, 3, 2, 1), nn.ReLU(),
                                       nn.Conv2d(width, width, 3, 2, 1), nn.ReLU())
        self.embed = nn.Linear(20 * width, width)
        self.register_buffer("positions", make_positions(100, width))
        self.blocks = nn.Sequential(*(ConformerBlock(width, heads, kernel) for _ in range(layers)))
        self.head = nn.Linear(width, pieces)

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        maps = self.subsample(mel[:, None])
        x = self.embed(maps.transpose(1, 2).flatten(2))
        return self.head(self.blocks(x * math.sqrt(x.shape[2]) + self.positions))


class HifiGanBlock(nn.Module):
    """Three pairs of convolutions, each pair with a shortcut; the first of a pair is dilated."""

    def __init__(self, width: int, kernel: int, dilations: tuple[int, ...] = (1, 3, 5)):
        super().__init__()
        self.pairs = nn.ModuleList(
            nn.Sequential(nn.LeakyReLU(0.1), nn.Conv1d(width, width, kernel, 1, n * (kernel // 2), n),
                          nn.LeakyReLU(0.1), nn.Conv1d(width, width, kernel, 1, kernel // 2))
            for n in dilations)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for pair in self.pairs:
            x = x + pair(x)
        return x


class HifiGan(nn.Module):
    """The generator V2 of Kong et al., 2020: mel spectrum f32 [N, 80, frames] -> sound f32 [N, 1, 256 frames]."""

    def __init__(self, width: int = 128):
        super().__init__()
        self.stem = nn.Conv1d(80, width, 7, padding=3)
        self.ups, self.blocks = nn.ModuleList(), nn.ModuleList()
        for factor in (8, 8, 2, 2):
            self.ups.append(nn.ConvTranspose1d(width, width // 2, 2 * factor, factor, factor // 2))
            width //= 2
            self.blocks.append(nn.ModuleList(HifiGanBlock(width, kernel) for kernel in (3, 7, 11)))
        self.head = nn.Conv1d(width, 1, 7, padding=3)
        draw_weights(self, 0.8)

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        x = self.stem(mel)
        for up, blocks in zip(self.ups, self.blocks):
            x = up(F.leaky_relu(x, 0.1))
            x = sum(block(x) for block in blocks) / len(blocks)
        return torch.tanh(self.head(F.leaky_relu(x)))


class WaveNetLayer(nn.Module):
    """What a gated dilated convolution adds to x and to the skip, both f32 [N, channels, samples]."""

    def __init__(self, width: int, skip: int, dilation: int):
        super().__init__()
        self.dilation = dilation
        self.gated = nn.Conv1d(width, 2 * width, 2, dilation=dilation)
        self.residual, self.skip = nn.Conv1d(width, width, 1), nn.Conv1d(width, skip, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        filtered, gate = self.gated(F.pad(x, (self.dilation, 0))).chunk(2, dim=1)
        y = torch.tanh(filtered) * torch.sigmoid(gate)
        return x + self.residual(y), self.skip(y)


class WaveNet(nn.Module):
    """van den Oord et al., 2016, at the size of Deep Voice (Arik et al., 2017): sound f32 [N, samples] -> scores of
    each next sample's 256 values, f32 [N, 256, samples]."""

    def __init__(self, width: int = 64, skip: int = 256, layers: int = 20, values: int = 256):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 2)
        self.layers = nn.ModuleList(WaveNetLayer(width, skip, 2 ** (n % 10)) for n in range(layers))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(skip, values, 1), nn.ReLU(), nn.Conv1d(values, values, 1))
        draw_weights(self)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        x = self.stem(F.pad(sound[:, None], (1, 0)))
        skips = []
        for layer in self.layers:
            x, skip = layer(x)
            skips.append(skip)
        return self.head(sum(skips))


class SeparatorBlock(nn.Module):
    """What a depthwise separable convolution adds to x and to the skip, both f32 [N, channels, frames]."""

    def __init__(self, width: int, hidden: int, dilation: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(width, hidden, 1), nn.PReLU(), nn.GroupNorm(1, hidden, 1e-8),
            nn.Conv1d(hidden, hidden, 3, padding=dilation, dilation=dilation, groups=hidden), nn.PReLU(),
            nn.GroupNorm(1, hidden, 1e-8))
        self.residual, self.skip = nn.Conv1d(hidden, width, 1), nn.Conv1d(hidden, width, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.layers(x)
        return x + self.residual(y), self.skip(y)


class ConvTasNet(nn.Module):
    """Luo and Mesgarani, 2019, a small form: sound f32 [N, samples] at 8 kHz -> two speakers, f32 [N, 2, samples]."""

    def __init__(self, filters: int = 256, width: int = 128, hidden: int = 256, repeats: int = 2, blocks: int = 6,
                 speakers: int = 2):
        super().__init__()
        self.speakers = speakers
        self.encoder = nn.Conv1d(1, filters, 16, 8, 8, bias=False)
        self.entry = nn.Sequential(nn.GroupNorm(1, filters, 1e-8), nn.Conv1d(filters, width, 1))
        self.blocks = nn.ModuleList(SeparatorBlock(width, hidden, 2 ** (n % blocks)) for n in range(repeats * blocks))
        self.masks = nn.Sequential(nn.PReLU(), nn.Conv1d(width, speakers * filters, 1), nn.Sigmoid())
        self.decoder = nn.ConvTranspose1d(filters, 1, 16, 8, 8, bias=False)
        draw_weights(self)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        n, samples = sound.shape
        encoded = self.encoder(sound[:, None])
        x = self.entry(encoded)
        skips = []
        for block in self.blocks:
            x, skip = block(x)
            skips.append(skip)
        masks = self.masks(sum(skips)).view(n, self.speakers, *encoded.shape[1:])
        return self.decoder((masks * encoded[:, None]).flatten(0, 1)).view(n, self.speakers, samples)


def make_norm_conv(inner: int, outer: int, kernel: int | tuple[int, int], groups: int = 1, **sizes) -> nn.Sequential:
    conv = nn.Conv2d(inner, outer, kernel, groups=groups, bias=False, **sizes)
    return nn.Sequential(conv, nn.BatchNorm2d(outer), nn.ReLU())


class DsCnn(nn.Module):
    """The small DS-CNN of Zhang et al., 2017, as in MLPerf Tiny: cepstra f32 [N, 1, 49, 10] -> scores of 12
    keywords."""

    def __init__(self, width: int = 64, blocks: int = 4, keywords: int = 12):
        super().__init__()
        layers = [make_norm_conv(1, width, (10, 4), stride=2)]
        for _ in range(blocks):
            layers += [make_norm_conv(width, width, 3, width, padding=1), make_norm_conv(width, width, 1)]
        self.layers = nn.Sequential(*layers)
        self.classes = nn.Linear(width, keywords)

    def forward(self, cepstra: torch.Tensor) -> torch.Tensor:
        # An answer of 25 x 5 takes one row more below than above.
        maps = self.layers(F.pad(cepstra, (1, 1, 4, 5)))
        return self.classes(maps.mean((2, 3)))


MODELS = [
    FieldModel("wav2vec2_base", "wav2vec 2.0 base, 1 s", "speech encoder", "wav2vec2", Wav2Vec2Base, draw_sound(16000),
               attention=(12, 768)),
    FieldModel("conformer_small", "Conformer small, 4 s", "speech recognizer", "conformer", ConformerSmall,
               draw_numbers(400, 80, name="mel"), attention=(4, 144)),
    FieldModel("hifigan", "HiFi-GAN V2, 50 frames", "vocoder", "hifigan", HifiGan, draw_numbers(80, 50, name="mel")),
    FieldModel("wavenet", "WaveNet, 4,000 samples", "vocoder", "wavenet", WaveNet, draw_sound(4000)),
    FieldModel("conv_tasnet", "Conv-TasNet small, 1 s", "speaker separator", "conv_tasnet", ConvTasNet,
               draw_sound(8000)),
    FieldModel("ds_cnn", "DS-CNN small, 1 s", "keyword spotter", "ds_cnn", DsCnn,
               draw_numbers(1, 49, 10, name="cepstra")),
]
