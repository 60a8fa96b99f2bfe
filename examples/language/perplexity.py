"""How well models guess each next byte of the text that their training did not see.

    perplexity.py held_out.npz MODEL [MODEL ...]

Models are .lissome files of the language model; the others' rows say by how much they are worse than the first.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "build" / "python"))
import lissome


def find_loss(path: str, windows: np.ndarray) -> float:
    """The mean cross-entropy in nats, one sample at a time."""
    model, total = lissome.load(path), 0.0
    for window in windows:
        scores = np.asarray(model(window[None, :-1]))[0].astype(np.float64)
        largest = scores.max(-1)
        total += float(np.mean(np.log(np.exp(scores - largest[:, None]).sum(-1)) + largest - scores[np.arange(len(scores)), window[1:]]))
    return total / len(windows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("held_out")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    with np.load(options.held_out) as arrays:
        windows = arrays["windows"]
    first = None
    for path in options.models:
        perplexity = math.exp(find_loss(path, windows))
        first = first or perplexity
        size = Path(path).stat().st_size / 2**20
        print(f"{path}: perplexity {perplexity:.4f}, {(perplexity / first - 1) * 100:+.2f} %, {size:.1f} MiB")


if __name__ == "__main__":
    main()
