"""Exports MiniLM to minilm.pt2 and turns sentences.txt into the arrays that the demo and the benchmark use.

    python examples/sentences/export_minilm.py OUT_FOLDER

Every second sentence is for optimizing, the others are never shown to it:
  sentences.npz          192 rows of 128 tokens, no padding: the data of `lissome optimize`
  held_out.npz           224 rows of 128 tokens from the other sentences
  row.npz                the first of those rows
  sentences_natural.npz  all sentences, one a row, padded, with their mask
  reference.npz          PyTorch's embeddings of the three: `sentences`, `held_out`, `natural`
The same sentences give the same arrays.
"""

import pathlib
import random
import sys

import numpy
import torch

from sentence_encoder import SentenceEncoder, load_encoder, load_tokenizer

ROW_TOKENS = 128
OPTIMIZE_ROWS = 192
HELD_OUT_ROWS = 224


def pack_rows(token_lists: list[list[int]], rows: int, first: int, last: int, seed: int) -> dict[str, numpy.ndarray]:
    """`rows` distinct rows `first` t t ... t `last` of exactly ROW_TOKENS: the sentences one behind the other, in
    their own order at first, then in shuffled orders for as long as rows are missing."""
    generator = random.Random(seed)
    order = list(token_lists)
    body = ROW_TOKENS - 2
    packed: list[list[int]] = []
    while len(packed) < rows:
        stream = [token for sentence in order for token in sentence]
        packed += [[first, *stream[start : start + body], last] for start in range(0, len(stream) - body + 1, body)]
        generator.shuffle(order)
    input_ids = numpy.array(packed[:rows], dtype=numpy.int64)
    if len(numpy.unique(input_ids, axis=0)) != rows:
        raise SystemExit("Two packed rows are equal: sentences.txt is too short.")
    return {"input_ids": input_ids, "attention_mask": numpy.ones_like(input_ids)}


def pad_rows(token_lists: list[list[int]], first: int, last: int) -> dict[str, numpy.ndarray]:
    longest = max(map(len, token_lists)) + 2
    input_ids = numpy.zeros((len(token_lists), longest), dtype=numpy.int64)
    attention_mask = numpy.zeros_like(input_ids)
    for row, tokens in enumerate(token_lists):
        input_ids[row, : len(tokens) + 2] = [first, *tokens, last]
        attention_mask[row, : len(tokens) + 2] = 1
    return {"input_ids": input_ids, "attention_mask": attention_mask}


def embed_rows(encoder: SentenceEncoder, arrays: dict[str, numpy.ndarray]) -> numpy.ndarray:
    chunks = []
    with torch.inference_mode():
        for start in range(0, len(arrays["input_ids"]), 32):
            ids, mask = (torch.from_numpy(arrays[name][start : start + 32]) for name in ("input_ids", "attention_mask"))
            chunks.append(encoder(ids, mask).numpy())
    return numpy.concatenate(chunks)


def export_encoder(encoder: SentenceEncoder, path: pathlib.Path) -> None:
    example = torch.randint(1000, 20000, (2, 16)), torch.ones(2, 16, dtype=torch.int64)
    sizes = {0: torch.export.Dim("batch", min=1, max=1024), 1: torch.export.Dim("tokens", min=2, max=512)}
    with torch.no_grad():
        exported = torch.export.export(encoder, example, dynamic_shapes={"input_ids": sizes, "attention_mask": sizes})
    torch.export.save(exported, path)


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("usage: export_minilm.py OUT_FOLDER")
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    encoder, tokenizer = load_encoder(), load_tokenizer()
    export_encoder(encoder, out / "minilm.pt2")

    text = (pathlib.Path(__file__).parent / "sentences.txt").read_text(encoding="utf-8")
    token_lists = [encoding.ids for encoding in tokenizer.encode_batch(text.splitlines(), add_special_tokens=False)]
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    data = {
        "sentences": pack_rows(token_lists[0::2], OPTIMIZE_ROWS, first, last, seed=1),
        "held_out": pack_rows(token_lists[1::2], HELD_OUT_ROWS, first, last, seed=2),
        "natural": pad_rows(token_lists, first, last),
    }
    numpy.savez(out / "sentences.npz", **data["sentences"])
    numpy.savez(out / "held_out.npz", **data["held_out"])
    numpy.savez(out / "row.npz", **{name: array[:1] for name, array in data["held_out"].items()})
    numpy.savez(out / "sentences_natural.npz", **data["natural"])
    numpy.savez(out / "reference.npz", **{name: embed_rows(encoder, arrays) for name, arrays in data.items()})
    for name, arrays in data.items():
        rows, tokens = arrays["input_ids"].shape
        print(f"{name}: {rows} rows of {tokens} tokens")


if __name__ == "__main__":
    main()
