"""lissome bench, profile and inspect: what they print is complete and fits together."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from answer import Answer, read_answer

Lissome = Callable[..., Any]


def test_bench(read_json: Lissome, models: SimpleNamespace, prepared: Path):
    result = read_json("bench", models.classifier, prepared, "--runs", "40", "--threads", "1", "--batch", "4")
    original, fast = result.tables["Models"]
    assert result["threads"] == 1 and result["interleaved_rounds"] == 40 and result["confidence"] == 0.95 and result["machine"]
    for row in (original, fast):
        assert 0 < row["p5"] <= row["median"] <= row["p95"] and row["p5"] <= row["mean"] and row["std"] >= 0
        assert row["from"] <= row["speed"] <= row["to"]
        assert row["per second"] == pytest.approx(4 / row["median"])
        # 64 * 256 + 256 * 10 weights of f32, and what a process needs.
        assert row["allocators"] >= 4 * (64 * 256 + 256 * 10)
        assert row["resident"] > row["allocators"] and row["load"] > 0 and row["first call"] > 0
    assert original["speed"] == 1
    assert Path(original["model"]).name == "classifier.pt2" and Path(fast["model"]).name == "prepared.lissome"


def test_bench_in_words(succeed: Lissome, models: SimpleNamespace):
    text = succeed("bench", models.towers, models.towers, "--runs", "10")
    assert text.count("towers.pt2") >= 2 and "median" in text
    assert "/" not in text and all(len(line) <= 120 for line in text.splitlines())


def test_bench_takes_inputs(succeed: Lissome, models: SimpleNamespace):
    assert "classifier" in succeed("bench", models.classifier, "--input", models.one, "--runs", "10")


def profile(read_json: Lissome, model: Path, *flags: object) -> Answer:
    return read_json("profile", model, "--batch", "8", "--runs", "60", "--threads", "1", *flags)


@pytest.mark.parametrize("name", ["classifier", "towers", "pictures", "prepared"])
def test_profile_adds_up(read_json: Lissome, models: SimpleNamespace, prepared: Path, name: str):
    result = profile(read_json, prepared if name == "prepared" else getattr(models, name))
    nodes = result.tables["Nodes"]
    assert sum(node["time"] for node in nodes) == pytest.approx(result["sum_of_nodes"])
    assert sum(node["share"] for node in nodes) == pytest.approx(1)
    # The call while each node is timed is the whole of which the nodes are the parts.
    assert result["sum_of_nodes"] == pytest.approx(result["while_timed"], rel=0.05)
    assert all(node["kernel"] and node["time"] >= 0 for node in nodes)
    # Next to nothing is spent outside of the nodes of a model with work to do.
    outside = next(node for node in nodes if node["node"] == "(outside)")
    if name == "pictures":
        assert outside["share"] < 0.25


def test_profile_speaks_in_the_users_words(read_json: Lissome, succeed: Lissome, models: SimpleNamespace):
    nodes = profile(read_json, models.pictures).tables["Nodes"]
    convolution = next(node for node in nodes if "conv" in node["op"] and node["module"] == "stem")
    assert convolution["source"].startswith("conftest.py:") and "self.stem(images)" in convolution["code"]
    text = succeed("profile", models.pictures, "--runs", "5")
    assert "stem" in text and "one call" in text and "conftest.py:" in text


def test_profile_modules_are_a_tree(read_json: Lissome, models: SimpleNamespace):
    modules = {row["module"]: row["time"] for row in profile(read_json, models.towers).tables["Modules"]}
    children = sum(time for name, time in modules.items() if name.startswith("head."))
    assert modules["head"] == pytest.approx(children)


def test_profile_trace(succeed: Lissome, models: SimpleNamespace, tmp_path: Path):
    succeed("profile", models.pictures, "--runs", "5", "--trace", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    timed = [event for event in events if event["ph"] == "X"]
    assert any("conv" in event["name"] for event in timed)
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in timed)
    starts = [event["ts"] for event in timed]
    assert starts == sorted(starts)


def rename_modules(path: Path, out: Path, nobody: str) -> None:
    """As torch.export does for nodes that its passes make: a module of no user's lies innermost."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename.endswith("models/model.json"):
                program = json.loads(data)
                for node in program["graph_module"]["graph"]["nodes"]:
                    node["metadata"]["nn_module_stack"] += f";{nobody},{nobody},{nobody}"
                data = json.dumps(program).encode()
            new.writestr(entry, data)


def test_nodes_are_named_by_modules_of_the_user(succeed: Lissome, tmp_path: Path):
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    torch.export.save(torch.export.export(net.eval(), (torch.randn(2, 3),)), tmp_path / "net.pt2")
    nobody = "_empty_nn_module_stack_from_metadata_hook"
    rename_modules(tmp_path / "net.pt2", tmp_path / "renamed.pt2", nobody)
    text = succeed("inspect", tmp_path / "renamed.pt2", "--text")
    assert nobody not in text and "in 0 (Linear)" in text


def test_inspect(read_json: Lissome, succeed: Lissome, models: SimpleNamespace, tmp_path: Path):
    facts = read_json("inspect", models.towers)
    assert [row["name"] for row in facts.tables["Inputs"]] == ["ids", "numbers"]
    assert [row["name"] for row in facts.tables["Outputs"]] == ["scores", "hidden"]
    assert [(row["least"], row["most"]) for row in facts.tables["Dimensions"]] == [(1, 64)]
    parameters = next(row for row in facts.tables["Weights"] if row["role"] == "parameters")
    elements = sum(weight.numel() for weight in models.modules["towers"].parameters())
    assert parameters["elements"] == elements and parameters["bytes"] == 4 * elements
    assert sum(row["nodes"] for row in facts.tables["Ops"]) == facts["program_text"].count(" = aten::")
    text = succeed("inspect", models.towers, "--text")
    assert text == facts["program_text"] and "aten::embedding" in text
    for word in ("Inputs", "Outputs", "Dimensions", "Weights", "Ops"):
        assert word in succeed("inspect", models.towers)


def test_inspected_text_survives_saving(succeed: Lissome, models: SimpleNamespace, tmp_path: Path):
    """A .lissome is read by parsing its text: printing what was read gives the same text again."""
    first, second = tmp_path / "1.lissome", tmp_path / "2.lissome"
    succeed("prepare", models.towers, "-o", first, "--keep-original")
    succeed("prepare", first, "-o", second, "--keep-original")
    assert succeed("inspect", first, "--text") == succeed("inspect", second, "--text")


def test_peaks(lissome, tmp_path: Path):
    first = lissome("peaks", "--threads", "1", "--json", "--cache", tmp_path / "kept")
    assert first.returncode == 0, first.stderr
    (peaks,) = read_answer(first)["peaks"]
    assert peaks["threads"] == 1 and peaks["f32_products"] > 1e8 and peaks["first_level_cache"] > peaks["memory"] > 0
    assert lissome("peaks", "--threads", "1", "--json", "--cache", tmp_path / "kept").stdout == first.stdout
    table = lissome("peaks", "--cache", tmp_path / "kept").stdout
    assert "f32 products" in table and "GMAC/s" in table and "1 thread" in table
    masked = lissome("peaks", "--threads", "1", "--json", "--isa", "avx2", "--cache", tmp_path / "kept")
    assert read_answer(masked)["peaks"][0]["bf16_products"] is None


def test_explain(read_json: Lissome, prepared: Path):
    explained = read_json("profile", prepared, "--runs", "5", "--explain").tables["Why"]
    linear = next(node for node in explained if node["kernel"] == "linear_f32")
    assert linear["isa"] and linear["threads"] >= 1 and linear["held back by"] in ("compute", "memory", "overhead")
    assert 0 < linear["of limit"] < 3 and "reference" in linear["others"]


def test_bench_within_a_limit(
    read_json: Lissome, succeed: Lissome, lissome: Lissome, models: SimpleNamespace, tmp_path: Path
):
    """24 layers of 1 MiB, in 6 MiB: read with every call, and the slowdown predicted and measured."""
    torch.manual_seed(0)
    wide = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(24))).eval()
    torch.export.save(torch.export.export(wide, (torch.randn(1, 512),)), tmp_path / "wide.pt2")
    succeed("prepare", tmp_path / "wide.pt2", "-o", tmp_path / "wide.lissome")
    result = read_json("bench", tmp_path / "wide.lissome", "--runs", "10", "--memory", "6MiB")
    free, limited = result.tables["Models"]
    assert limited["model"].endswith("wide.lissome in 6.0 MiB")
    assert limited["resident"] < free["resident"] - (12 << 20) and limited["allocators"] < 7 << 20
    (slowdown,) = result.tables["Within the limit"]
    assert 16 << 20 < slowdown["read a call"] < 25 << 20
    assert 1 <= slowdown["predicted"] < 1000 and slowdown["measured"] == pytest.approx(limited["median"] / free["median"])
    np.savez(tmp_path / "x.npz", x=np.ones((1, 512), np.float32))
    words = ("run", tmp_path / "wide.lissome", "--input", "x.npz")
    assert lissome(*words, "--output", "free.npz").returncode == 0
    done = lissome(*words, "--output", "limited.npz", "--memory", "6MiB")
    assert done.returncode == 0 and "are read with every call" in done.stderr
    with np.load(tmp_path / "free.npz") as left, np.load(tmp_path / "limited.npz") as right:
        assert all(np.array_equal(left[name], right[name]) for name in left.files)
    refused = lissome(*words, "--memory", "1MiB")
    assert refused.returncode == 3 and "at least 10" in refused.stderr and "largest layer" in refused.stderr
    assert "libtorch" in lissome("run", models.classifier, "--input", models.one, "--memory", "9MiB").stderr
    assert lissome(*words, "--memory", "much").returncode == 2


def test_bench_streams(read_json: Lissome, lissome: Lissome, prepared: Path):
    """One call at a time on all threads, and two at once on one each."""
    result = read_json("bench", prepared, "--streams", "auto", "--threads", "2").tables["Streams"]
    assert [(row["streams"], row["threads each"]) for row in result] == [(1, 2), (2, 1)]
    assert all(0 < row["least"] <= row["calls a second"] <= row["most"] for row in result)
    assert result[0]["speed"] == 1 and result[1]["from"] <= result[1]["speed"] <= result[1]["to"]
    assert [row["chosen"] for row in result].count("yes") == 1
    assert result[1]["chosen"] == ("yes" if result[1]["from"] > 1 else "")
    refused = lissome("bench", prepared, "--streams", "many")
    assert refused.returncode == 2 and "auto or 1 to" in refused.stderr
