"""lissome audit: what every node ran on, and an exit code when that is not what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

Lissome = Callable[..., Any]


def test_a_prepared_model_runs_on_own_kernels(read_json: Lissome, prepared: Path):
    result = read_json("audit", prepared, "--expect", "fallback=none,dtype=f32,device=cpu")
    assert result["as_expected"] and result["not_as_expected"] == []
    nodes = result.tables["Nodes"]
    assert {node["kernel"] for node in nodes} >= {"linear_f32"}
    assert all(node["device"] == "cpu" and node["kernel"] != "reference" for node in nodes)


def test_a_fallback_is_not_hidden(lissome: Lissome, models: SimpleNamespace):
    done = lissome("audit", models.classifier, "--expect", "fallback=none")
    assert done.returncode == 3
    assert "not as expected: fallback=none" in done.stdout and "ran through libtorch" in done.stdout


def test_another_dtype_and_isa_are_named(lissome: Lissome, prepared: Path):
    done = lissome("audit", prepared, "--isa", "avx2", "--expect", "dtype=int8,isa=avx512")
    assert done.returncode == 3
    assert "dtype=int8" in done.stdout and "multiplied f32" in done.stdout and "ran on avx2" in done.stdout


def has_vnni() -> bool:
    return re.search(r"\bavx(512)?_vnni\b", Path("/proc/cpuinfo").read_text()) is not None


def test_layers_that_quantize_the_floats_they_read_are_int8(lissome: Lissome, read_json: Lissome, tmp_path: Path):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 1024)).eval()
    samples = torch.randn(64, 1024)
    torch.export.save(torch.export.export(net, (samples[:1],)), tmp_path / "net.pt2")
    np.savez(tmp_path / "x.npz", input=samples.numpy())
    words = ("--data", "x.npz", "--precision", "int8", "--max-loss", "5%", "--threads", "1", "-o", "int8.lissome")
    record = read_json("optimize", "net.pt2", *words)
    if not any("int8" in step["name"] and step["accepted"] for step in record["steps"]):
        # Without VNNI int8 pays where weights come from memory, and not where they fit into the processor's cache.
        assert not has_vnni(), record["steps"]
        assert read_json("audit", "int8.lissome", "--expect", "dtype=f32,fallback=none")["as_expected"]
        return
    result = read_json("audit", "int8.lissome", "--expect", "dtype=int8,fallback=none")
    assert result["as_expected"] and result["not_as_expected"] == []
    done = lissome("audit", "int8.lissome", "--expect", "dtype=f32")
    assert done.returncode == 3 and "multiplied int8" in done.stdout


@pytest.mark.parametrize("expect", ["speed=fast", "dtype=int4", "fallback", "dtype=f32,dtype=f32"])
def test_unknown_expectations(lissome: Lissome, prepared: Path, expect: str):
    done = lissome("audit", prepared, "--expect", expect)
    assert done.returncode == 2 and done.stderr.startswith("error usage: --expect") and done.stdout == ""


class Moves(torch.nn.Module):
    """Rows that are turned into columns and back, uncomputed, around a product of no weight."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turned = x.transpose(1, 2).reshape(512, 2, 512)
        return torch.cat([turned, turned.flip(0)]).transpose(0, 1).contiguous()


def test_nodes_that_only_move_data_lose_their_time(
    lissome: Lissome, read_json: Lissome, prepared: Path, tmp_path: Path
):
    torch.export.save(torch.export.export(Moves().eval(), (torch.randn(2, 512, 512),)), tmp_path / "m.pt2")
    read_json("prepare", "m.pt2", "-o", "moves.lissome")
    rows = read_json("audit", "moves.lissome", "--slow").tables["Slow"]
    assert len(rows) >= 2 and {row["reason"] for row in rows} <= {
        "moves data and computes nothing", "runs through libtorch", "below half of what memory allows",
    }
    lost = [row["lost"] for row in rows]
    assert lost == sorted(lost, reverse=True) and 0.5 < sum(lost) <= 1
    text = lissome("audit", "moves.lissome", "--slow").stdout
    assert "moves data" in text and "lost" in text
    assert "Slow" not in read_json("audit", prepared).tables
