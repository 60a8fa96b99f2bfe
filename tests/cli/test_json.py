"""--json: every command of the program prints the one form that docs/command-line.md describes, with the keys listed there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from answer import Answer, read_answer

Lissome = Callable[..., Any]
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"


def list_commands(lissome: Lissome) -> list[str]:
    """As the program lists them; what launch prints is the answer of the training that it starts."""
    names = re.findall(r"^  ([a-z]+) {2,}\S", lissome("--help").stdout, re.MULTILINE)
    return [name for name in names if name != "launch"]


def read_documented() -> dict[str, tuple[set[str], str]]:
    """Of each command: the keys of its result, and the cell with its tables."""
    text = DOCUMENT.read_text(encoding="utf-8").partition("## JSON\n")[2].partition("\n## ")[0]
    documented = {}
    for name, keys, tables in re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", text, re.MULTILINE):
        of_result = re.sub(r"\([^)]*\)", "", re.split(r"[;:]", keys)[0])  # what follows explains one of them
        documented[name] = (set(re.findall(r"`(\w+)`", of_result)), tables)
    return documented


def list_words(models: SimpleNamespace, training: SimpleNamespace, prepared: Path) -> dict[str, list[object]]:
    """For each command arguments with which it succeeds in a few seconds."""
    data = ["--data", training.folder / "train.npz", "--labels", "labels", "--batch", "10"]
    return {
        "optimize": [models.classifier, "--data", models.data, "--labels", "labels", "--time", "2s", "-o", "o.lissome"],
        "train": [training.folder / "small.pt2", *data, "-o", "t.lissome"],
        "budget": [training.folder / "small.pt2", *data, "--memory", "1GiB"],
        "prepare": [models.classifier, "-o", "p.lissome", "--diff"],
        "quantize": [models.classifier, "--data", models.data, "-o", "q.lissome"],
        "inspect": [prepared],
        "run": [prepared, "--input", models.one],
        "bench": [models.classifier, prepared, "--runs", "2"],
        "profile": [prepared, "--runs", "2", "--explain"],
        "audit": [prepared, "--expect", "fallback=none"],
        "peaks": ["--threads", "1"],
    }


def test_every_command_answers_in_one_form(
    lissome: Lissome, models: SimpleNamespace, training: SimpleNamespace, prepared: Path
):
    words, documented = list_words(models, training, prepared), read_documented()
    commands = list_commands(lissome)
    assert len(commands) >= 10 and set(commands) == set(words) == set(documented)
    version = lissome("--version").stdout.split()[1]
    for command in commands:
        done = lissome(command, *words[command], "--json")
        assert done.returncode == 0, (command, done.stderr)
        answer = read_answer(done)
        assert (answer.command, answer.version) == (command, version)
        keys, titles = documented[command]
        assert set(answer) == keys, command
        assert answer.tables and all(title in titles for title in answer.tables), (command, list(answer.tables))


def test_after_an_error_stdout_is_empty(
    lissome: Lissome, models: SimpleNamespace, training: SimpleNamespace, prepared: Path
):
    for command, words in list_words(models, training, prepared).items():
        missing = ["--threads", "9999"] if command == "peaks" else ["absent.pt2", *words[1:]]
        for given in (missing, [*words, "--no-such-flag"]):
            done = lissome(command, *given, "--json")
            assert done.returncode == 2 and done.stdout == "", (command, given, done.stdout)
            assert done.stderr.startswith("error usage: "), done.stderr


def test_text_and_json_show_the_same_tables(
    lissome: Lissome, models: SimpleNamespace, training: SimpleNamespace, prepared: Path
):
    """Titles and columns. The text leaves out columns without content, empty tables and old names of columns."""
    words = list_words(models, training, prepared)
    for command in ("inspect", "prepare", "quantize", "train", "budget", "bench", "audit", "peaks", "run"):
        text = lissome(command, *words[command]).stdout
        answer = read_answer(lissome(command, *words[command], "--json"))
        for title, rows in answer.tables.items():
            old = answer.old_columns.get(title, {})
            names = [name for name in (rows[0] if rows else {}) if any(row[name] not in (None, "") for row in rows)]
            names = [name for name in names if name not in old]
            assert not rows or title in text.splitlines(), (command, title)
            assert all(name in text for name in names), (command, names)


def test_a_goal_that_is_not_met_is_an_answer(lissome: Lissome, models: SimpleNamespace):
    done = lissome("audit", models.classifier, "--expect", "fallback=none", "--json")
    answer = read_answer(done)
    assert done.returncode == 3 and answer["as_expected"] is False and answer["not_as_expected"]
    assert answer["expect"] == "fallback=none"


def test_run_gives_the_values(read_json: Callable[..., Answer], models: SimpleNamespace, prepared: Path, tmp_path: Path):
    np.savez(tmp_path / "x.npz", input=models.samples[:3].numpy())
    (listed,) = read_json("run", prepared, "--input", "x.npz")["outputs"]
    read_json("run", prepared, "--input", "x.npz", "--output", "y.npz")
    with np.load(tmp_path / "y.npz") as outputs:
        ((name, wanted),) = outputs.items()
    assert listed["name"] == name and listed["input"] == "x.npz"
    assert listed["dtype"] == "f32" and listed["sizes"] == [3, 10]
    assert listed["values"] == wanted.tolist()
    written = read_json("run", prepared, "--input", "x.npz", "--output", "y.npz")
    assert written["output"] == "y.npz" and written["outputs"] == [{**listed, "values": None}]


def test_run_gives_the_values_of_each_file(read_json: Callable[..., Answer], models: SimpleNamespace, prepared: Path, tmp_path: Path):
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", input=models.samples[: 1 + ord(name) % 2].numpy())
    answer = read_json("run", prepared, "--input", "a.npz", "--input", "b.npz")
    assert [(output["input"], output["sizes"][0]) for output in answer["outputs"]] == [("a.npz", 2), ("b.npz", 1)]
    assert [row["input"] for row in answer.tables["Outputs"]] == ["a.npz", "b.npz"]
    assert all(len(output["values"]) == output["sizes"][0] for output in answer["outputs"])


class Odd(torch.nn.Module):
    """Results of many types, among them what JSON has no number for."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {
            "f64": x.double(), "f16": x.half(), "bf16": x.bfloat16(), "bool": x > 1, "i64": torch.ones_like(x).long() << 62,
            "u8": torch.full_like(x, 255).to(torch.uint8), "c64": torch.complex(x, -x), "none": x[:0], "scalar": x[1].clone(),
            "square": torch.stack([x, x]),
        }


def spell(value: Any) -> Any:
    """As docs/command-line.md says what JSON has no number for is spelled."""
    if isinstance(value, list):
        return [spell(item) for item in value]
    if isinstance(value, complex):
        return [spell(value.real), spell(value.imag)]
    if isinstance(value, float) and not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def test_values_of_every_type(read_json: Callable[..., Answer], tmp_path: Path):
    x = torch.tensor([0.5, 1.1])
    torch.export.save(torch.export.export(Odd().eval(), (x,)), tmp_path / "odd.pt2")
    np.savez(tmp_path / "x.npz", x=np.array([1.1, 65519.5], np.float32))
    answer = read_json("run", "odd.pt2", "--input", "x.npz")
    given = torch.tensor([1.1, 65519.5])
    for output in answer["outputs"]:
        wanted = Odd()(given)[output["name"]]
        assert output["values"] == wanted.tolist() or output["values"] == spell(wanted.tolist()), output
        assert output["sizes"] == list(wanted.shape)
        if output["name"] == output["dtype"] or output["name"] in ("i64", "u8"):
            assert output["dtype"] == output["name"]


class Divided(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.zeros_like(x)


def test_what_json_has_no_number_for(read_json: Callable[..., Answer], tmp_path: Path):
    torch.export.save(torch.export.export(Divided().eval(), (torch.ones(3),)), tmp_path / "divided.pt2")
    np.savez(tmp_path / "x.npz", x=np.array([1, -1, 0], np.float32))
    (output,) = read_json("run", "divided.pt2", "--input", "x.npz")["outputs"]
    assert output["values"] == ["Infinity", "-Infinity", "NaN"]


def test_names_that_are_no_utf_8(read_json: Callable[..., Answer], models: SimpleNamespace, prepared: Path, tmp_path: Path):
    name = os.fsdecode(b"x\xff.npz")
    os.link(models.one, tmp_path / name)
    (output,) = read_json("run", prepared, "--input", name)["outputs"]
    assert output["input"] == "x\ufffd.npz"


class Singular(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svdvals(x / 0.0)


def test_what_libraries_print_is_no_answer(read_json: Callable[..., Answer], lissome: Lissome, tmp_path: Path):
    """oneMKL prints to stdout where a matrix holds infinities."""
    torch.export.save(torch.export.export(Singular(), (torch.ones(4, 4),)), tmp_path / "singular.pt2")
    np.savez(tmp_path / "x.npz", x=np.ones((4, 4), np.float32))
    (output,) = read_json("run", "singular.pt2", "--input", "x.npz")["outputs"]
    assert output["sizes"] == [4]
    assert "oneMKL" not in lissome("run", "singular.pt2", "--input", "x.npz").stdout


def test_names_that_a_terminal_would_obey_are_escaped(lissome: Lissome, tmp_path: Path):
    class Named(torch.nn.Module):
        def forward(self, **arrays: torch.Tensor) -> dict[str, torch.Tensor]:
            return {f"y{name}": values + 1 for name, values in arrays.items()}

    name = "\x9b31m\u202e\x7f"
    torch.export.save(torch.export.export(Named(), (), {name: torch.ones(3)}), tmp_path / "named.pt2")
    printed = lissome("inspect", "named.pt2", "--json").stdout
    assert printed.isascii() and "\x7f" not in printed and "u202e" in printed
