"""Networks for text: encoders, decoders with and without a cache, an encoder with a decoder, and a state-space model.

Encoders and T5 are built by `transformers` from the published sizes, with drawn weights; the others are defined here.
"""

from collections.abc import Callable

import numpy
import torch
import torch.nn.functional as F
import transformers
from torch import nn

from field.families.vision_attention import draw_zeros
from field.model import Arrays, FieldModel, Generator, draw_tokens

WORDS = 32000
Pair = tuple[torch.Tensor, torch.Tensor]
Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class MaskedLogits(nn.Module):
    """A network of `transformers`: input_ids, attention_mask i64 [N, T] -> its logits."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.network(input_ids, attention_mask=attention_mask).logits


class SentenceEmbedding(nn.Module):
    """input_ids, attention_mask i64 [N, T] -> the mean over the tokens that count, of length 1: f32 [N, width]."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.network(input_ids, attention_mask=attention_mask).last_hidden_state
        counts = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return F.normalize((hidden * counts).sum(1) / counts.sum(1), dim=-1)


class Translator(nn.Module):
    """input_ids i64 [N, S], decoder_input_ids i64 [N, T] -> logits f32 [N, T, words]."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, input_ids: torch.Tensor, decoder_input_ids: torch.Tensor) -> torch.Tensor:
        return self.network(input_ids, decoder_input_ids=decoder_input_ids, use_cache=False).logits


class RmsNorm(nn.Module):
    def __init__(self, width: int, epsilon: float = 1e-5):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon))


class SwiGlu(nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """Mixtral's layer of experts: each token's two best are added by the softmax of their scores. Every expert sees
    every token, so that no shape depends on the choice; the others' answers count nothing."""

    def __init__(self, width: int, hidden: int, experts: int, chosen: int = 2):
        super().__init__()
        self.router, self.chosen = nn.Linear(width, experts, bias=False), chosen
        self.experts = nn.ModuleList(SwiGlu(width, hidden) for _ in range(experts))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.router(x)
        best, which = torch.topk(scores, self.chosen, dim=-1)
        shares = torch.zeros_like(scores).scatter(-1, which, torch.softmax(best, dim=-1).to(scores.dtype))
        return sum(shares[..., n : n + 1] * expert(x) for n, expert in enumerate(self.experts))


def rotate(x: torch.Tensor, turns: Pair) -> torch.Tensor:
    cosines, sines = turns
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat([-second, first], dim=-1) * sines


class GroupedAttention(nn.Module):
    """x [N, T, width], and keys and values of earlier tokens if there are any -> the same, and the new keys and values,
    [N, groups, T, size]. Several heads share the keys and values of their group."""

    def __init__(self, width: int, heads: int, groups: int):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, groups * self.size, bias=False)
        self.value = nn.Linear(width, groups * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (-1, self.size)).transpose(1, 2)

    def spread(self, x: torch.Tensor) -> torch.Tensor:
        repeated = x.unsqueeze(2).expand(-1, -1, self.heads // self.groups, -1, -1)
        return repeated.flatten(1, 2)

    def forward(self, x: torch.Tensor, turns: Pair, past: Pair | None) -> Triple:
        query, new_keys = rotate(self.split(self.query(x)), turns), rotate(self.split(self.key(x)), turns)
        new_values = self.split(self.value(x))
        keys, values = new_keys, new_values
        if past is not None:
            keys, values = torch.cat([past[0], keys], dim=2), torch.cat([past[1], values], dim=2)
        seen = F.scaled_dot_product_attention(query, self.spread(keys), self.spread(values), is_causal=past is None)
        return self.out(seen.transpose(1, 2).flatten(2)), new_keys, new_values


class DecoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, groups: int, mlp: nn.Module):
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.attention, self.mlp = GroupedAttention(width, heads, groups), mlp

    def forward(self, x: torch.Tensor, turns: Pair, past: Pair | None) -> Triple:
        seen, keys, values = self.attention(self.norm1(x), turns, past)
        x = x + seen
        return x + self.mlp(self.norm2(x)), keys, values


class Decoder(nn.Module):
    """input_ids i64 [N, T], and the keys and values of P earlier tokens, each f32 [N, layers, groups, P, size], if
    there are any -> logits of the last token f32 [N, words], and the new tokens' keys and values.

    With a `SwiGlu` in each layer it is LLaMA (Touvron et al., 2023) with grouped-query attention (Ainslie et al.,
    2023), with `Experts` it is Mixtral (Jiang et al., 2024). One new token follows the earlier ones; without them,
    there may be any number.
    """

    def __init__(self, width: int, heads: int, groups: int, mlps: list[nn.Module], base: float = 10000):
        super().__init__()
        size = width // heads
        self.embed, self.head = nn.Embedding(WORDS, width), nn.Linear(width, WORDS, bias=False)
        self.layers = nn.ModuleList(DecoderLayer(width, heads, groups, mlp) for mlp in mlps)
        self.norm = RmsNorm(width)
        self.register_buffer("frequencies", base ** (-torch.arange(0, size, 2) / size), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)

    def turns_from(self, first: int, tokens: int) -> Pair:
        angles = torch.arange(first, first + tokens).unsqueeze(-1) * self.frequencies
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos(), angles.sin()

    def forward(self, input_ids: torch.Tensor, keys: torch.Tensor | None = None,
                values: torch.Tensor | None = None) -> Triple:
        turns = self.turns_from(0 if keys is None else keys.shape[3], input_ids.shape[1])
        x, new_keys, new_values = self.embed(input_ids), [], []
        for n, layer in enumerate(self.layers):
            past = None if keys is None or values is None else (keys[:, n], values[:, n])
            x, key, value = layer(x, turns, past)
            new_keys.append(key)
            new_values.append(value)
        return self.head(self.norm(x[:, -1])), torch.stack(new_keys, 1), torch.stack(new_values, 1)


class LastLogits(nn.Module):
    """A decoder whose keys and values nobody wants: input_ids i64 [N, T] -> logits of the last token f32 [N, words]."""

    def __init__(self, decoder: nn.Module):
        super().__init__()
        self.decoder = decoder

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.decoder(input_ids)[0]


class MambaLayer(nn.Module):
    """x [N, T, width] -> the same. The scan goes token by token."""

    def __init__(self, width: int, state: int = 16, kernel: int = 4):
        super().__init__()
        inner, self.rank, self.state = 2 * width, width // 16, state
        self.norm = RmsNorm(width)
        self.expand = nn.Linear(width, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, kernel, groups=inner, padding=kernel - 1)
        self.select = nn.Linear(inner, self.rank + 2 * state, bias=False)
        self.pace = nn.Linear(self.rank, inner)
        self.log_decay = nn.Parameter(torch.log(torch.arange(1.0, state + 1)).repeat(inner, 1))
        self.skip = nn.Parameter(torch.ones(inner))
        self.out = nn.Linear(inner, width, bias=False)
        # The steps start out between 0.001 and 0.1, as the paper has them: the bias is what softplus makes them of.
        steps = torch.exp(torch.empty(inner).uniform_(-6.9, -2.3))
        self.pace.bias.data.copy_(torch.log(torch.expm1(steps)))

    def scan(self, x: torch.Tensor) -> torch.Tensor:
        steps, inputs, outputs = self.select(x).split([self.rank, self.state, self.state], dim=-1)
        steps = F.softplus(self.pace(steps))
        decays = torch.exp(steps.unsqueeze(-1) * -torch.exp(self.log_decay))
        added = (steps * x).unsqueeze(-1) * inputs.unsqueeze(2)
        states, answers = added[:, 0], []
        for token in range(x.shape[1]):
            if token > 0:
                states = decays[:, token] * states + added[:, token]
            answers.append(torch.matmul(states, outputs[:, token].unsqueeze(-1)).squeeze(-1))
        return torch.stack(answers, dim=1) + self.skip * x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner, gate = self.expand(self.norm(x)).chunk(2, dim=-1)
        inner = F.silu(self.conv(inner.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        return x + self.out(self.scan(inner) * F.silu(gate))


class Mamba(nn.Module):
    """Mamba-130M (Gu and Dao, 2023) with 6 of its 24 layers: input_ids i64 [N, T] -> logits of the last token f32
    [N, 50280]. The logits' weights are the embedding's."""

    def __init__(self, words: int = 50280, width: int = 768, layers: int = 6):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.Sequential(*(MambaLayer(width) for _ in range(layers)))
        self.norm = RmsNorm(width)
        nn.init.normal_(self.embed.weight, 0, 0.02)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return F.linear(self.norm(self.layers(self.embed(input_ids))[:, -1]), self.embed.weight)


def build_distilbert() -> nn.Module:
    """DistilBERT (Sanh et al., 2019), whose sizes are the defaults, with the 28 feelings of GoEmotions for classes."""
    config = transformers.DistilBertConfig(num_labels=28)
    return MaskedLogits(draw_zeros(transformers.DistilBertForSequenceClassification(config)))


def build_deberta_v3_small() -> nn.Module:
    """DeBERTa-v3 small (He et al., 2021), with a label for each token."""
    config = transformers.DebertaV2Config(
        hidden_size=768, num_hidden_layers=6, num_attention_heads=12, intermediate_size=3072, position_buckets=256,
        relative_attention=True, pos_att_type=["p2c", "c2p"], share_att_key=True, norm_rel_ebd="layer_norm",
        position_biased_input=False, num_labels=17,
    )
    return MaskedLogits(draw_zeros(transformers.DebertaV2ForTokenClassification(config)))


def build_mpnet() -> nn.Module:
    """MPNet (Song et al., 2020), whose sizes are the defaults, for the meaning of sentences."""
    config = transformers.MPNetConfig()
    return SentenceEmbedding(draw_zeros(transformers.MPNetModel(config, add_pooling_layer=False)))


def build_llama() -> nn.Module:
    return Decoder(768, 12, 4, [SwiGlu(768, 2048) for _ in range(12)])


def build_mixture() -> nn.Module:
    return LastLogits(Decoder(512, 8, 4, [Experts(512, 1792, 8) for _ in range(4)]))


def build_t5_small() -> nn.Module:
    """T5-small (Raffel et al., 2019), whose sizes are the defaults."""
    return Translator(transformers.T5ForConditionalGeneration(transformers.T5Config()))


def draw_masked(tokens: int, words: int) -> Callable[[Generator, int], Arrays]:
    """input_ids and attention_mask i64 [rows, tokens]: each row has between half and all of the tokens."""

    def draw(generator: Generator, rows: int) -> Arrays:
        lengths = generator.integers(tokens // 2, tokens + 1, (rows, 1))
        mask = (numpy.arange(tokens) < lengths).astype(numpy.int64)
        return {**draw_tokens(tokens, words)(generator, rows), "attention_mask": mask}

    return draw


def draw_step(layers: int, groups: int, past: int, size: int) -> Callable[[Generator, int], Arrays]:
    """The newest token, and normal keys and values of the `past` before it."""

    def draw(generator: Generator, rows: int) -> Arrays:
        caches = generator.standard_normal((2, rows, layers, groups, past, size)).astype(numpy.float32)
        return {**draw_tokens(1, WORDS)(generator, rows), "keys": caches[0], "values": caches[1]}

    return draw


def draw_translation(source: int, target: int, words: int) -> Callable[[Generator, int], Arrays]:
    first, second = draw_tokens(source, words), draw_tokens(target, words, "decoder_input_ids")
    return lambda generator, rows: first(generator, rows) | second(generator, rows)


MODELS = [
    FieldModel("distilbert", "DistilBERT, up to 128 tokens", "text classifier", "bert", build_distilbert,
               draw_masked(128, 30522), (12, 768), dynamic=("input_ids:1", "attention_mask:1")),
    FieldModel("deberta_v3_small", "DeBERTa-v3 small, up to 64 tokens", "token classifier", "deberta",
               build_deberta_v3_small, draw_masked(64, 128100), (12, 768)),
    FieldModel("mpnet", "MPNet, up to 64 tokens", "sentence embedding", "mpnet", build_mpnet,
               draw_masked(64, 30527), (12, 768)),
    FieldModel("llama_prefill", "LLaMA-like, 64 tokens at once", "language model", "llama", build_llama,
               draw_tokens(64, WORDS), (12, 768), dynamic=("input_ids:1",)),
    FieldModel("llama_decode", "LLaMA-like step, cache of 256", "language model", "llama", build_llama,
               draw_step(12, 4, 256, 64), (12, 768)),
    FieldModel("t5_small", "T5-small, 64 tokens to 8", "translation", "t5", build_t5_small,
               draw_translation(64, 8, 32128), (8, 512)),
    FieldModel("mamba_130m", "Mamba-130M, 6 layers, 64 tokens", "language model", "mamba", Mamba,
               draw_tokens(64, 50280)),
    FieldModel("mixture_of_experts", "Mixtral-like, 8 experts, 64 tokens", "language model", "mixtral", build_mixture,
               draw_tokens(64, WORDS), (8, 512)),
]
