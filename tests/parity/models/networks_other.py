# Whole networks for sound, tables, graphs and pairs of inputs.

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, call


class Tower(nn.Module):
    def __init__(self, entities: int, features: int):
        super().__init__()
        self.embed = nn.Embedding(entities, 16)
        self.tags = nn.EmbeddingBag(30, 8, mode="mean")
        self.body = nn.Sequential(nn.Linear(24 + features, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, inputs):
        parts = [self.embed(inputs["id"]), self.tags(inputs["tags"]), inputs["features"]]
        return F.normalize(self.body(torch.cat(parts, dim=-1)), dim=-1)


class TwoTower(nn.Module):
    """Users and items as dicts; scores of every user for every item."""

    def __init__(self):
        super().__init__()
        self.user, self.item = Tower(50, 4), Tower(80, 6)
        self.temperature = nn.Parameter(torch.tensor(0.7))

    def forward(self, user, item):
        u, i = self.user(user), self.item(item)
        return {"scores": u @ i.t() * self.temperature.exp(), "user": u, "item": i}


def entity(count, entities, features):
    return {"id": torch.randint(0, entities, (count,)), "tags": torch.randint(0, 30, (count, 5)),
            "features": torch.randn(count, features)}


def entity_shapes(name):
    return {key: {0: Dim(name, min=1, max=64)} for key in ("id", "tags", "features")}


class WhisperEncoder(nn.Module):
    """Mel frames through two convolutions, sinusoidal positions, pre-norm attention."""

    def __init__(self, mels=20, size=48, heads=4, layers=2, frames=32):
        super().__init__()
        self.conv1 = nn.Conv1d(mels, size, 3, padding=1)
        self.conv2 = nn.Conv1d(size, size, 3, stride=2, padding=1)
        scale = torch.exp(-torch.arange(size // 2) * 0.4)
        angles = torch.arange(frames // 2)[:, None] * scale[None]
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], dim=1))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(size, heads, 2 * size, activation="gelu", batch_first=True, norm_first=True)
            for _ in range(layers))
        self.norm = nn.LayerNorm(size)

    def forward(self, mel):
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).permute(0, 2, 1)
        x = x + self.positions[: x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class KeywordSpotter(nn.Module):
    """Raw audio to classes: spectrogram, depthwise convolutions, a GRU, the last state."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.conv = nn.Sequential(nn.Conv1d(33, 33, 5, padding=2, groups=33), nn.Conv1d(33, 24, 1), nn.BatchNorm1d(24), nn.ReLU())
        self.gru = nn.GRU(24, 20, batch_first=True)
        self.head = nn.Linear(20, 6)

    def forward(self, audio):
        spectrum = torch.stft(audio, 64, 32, window=self.window, return_complex=True)
        x = self.conv(torch.log1p(spectrum.abs()))
        _, hidden = self.gru(x.transpose(1, 2))
        return self.head(hidden[-1]).softmax(-1)


class GraphNet(nn.Module):
    """Two rounds of messages along edges, with attention normalized per target."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(6, 16)
        self.message = nn.ModuleList(nn.Linear(16, 16) for _ in range(2))
        self.attend = nn.ModuleList(nn.Linear(32, 1) for _ in range(2))
        self.head = nn.Linear(16, 3)

    def forward(self, nodes, edges):
        source, target = edges[0], edges[1]
        x = self.embed(nodes)
        for message, attend in zip(self.message, self.attend):
            score = F.leaky_relu(attend(torch.cat([x[source], x[target]], -1)), 0.2).squeeze(-1)
            top = torch.full((x.shape[0],), -1e9).scatter_reduce(0, target, score, "amax")
            weight = (score - top[target]).exp()
            total = torch.zeros(x.shape[0]).scatter_add(0, target, weight)
            passed = message(x)[source] * (weight / total[target])[:, None]
            x = F.elu(x + torch.zeros_like(x).index_add(0, target, passed))
        return self.head(x), x.mean(0)


class Autoencoder(nn.Module):
    """Variational: the sample is drawn inside the graph."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(20, 16), nn.BatchNorm1d(16), nn.Tanh())
        self.mean, self.spread = nn.Linear(16, 4), nn.Linear(16, 4)
        self.decode = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 20), nn.Sigmoid())

    def forward(self, x):
        hidden = self.encode(x)
        mean, spread = self.mean(hidden), self.spread(hidden)
        code = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return self.decode(code), mean, spread


class StateSpace(nn.Module):
    """A selective state space layer: the recurrence as a loop over time."""

    def __init__(self, size=12, state=4):
        super().__init__()
        self.enter = nn.Linear(size, 2 * size)
        self.conv = nn.Conv1d(size, size, 3, padding=2, groups=size)
        self.select = nn.Linear(size, 2 * state + size)
        self.log_decay = nn.Parameter(torch.log(torch.arange(1.0, state + 1)).repeat(size, 1))
        self.leave = nn.Linear(size, size)
        self.state = state

    def forward(self, x):
        value, gate = self.enter(x).chunk(2, -1)
        value = F.silu(self.conv(value.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        write, read, step = self.select(value).split([self.state, self.state, value.shape[-1]], dim=-1)
        decay = torch.exp(-F.softplus(step)[..., None] * self.log_decay.exp())
        state, outputs = torch.zeros_like(decay[:, 0]), []
        for t in range(x.shape[1]):
            state = state * decay[:, t] + value[:, t, :, None] * write[:, t, None]
            outputs.append((state * read[:, t, None]).sum(-1))
        return self.leave(torch.stack(outputs, 1) * F.silu(gate))


CASES = [
    Case("two_tower", TwoTower, lambda n, m: call(entity(n, 50, 4), entity(m, 80, 6)), variants=((3, 5), (1, 1), (8, 2)),
         dynamic={"user": entity_shapes("users"), "item": entity_shapes("items")}, forms=("core",)),
    Case("whisper_encoder", WhisperEncoder, lambda b, n: call(torch.randn(b, 20, 2 * n)), variants=((2, 12), (1, 2), (3, 16)),
         dynamic={"mel": {0: Dim("batch", min=1, max=8), 2: 2 * Dim("frames", min=2, max=16)}}),
    Case("keyword_spotter", KeywordSpotter, lambda: call(torch.randn(2, 512))),
    Case("graph_network", GraphNet, lambda: call(torch.randn(7, 6), torch.randint(0, 7, (2, 15)))),
    Case("variational_autoencoder_train", Autoencoder, lambda: call(torch.rand(6, 20)), mode="train", steps=3),
    Case("state_space", StateSpace, lambda: call(torch.randn(2, 6, 12))),
]
