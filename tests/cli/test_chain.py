"""export -> train -> optimize -> bench -> run, unedited, for models of the parity set: whatever batch an export left.

`make test` takes every fourth model; LISSOME_CHAIN=all takes all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Lissome = Callable[..., Any]

PARITY = Path(__file__).parents[1] / "parity"
MODELS = (
    "resnet_small resnet_small_train mobilenet_v2 mobilenet_v3_train unet convnext mlp_mixer vit vit_transformers "
    "swin_transformers albert state_space bert distilbert gpt2_by_hand qwen3 gpt_neox minilm whisper_encoder llama_static"
).split()


@pytest.mark.parametrize("name", MODELS if os.environ.get("LISSOME_CHAIN") == "all" else MODELS[2::4])
def test_the_chain_runs_unedited(lissome: Lissome, read_json: Lissome, tmp_path: Path, name: str):
    subprocess.run([sys.executable, PARITY / "write_chain_case.py", name, tmp_path], check=True, capture_output=True)

    def succeed(*words: object) -> None:
        done = lissome(*words)
        assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}"

    data = ("--data", "data.npz", "--labels", "wanted")
    succeed("train", "model.pt2", *data, "--loss", "mse", "--epochs", "1", "--lr", "1e-5", "-o", "trained.lissome")
    words = ("--metric", "rel_error", "--time", "3s", "--threads", "1", "-o", "fast.lissome")
    record = read_json("optimize", "trained.lissome", *data, *words)
    assert any(step["accepted"] for step in record["steps"]), record["steps"]
    for model in ("model.pt2", "trained.lissome", "fast.lissome"):
        succeed("bench", model, "--runs", "3")
        succeed("profile", model, "--runs", "3")
    succeed("run", "trained.lissome", "--input", "one.npz", "--output", "trained.npz")
    succeed("run", "fast.lissome", "--input", "one.npz", "--output", "fast.npz")
    with np.load(tmp_path / "trained.npz") as before, np.load(tmp_path / "fast.npz") as after:
        for key in before.files:
            difference = np.linalg.norm(after[key] - before[key]) / max(np.linalg.norm(before[key]), 1e-6)
            assert difference < 0.05, f"{key}: {difference}"
