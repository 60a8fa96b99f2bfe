"""Models of graphs, tables, series, recommendations, video and clouds of points."""

import math

import numpy
import torch
import torch.nn.functional as F
from torch import nn

from field.model import Arrays, FieldModel, Generator, draw_numbers

NODES, EDGES = 300, 1500


def draw_edges(generator: Generator, rows: int) -> Arrays:
    """Nodes' features, and the edges' sources and targets; each node has an edge to itself."""
    loops = numpy.broadcast_to(numpy.arange(NODES), (rows, 2, NODES))
    others = generator.integers(0, NODES, (rows, 2, EDGES - NODES))
    edges = numpy.concatenate([loops, others], axis=2)
    return draw_numbers(NODES, 50, name="nodes")(generator, rows) | {"edges": edges}


def spread_index(index: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """index i64 [N, E] for gather and scatter along dimension 1 of what has the trailing sizes of `like`."""
    return index.view(*index.shape, *[1] * (like.dim() - 2)).expand(-1, -1, *like.shape[2:])


class GraphAttentionLayer(nn.Module):
    """nodes f32 [N, V, inner] -> each head's weighted mean over the edges that arrive, f32 [N, V, heads, outer]."""

    def __init__(self, inner: int, outer: int, heads: int):
        super().__init__()
        self.heads = heads
        self.values = nn.Linear(inner, heads * outer, bias=False)
        self.source = nn.Parameter(torch.randn(heads, outer) / math.sqrt(outer))
        self.target = nn.Parameter(torch.randn(heads, outer) / math.sqrt(outer))

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        values = self.values(nodes).unflatten(2, (self.heads, -1))
        sources, targets = (values * self.source).sum(3), (values * self.target).sum(3)
        start, end = spread_index(edges[:, 0], sources), spread_index(edges[:, 1], targets)
        scores = F.leaky_relu(sources.gather(1, start) + targets.gather(1, end), 0.2)
        most = torch.zeros_like(sources).scatter_reduce(1, end, scores, "amax", include_self=False)
        weights = torch.exp(scores - most.gather(1, end))
        total = torch.zeros_like(sources).scatter_add(1, end, weights)
        messages = values.gather(1, spread_index(edges[:, 0], values)) * weights[..., None]
        sums = messages.new_zeros(values.shape).scatter_add(1, spread_index(edges[:, 1], values), messages)
        return sums / total[..., None]


class GraphAttention(nn.Module):
    """Velickovic et al., 2018, as for protein interactions: nodes f32 [N, V, 50] and edges i64 [N, 2, E], sources above
    targets -> scores of 121 labels, f32 [N, V, 121]."""

    def __init__(self, features: int = 50, width: int = 256, labels: int = 121):
        super().__init__()
        self.layer1 = GraphAttentionLayer(features, width, 4)
        self.layer2 = GraphAttentionLayer(4 * width, width, 4)
        self.layer3 = GraphAttentionLayer(4 * width, labels, 6)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        x = F.elu(self.layer1(nodes, edges).flatten(2))
        x = F.elu(self.layer2(x, edges).flatten(2) + x)
        return self.layer3(x, edges).mean(2)


def draw_adjacency(generator: Generator, rows: int, nodes: int = 500) -> Arrays:
    """Nodes' features, and a symmetric matrix of about ten edges a node."""
    half = generator.random((rows, nodes, nodes)) < 5 / nodes
    adjacency = (half | half.transpose(0, 2, 1)).astype(numpy.float32)
    return draw_numbers(nodes, 128, name="nodes")(generator, rows) | {"adjacency": adjacency}


class GraphConvolution(nn.Module):
    """Kipf and Welling, 2017, with the sizes of Hu et al., 2020, for papers: nodes f32 [N, V, 128] and adjacency f32
    [N, V, V] -> scores of 40 subjects, f32 [N, V, 40]."""

    def __init__(self, features: int = 128, width: int = 256, subjects: int = 40):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(features, width), nn.Linear(width, width)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(width), nn.BatchNorm1d(width)])
        self.head = nn.Linear(width, subjects)

    def forward(self, nodes: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        linked = adjacency + torch.eye(adjacency.shape[1])
        factors = linked.sum(2).rsqrt()
        links = factors[:, :, None] * linked * factors[:, None, :]
        x = nodes
        for layer, norm in zip(self.layers, self.norms):
            x = torch.relu(norm((links @ layer(x)).transpose(1, 2)).transpose(1, 2))
        return links @ self.head(x)


CATEGORIES = (2, 3, 5, 8, 12, 20, 50, 100, 200, 1000)


def draw_table(generator: Generator, rows: int) -> Arrays:
    categories = generator.integers(0, CATEGORIES, (rows, len(CATEGORIES)))
    return draw_numbers(40, name="numbers")(generator, rows) | {"categories": categories}


class FeatureTokenizer(nn.Module):
    """numbers f32 [N, 40] and categories i64 [N, 10] -> a token for each and one for the answer, f32 [N, 51, width]."""

    def __init__(self, numbers: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(numbers, width))
        self.bias = nn.Parameter(torch.randn(numbers + len(CATEGORIES), width))
        self.answer = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.words = nn.Embedding(sum(CATEGORIES), width)
        self.register_buffer("offsets", torch.tensor([sum(CATEGORIES[:n]) for n in range(len(CATEGORIES))]))

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        tokens = torch.cat([numbers[:, :, None] * self.weight, self.words(categories + self.offsets)], dim=1)
        return torch.cat([tokens + self.bias, self.answer.expand(len(numbers), -1, -1)], dim=1)


class FeatureLayer(nn.Module):
    """Attention and a gated feed-forward, norms first but for the first layer's attention."""

    def __init__(self, width: int, heads: int, first: bool):
        super().__init__()
        self.heads, hidden = heads, width * 4 // 3
        self.norm1, self.norm2 = nn.Identity() if first else nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 2 * hidden), nn.Linear(hidden, width)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: torch.Tensor, last: bool) -> torch.Tensor:
        normed = self.norm1(x)
        asking = normed
        if last:  # only the answer's token is read after this layer
            x, asking = x[:, -1:], normed[:, -1:]
        q, k, v = self.split(self.q(asking)), self.split(self.k(normed)), self.split(self.v(normed))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        value, gate = self.wide(self.norm2(x)).chunk(2, dim=2)
        return x + self.narrow(value * torch.relu(gate))


class FtTransformer(nn.Module):
    """Gorishniy et al., 2021, with the default sizes: numbers f32 [N, 40] and categories i64 [N, 10] -> 10 scores."""

    def __init__(self, width: int = 192, layers: int = 3, heads: int = 8, classes: int = 10):
        super().__init__()
        self.tokenizer = FeatureTokenizer(40, width)
        self.layers = nn.ModuleList(FeatureLayer(width, heads, n == 0) for n in range(layers))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, classes))
        for part in self.modules():
            if isinstance(part, nn.Linear):
                # The default draw would leave the answer's token nearly the same for all rows.
                nn.init.normal_(part.weight, 0, 1 / math.sqrt(part.in_features))
                nn.init.zeros_(part.bias)

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        x = self.tokenizer(numbers, categories)
        for n, layer in enumerate(self.layers):
            x = layer(x, n + 1 == len(self.layers))
        return self.head(x[:, 0])


class PatchLayer(nn.Module):
    """A transformer layer with batch norms last, which hands its scores on to the next layer."""

    def __init__(self, width: int, heads: int, hidden: int):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.norm1, self.norm2 = nn.BatchNorm1d(width), nn.BatchNorm1d(width)

    def forward(self, x: torch.Tensor, earlier: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        parts = self.qkv(x).chunk(3, dim=2)
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
        if earlier is not None:
            scores = scores + earlier
        y = (scores.softmax(3) @ v).transpose(1, 2).flatten(2)
        x = self.norm1((x + self.out(y)).transpose(1, 2)).transpose(1, 2)
        return self.norm2((x + self.mlp(x)).transpose(1, 2)).transpose(1, 2), scores


class PatchTst(nn.Module):
    """Nie et al., 2023, PatchTST/42: series f32 [N, 336, channels] -> the next 96 steps, f32 [N, 96, channels]."""

    def __init__(self, steps: int = 336, ahead: int = 96, width: int = 128, layers: int = 3, heads: int = 16):
        super().__init__()
        self.patch, self.stride = 16, 8
        # The series' end is repeated for one patch more.
        patches = (steps - self.patch) // self.stride + 2
        self.embed = nn.Linear(self.patch, width)
        self.positions = nn.Parameter(torch.empty(patches, width).uniform_(-0.02, 0.02))
        self.layers = nn.ModuleList(PatchLayer(width, heads, 2 * width) for _ in range(layers))
        self.head = nn.Linear(width * patches, ahead)

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        n, _, channels = series.shape
        mean = series.mean(1, keepdim=True)
        spread = torch.sqrt(series.var(1, keepdim=True, correction=0) + 1e-5)
        lines = F.pad(((series - mean) / spread).transpose(1, 2), (0, self.stride), mode="replicate")
        x = self.embed(lines.unfold(2, self.patch, self.stride)).flatten(0, 1) + self.positions
        scores = None
        for layer in self.layers:
            x, scores = layer(x, scores)
        answer = self.head(x.transpose(1, 2).flatten(1)).view(n, channels, -1).transpose(1, 2)
        return answer * spread + mean


def make_mlp(*widths: int) -> nn.Sequential:
    """Linear layers, each with a ReLU; weights keep the deviation of what passes through them."""
    layers: list[nn.Module] = []
    for inner, outer in zip(widths, widths[1:]):
        linear = nn.Linear(inner, outer)
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers)


class BeatsBlock(nn.Module):
    """series f32 [N, past] -> the part of it that the basis explains, and how that goes on, f32 [N, past + ahead]."""

    def __init__(self, past: int, width: int, basis: torch.Tensor):
        super().__init__()
        self.layers = make_mlp(past, width, width, width, width)
        self.past_factors = nn.Linear(width, len(basis), bias=False)
        self.ahead_factors = nn.Linear(width, len(basis), bias=False)
        for factors in (self.past_factors, self.ahead_factors):
            # A block that explained more would let the rest grow from block to block.
            nn.init.normal_(factors.weight, 0, 0.3 / math.sqrt(width * len(basis)))
        self.register_buffer("past_basis", basis[:, :past].clone())
        self.register_buffer("ahead_basis", basis[:, past:].clone())

    def forward(self, series: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.layers(series)
        return self.past_factors(x) @ self.past_basis, self.ahead_factors(x) @ self.ahead_basis


def make_polynomials(time: torch.Tensor, degree: int = 3) -> torch.Tensor:
    return torch.stack([time**power for power in range(degree + 1)])


def make_waves(time: torch.Tensor, ahead: int) -> torch.Tensor:
    """Cosines and sines of up to ahead / 2 - 1 turns over the steps ahead."""
    angles = 2 * math.pi * torch.arange(ahead // 2)[:, None] * time
    return torch.cat([angles.cos(), angles.sin()[1:]])


class NBeats(nn.Module):
    """The interpretable form of Oreshkin et al., 2020, where a stack's three blocks share their weights: series f32
    [N, 120] -> the next 24 steps, f32 [N, 24]."""

    def __init__(self, past: int = 120, ahead: int = 24):
        super().__init__()
        time = torch.arange(-past, ahead) / ahead
        self.trend = BeatsBlock(past, 256, make_polynomials(time / (past / ahead)))
        self.season = BeatsBlock(past, 2048, make_waves(time, ahead))

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        forecasts = []
        for block in (self.trend, self.trend, self.trend, self.season, self.season, self.season):
            explained, forecast = block(series)
            series = series - explained
            forecasts.append(forecast)
        return sum(forecasts)


def draw_clicks(generator: Generator, rows: int) -> Arrays:
    categories = generator.integers(0, 10000, (rows, 26))
    return draw_numbers(13, name="numbers")(generator, rows) | {"categories": categories}


class Dlrm(nn.Module):
    """Naumov et al., 2019: numbers f32 [N, 13] and categories i64 [N, 26] -> the chance of a click, f32 [N, 1]."""

    def __init__(self, words: int = 10000, width: int = 64, tables: int = 26):
        super().__init__()
        self.bottom = make_mlp(13, 512, 256, width)
        self.tables = nn.ModuleList(nn.Embedding(words, width) for _ in range(tables))
        for table in self.tables:
            nn.init.normal_(table.weight, 0, 0.4)
        rows, columns = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("pairs", rows * (tables + 1) + columns)
        self.top = nn.Sequential(make_mlp(width + len(self.pairs), 512, 256), nn.Linear(256, 1), nn.Sigmoid())

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        dense = self.bottom(numbers)
        words = [table(categories[:, n]) for n, table in enumerate(self.tables)]
        vectors = torch.stack([dense, *words], dim=1)
        products = (vectors @ vectors.transpose(1, 2)).flatten(1).index_select(1, self.pairs)
        return self.top(torch.cat([dense, products], dim=1))


def draw_visits(generator: Generator, rows: int) -> Arrays:
    """Word 0 stands for nothing: histories and tags of all lengths, filled up with it."""

    def draw_lists(lists: tuple[int, ...], longest: int, words: int) -> numpy.ndarray:
        lengths = generator.integers(1, longest + 1, (*lists, 1))
        return generator.integers(1, words, (*lists, longest)) * (numpy.arange(longest) < lengths)

    return {"history": draw_lists((rows,), 50, 50000),
            "person": generator.standard_normal((rows, 16)).astype(numpy.float32),
            "items": generator.integers(1, 50000, (rows, 100)),
            "tags": draw_lists((rows, 100), 5, 1000)}


class MeanBag(nn.Module):
    """words i64 [..., T], 0 where there is none -> the mean of their vectors, f32 [..., width]."""

    def __init__(self, words: int, width: int):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        counts = (words != 0).sum(-1, keepdim=True).clamp(min=1)
        return self.words(words).sum(-2) / counts


class TwoTower(nn.Module):
    """Retrieval after Covington et al., 2016, and Yi et al., 2019: history i64 [N, 50], person f32 [N, 16], items i64
    [N, 100] and tags i64 [N, 100, 5] -> the cosine of the person and each item, f32 [N, 100]."""

    def __init__(self, items: int = 50000, tags: int = 1000, width: int = 64):
        super().__init__()
        self.history, self.tags = MeanBag(items, width), MeanBag(tags, width)
        self.person_tower = nn.Sequential(make_mlp(width + 16, 512, 256), nn.Linear(256, 128))
        self.item_tower = nn.Sequential(make_mlp(2 * width, 512, 256), nn.Linear(256, 128))

    def forward(self, history: torch.Tensor, person: torch.Tensor, items: torch.Tensor,
                tags: torch.Tensor) -> torch.Tensor:
        asked = self.person_tower(torch.cat([self.history(history), person], dim=1))
        offered = self.item_tower(torch.cat([self.history.words(items), self.tags(tags)], dim=2))
        return (F.normalize(asked, dim=1)[:, None] * F.normalize(offered, dim=2)).sum(2)


class VideoBlock(nn.Module):
    """Two 3x3x3 convolutions and a shortcut."""

    def __init__(self, inner: int, outer: int, stride: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm3d(outer), nn.ReLU(),
            nn.Conv3d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm3d(outer))
        self.shortcut = nn.Identity()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv3d(inner, outer, 1, stride, bias=False), nn.BatchNorm3d(outer))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layers(x) + self.shortcut(x))


class R3d18(nn.Module):
    """Tran et al., 2018: clips f32 [N, 3, frames, 112, 112] -> scores of 400 actions."""

    def __init__(self, actions: int = 400):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv3d(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False), nn.BatchNorm3d(64),
                                  nn.ReLU())
        shapes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2),
                  (512, 512, 1)]
        self.blocks = nn.Sequential(*(VideoBlock(*shape) for shape in shapes))
        self.actions = nn.Linear(512, actions)

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return self.actions(self.blocks(self.stem(clips)).mean((2, 3, 4)))


def make_point_layers(*widths: int) -> nn.Sequential:
    """The same layers for each point of f32 [N, channels, points]."""
    steps = zip(widths, widths[1:])
    return nn.Sequential(*(layer for inner, outer in steps
                           for layer in (nn.Conv1d(inner, outer, 1), nn.BatchNorm1d(outer), nn.ReLU())))


def make_cloud_layers(*widths: int) -> nn.Sequential:
    steps = zip(widths, widths[1:])
    return nn.Sequential(*(layer for inner, outer in steps
                           for layer in (nn.Linear(inner, outer), nn.BatchNorm1d(outer), nn.ReLU())))


class PointTransform(nn.Module):
    """points f32 [N, width, points] -> the same, times a matrix that depends on them all."""

    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.points = make_point_layers(width, 64, 128, 1024)
        factors = nn.Linear(256, width * width)
        # Training starts from the unit matrix and keeps near to a rotation.
        nn.init.normal_(factors.weight, 0, 0.1 / math.sqrt(256 * width))
        nn.init.zeros_(factors.bias)
        self.cloud = nn.Sequential(make_cloud_layers(1024, 512, 256), factors)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        matrix = self.cloud(self.points(points).amax(2)).unflatten(1, (self.width, self.width)) + torch.eye(self.width)
        return matrix @ points


class PointNet(nn.Module):
    """Qi et al., 2017: points f32 [N, 3, 1024] -> scores of 40 classes."""

    def __init__(self, classes: int = 40):
        super().__init__()
        self.points = nn.Sequential(PointTransform(3), make_point_layers(3, 64, 64), PointTransform(64),
                                    make_point_layers(64, 64, 128, 1024))
        self.classes = nn.Sequential(make_cloud_layers(1024, 512, 256), nn.Linear(256, classes))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.classes(self.points(points).amax(2))


def draw_clouds(generator: Generator, rows: int) -> Arrays:
    """Four ellipsoids of any lengths, directions and places, in the unit ball."""
    points = generator.standard_normal((rows, 4, 3, 256))
    points /= numpy.linalg.norm(points, axis=2, keepdims=True)
    points *= generator.uniform(0.02, 0.6, (rows, 4, 3, 1))
    turns, _ = numpy.linalg.qr(generator.standard_normal((rows, 4, 3, 3)))
    points = turns @ points + generator.uniform(-1, 1, (rows, 4, 3, 1))
    points = points.transpose(0, 2, 1, 3).reshape(rows, 3, 1024)
    points /= numpy.linalg.norm(points, axis=1).max(axis=1)[:, None, None]
    return {"points": points.astype(numpy.float32)}


MODELS = [
    FieldModel("graph_attention", "Graph attention, 300 nodes", "graph labeller", "graph_attention", GraphAttention,
               draw_edges),
    FieldModel("graph_convolution", "Graph convolution, 500 nodes", "graph labeller", "graph_convolution",
               GraphConvolution, draw_adjacency),
    FieldModel("ft_transformer", "FT-Transformer, 50 features", "table classifier", "ft_transformer", FtTransformer,
               draw_table, attention=(8, 192)),
    FieldModel("patch_tst", "PatchTST/42, 7 series", "forecaster", "patch_tst", PatchTst,
               draw_numbers(336, 7, name="series")),
    FieldModel("n_beats", "N-BEATS interpretable, 120 steps", "forecaster", "n_beats", NBeats,
               draw_numbers(120, name="series")),
    FieldModel("dlrm", "DLRM, 26 tables", "recommender", "dlrm", Dlrm, draw_clicks),
    FieldModel("two_tower", "Two towers, 100 items", "recommender", "two_tower", TwoTower, draw_visits),
    FieldModel("r3d_18", "3-d ResNet-18, 8 frames", "video classifier", "resnet3d", R3d18,
               draw_numbers(3, 8, 112, 112, name="clips")),
    FieldModel("pointnet", "PointNet, 1,024 points", "point classifier", "pointnet", PointNet, draw_clouds),
]
