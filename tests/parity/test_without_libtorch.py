"""The models that people deploy, prepared, run in a process that never maps libtorch, at every size that the case has,
and give PyTorch's numbers."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_parity import cases  # noqa: F401

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "lissome"
MODELS = [
    "dynamic_mlp",
    "lstm_tagger",
    "minilm",
    "vit",
    "vit_transformers",
    "resnet18",
    "unet",
    "unet_dynamic",
    "gpt2_cache",
    "decoding_step",
]


def run(*words: object) -> set[str]:
    """The libraries that the loader brought in, by its own record."""
    environment = {**os.environ, "LD_DEBUG": "libs"}
    done = subprocess.run([PROGRAM, *map(str, words)], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return set(re.findall(r"calling init: (\S+)", done.stderr))


@pytest.mark.parametrize("name", MODELS)
def test_a_prepared_model_needs_no_libtorch(cases: Path, tmp_path: Path, name: str) -> None:  # noqa: F811
    case = json.loads((cases / name / "case.json").read_text())
    prepared = tmp_path / "prepared.lissome"
    run("prepare", cases / name / "model.pt2", "-o", prepared)
    for k in range(len(case["runs"])):
        # In order: names of the graph are not always those of the call.
        with np.load(cases / name / f"input_{k}.npz") as given:
            np.savez(tmp_path / "x.npz", *(given[row["name"]] for row in case["inputs"]))
        loaded = run("run", prepared, "--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz")
        assert any(library.endswith("liblissome_runtime.so") for library in loaded)
        assert [library for library in loaded if re.search("torch|c10|gomp", library)] == []
        with np.load(tmp_path / "y.npz") as seen, np.load(cases / name / f"expected_{k}.npz") as expected:
            assert len(seen.files) == len(expected.files)
            for ours, theirs in zip(seen.files, expected.files, strict=True):
                left, right = seen[ours], expected[theirs]
                assert left.dtype == right.dtype and left.shape == right.shape
                assert np.abs(left - right).max() <= 1e-5 * np.abs(right).max()
