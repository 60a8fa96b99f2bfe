"""A small GPT over bytes: trained on the text of a Debian package, exported to .pt2 with its calibration data.

    language_model.py TEXTS FOLDER [--seconds 240]

TEXTS is a folder of HTML files, /usr/share/doc/anarchism/html say, whose tags are left out. The last tenth of the text is
held out: perplexity.py judges models by it. FOLDER receives language.pt2, calibration.npz and held_out.npz.
"""

from __future__ import annotations

import argparse
import html.parser
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

LAYERS, WIDTH, HEADS, CONTEXT = 6, 384, 6, 128
BATCH, PEAK_RATE = 24, 1e-3


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.queries(self.norm1(x)).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.wide(self.norm2(x))))


class LanguageModel(nn.Module):
    """bytes i64 [N, CONTEXT] -> scores f32 [N, CONTEXT, 256] of the byte that follows each."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes, self.positions = nn.Embedding(256, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.scores = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                scale = 0.02 / math.sqrt(2 * LAYERS) if name.endswith(("out.weight", "narrow.weight")) else 0.02
                nn.init.normal_(parameter, std=scale)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.bytes(words) + self.positions(torch.arange(words.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))


class Text(html.parser.HTMLParser):
    """Collects what lies between tags."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def read_texts(folder: Path) -> np.ndarray:
    """The bytes of all files, one after the other, with runs of white space as one blank."""
    texts = []
    for path in sorted(folder.glob("*.html")):
        text = Text()
        text.feed(path.read_text(encoding="utf-8", errors="replace"))
        texts.append(" ".join("".join(text.parts).split()))
    data = "\n".join(texts).encode()
    if len(data) < 1_000_000:
        raise SystemExit(f"error: {folder} holds {len(data)} bytes of text in *.html; a million are needed")
    return np.frombuffer(data, np.uint8)


def cut_windows(text: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Windows of CONTEXT + 1 bytes from anywhere."""
    starts = np.random.default_rng(seed).integers(0, len(text) - CONTEXT - 1, count)
    return text[starts[:, None] + np.arange(CONTEXT + 1)].astype(np.int64)


def find_loss(model: nn.Module, windows: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(windows[:, :-1]).flatten(0, 1).float(), windows[:, 1:].flatten())


def train(model: nn.Module, text: np.ndarray, seconds: float) -> None:
    """Until the time is up; the rate follows a cosine over it."""
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    start, step, losses = time.monotonic(), 0, []
    while (spent := (time.monotonic() - start) / seconds) < 1:
        warm = min(1.0, (step + 1) / 50)
        for group in optimizer.param_groups:
            group["lr"] = PEAK_RATE * warm * (0.05 + 0.95 * (1 + math.cos(math.pi * spent)) / 2)
        with torch.autocast("cpu", torch.bfloat16):
            loss = find_loss(model, torch.from_numpy(cut_windows(text, BATCH, step)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        step += 1
        if step % 50 == 0:
            print(f"step {step}: perplexity of a byte {math.exp(sum(losses[-50:]) / 50):.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=240)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    text = read_texts(options.texts)
    kept = len(text) * 9 // 10
    model = LanguageModel()
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters, {kept / 1e6:.1f} MB of text")
    train(model, text[:kept], options.seconds)
    batch = torch.export.Dim("batch", min=1)
    windows = torch.from_numpy(cut_windows(text[:kept], 2, 1))
    exported = torch.export.export(model.eval(), (windows[:, :-1],), dynamic_shapes={"words": {0: batch}})
    torch.export.save(exported, options.folder / "language.pt2")
    np.savez(options.folder / "calibration.npz", words=cut_windows(text[:kept], 256, 2)[:, :-1])
    rest = text[kept:]
    count = min(1000, len(rest) // (CONTEXT + 1))
    np.savez(options.folder / "held_out.npz", windows=rest[: count * (CONTEXT + 1)].reshape(count, -1).astype(np.int64))


if __name__ == "__main__":
    main()
