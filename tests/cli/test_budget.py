"""lissome budget: predictions agree with measurements, and a budget that cannot be met names the smallest that can."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from answer import Answer, read_answer

Lissome = Callable[..., Any]

SAMPLES, WIDTH, BLOCKS = 64, 64, 6


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Tower(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.Sequential(*[Block() for _ in range(BLOCKS)])
        self.head = torch.nn.Linear(WIDTH, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(x).mean(1))


@pytest.fixture()
def tower(tmp_path: Path) -> Path:
    torch.manual_seed(5)
    x, labels = torch.randn(SAMPLES, 32, WIDTH), torch.arange(SAMPLES) % 5
    shapes = ({0: torch.export.Dim("batch", min=2, max=512)},)
    exported = torch.export.export(Tower().train(), (x[:4],), dynamic_shapes=shapes)
    torch.export.save(exported, tmp_path / "tower.pt2")
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=labels.numpy())
    return tmp_path


def run_budget(lissome: Lissome, memory: int, *more: str) -> Answer:
    words = ("budget", "tower.pt2", "--data", "data.npz", "--labels", "labels", "--batch", str(SAMPLES))
    done = lissome(*words, "--memory", str(memory), "--json", *more)
    assert done.returncode == 0, done.stderr
    return read_answer(done)


def read_predicted(result: Answer) -> dict[str, float]:
    return {row["what"]: row["predicted"] for row in result.tables["Memory"]}


def total(result: Answer) -> tuple[float, float, float]:
    """Keeping all, predicted, measured."""
    return tuple(result.tables["Memory"][-1][name] for name in ("keeping all", "predicted", "measured"))


def test_a_budget_is_kept_and_predicted(lissome: Lissome, tower: Path):
    everything = run_budget(lissome, 1 << 34)
    plain, predicted, measured = total(everything)
    assert everything["nodes_recomputed"] == 0
    assert plain == predicted == pytest.approx(measured, rel=0.03)
    budget = int(0.7 * plain)
    tight = run_budget(lissome, budget)
    _, predicted, measured = total(tight)
    assert tight["nodes_recomputed"] > 0
    assert predicted <= budget
    assert measured <= budget
    assert predicted == pytest.approx(measured, rel=0.03)
    assert sum(row["recomputed"] for row in tight.tables["Modules"]) > 0


def test_json_repeats_what_was_renamed_under_the_old_names(lissome: Lissome, tower: Path):
    result = run_budget(lissome, 1 << 34, "--recompute", "every:1")
    for old, new in {
        "nodes_run_again": "nodes_recomputed",
        "seconds_told": "seconds_predicted",
        "seconds_told_keeping_all": "seconds_predicted_keeping_all",
    }.items():
        assert result[old] == result[new] > 0
    assert result.old_columns == {"Memory": {"told": "predicted"}, "Modules": {"made again": "recomputed"}}
    for title, names in result.old_columns.items():
        assert result.tables[title]
        for old, new in names.items():
            assert all(row[old] == row[new] for row in result.tables[title])


def test_every_module_is_recomputed(lissome: Lissome, tower: Path):
    plain = total(run_budget(lissome, 1 << 34))[0]
    every = run_budget(lissome, 1 << 34, "--recompute", "every:1")
    assert total(every)[1] < 0.7 * plain
    assert total(every)[2] == pytest.approx(total(every)[1], rel=0.03)


def test_gradients_that_are_used_up_inside_the_step_do_not_count(lissome: Lissome, tower: Path):
    kept, given = run_budget(lissome, 1 << 34), run_budget(lissome, 1 << 34, "--update-in-backward")
    gradients = [read_predicted(result)["gradients"] for result in (kept, given)]
    assert gradients[1] == 0
    assert total(given)[1] < total(kept)[1] - 0.8 * gradients[0]
    assert total(given)[2] == pytest.approx(total(given)[1], rel=0.03)
    budget = int(0.7 * total(given)[0])
    _, predicted, measured = total(run_budget(lissome, budget, "--update-in-backward"))
    assert measured <= budget and predicted == pytest.approx(measured, rel=0.03)


def test_activations_in_bf16_meet_a_budget_without_recomputation(lissome: Lissome, tower: Path):
    plain = run_budget(lissome, 1 << 34, "--recompute", "none", "--lossy-activations")
    assert plain["activations_in_bf16"] == 0
    budget = int(0.8 * total(plain)[0])
    words = ("budget", "tower.pt2", "--data", "data.npz", "--labels", "labels", "--batch", str(SAMPLES))
    exact = lissome(*words, "--memory", str(budget), "--recompute", "none")
    assert exact.returncode == 3 and "the budget leaves" in exact.stderr
    lossy = run_budget(lissome, budget, "--recompute", "none", "--lossy-activations")
    _, predicted, measured = total(lossy)
    assert lossy["activations_in_bf16"] > 0 and lossy["nodes_recomputed"] == 0
    assert predicted <= budget and measured == pytest.approx(predicted, rel=0.03)


def test_activations_in_a_file_meet_a_budget_without_recomputation(lissome: Lissome, tower: Path):
    (tower / "disk").mkdir()
    where = ("--recompute", "none", "--offload", "disk")
    plain = run_budget(lissome, 1 << 34, *where)
    assert plain["activations_in_file"] == plain["activations_in_file_bytes"] == 0
    assert read_predicted(plain)["optimizer states"] == 0
    budget = int(0.7 * total(plain)[0])
    words = ("budget", "tower.pt2", "--data", "data.npz", "--labels", "labels", "--batch", str(SAMPLES))
    exact = lissome(*words, "--memory", str(budget), "--recompute", "none")
    assert exact.returncode == 3 and "the budget leaves" in exact.stderr
    offloaded = run_budget(lissome, budget, *where)
    _, predicted, measured = total(offloaded)
    assert offloaded["activations_in_file"] > 0 and offloaded["nodes_recomputed"] == 0
    assert offloaded["activations_in_file_bytes"] >= total(plain)[0] - budget
    assert predicted <= budget and measured == pytest.approx(predicted, rel=0.03)
    said = lissome(*words, "--memory", str(budget), *where).stdout
    assert f"{offloaded['activations_in_file']} activations of" in said and "are kept in a file" in said
    assert list((tower / "disk").iterdir()) == []
    done = lissome(*words, "--memory", "1GiB", "--offload", "no/folder")
    assert done.returncode == 2 and "no/folder" in done.stderr


def test_weights_in_a_file_meet_a_budget_that_weights_in_memory_exceed(lissome: Lissome, tmp_path: Path):
    wide = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(16)), torch.nn.Linear(1024, 5))
    x, labels = torch.randn(8, 1024), torch.arange(8) % 5
    shapes = ({0: torch.export.Dim("batch", min=2, max=64)},)
    torch.export.save(torch.export.export(wide.train(), (x[:4],), dynamic_shapes=shapes), tmp_path / "tower.pt2")
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=labels.numpy())
    (tmp_path / "disk").mkdir()
    where = ("--offload", "disk")
    plain = run_budget(lissome, 1 << 34, *where)
    assert plain["weights_in_file_bytes"] == plain["weights_in_memory_at_once_bytes"] == 0
    budget = int(total(plain)[1]) - (16 << 20)
    words = ("budget", "tower.pt2", "--data", "data.npz", "--labels", "labels", "--batch", str(SAMPLES))
    done = lissome(*words, "--memory", str(budget))
    assert done.returncode == 3 and "before any activation" in done.stderr
    offloaded = run_budget(lissome, budget, *where)
    assert offloaded["weights_in_file_bytes"] == 16 * 1024 * 1024 * 4
    assert offloaded["weights_in_memory_at_once_bytes"] == 32 << 20
    _, predicted, measured = total(offloaded)
    assert measured <= predicted + (1 << 20) and predicted <= budget < total(plain)[1]
    weights = next(row for row in offloaded.tables["Memory"] if row["what"] == "weights")
    assert weights["keeping all"] - weights["predicted"] == 32 << 20
    assert weights["measured"] <= weights["predicted"]
    said = lissome(*words, "--memory", str(budget), *where).stdout
    assert "weights of 64.0 MiB are kept in a file, at most 32.0 MiB of them in memory at once" in said
    assert list((tmp_path / "disk").iterdir()) == []
    done = lissome(*words, "--memory", "90MiB", *where)
    assert done.returncode == 3 and "though weights of 64.0 MiB are kept in a file" in done.stderr


def test_mixed_precision_is_planned_too(lissome: Lissome, tower: Path):
    plain = total(run_budget(lissome, 1 << 34, "--precision", "bf16"))[0]
    assert plain < total(run_budget(lissome, 1 << 34))[0]
    budget = int(0.7 * plain)
    _, predicted, measured = total(run_budget(lissome, budget, "--precision", "bf16"))
    assert measured <= budget and predicted == pytest.approx(measured, rel=0.03)


def test_out_of_reach(lissome: Lissome, tower: Path):
    words = ("budget", "tower.pt2", "--data", "data.npz", "--labels", "labels", "--batch", str(SAMPLES))
    weights = sum(p.numel() for p in Tower().parameters()) * 4
    done = lissome(*words, "--memory", str(weights))
    assert done.returncode == 3
    assert "before any activation" in done.stderr
    done = lissome(*words, "--memory", str(4 * weights + 900_000))
    assert done.returncode == 3
    assert "at the least" in done.stderr
    done = lissome(*words, "--memory", "1GiB", "--recompute", "sometimes")
    assert done.returncode == 2
    assert "--recompute must be" in done.stderr


def export_mlp(folder: Path, width: int, depth: int) -> list[str]:
    """Writes an MLP and data. Returns the first arguments of `budget` and `train`."""
    torch.manual_seed(width + depth)
    layers = [torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU()) for _ in range(depth)]
    net = torch.nn.Sequential(torch.nn.Linear(64, width), *layers, torch.nn.Linear(width, 5))
    x, labels = torch.randn(256, 64), torch.arange(256) % 5
    exported = torch.export.export(net.train(), (x[:4],), dynamic_shapes=({0: torch.export.Dim("n")},))
    torch.export.save(exported, folder / "tower.pt2")
    np.savez(folder / "data.npz", x=x.numpy(), labels=labels.numpy())
    return ["tower.pt2", "--data", "data.npz", "--labels", "labels"]


# (width, depth, batch, optimizer, update in backward): searches go by measured times, so each of these found another
# least amount in each run.
REFUSED = [(128, 8, 256, "adamw", False), (512, 4, 64, "adafactor", True), (256, 8, 64, "sgd", False)]


@pytest.mark.parametrize(("width", "depth", "batch", "optimizer", "inside"), REFUSED)
def test_a_refusal_names_a_limit_that_is_enough(
    lissome: Lissome, tmp_path: Path, width: int, depth: int, batch: int, optimizer: str, inside: bool
):
    words = [*export_mlp(tmp_path, width, depth), "--batch", str(batch), "--optimizer", optimizer]
    words += ["--update-in-backward"] * inside
    memory = read_answer(lissome("budget", *words, "--memory", "4GiB", "--json")).tables["Memory"]
    activations, everything = memory[-2]["predicted"], memory[-1]["predicted"]
    refused = lissome("budget", *words, "--memory", str(int(everything - 0.9 * activations)))
    assert refused.returncode == 3
    (wanted,) = re.findall(r"Give --memory (\d+[KM]iB) or a smaller", refused.stderr)
    assert int(everything - activations) < int(wanted[:-3]) * 1024 < everything
    for _ in range(2):
        granted = lissome("budget", *words, "--memory", wanted)
        assert granted.returncode == 0, granted.stderr
    clip = ["--clip", "0"] * inside
    trained = lissome("train", *words, *clip, "--memory", wanted, "-o", "t.lissome", "--json")
    assert trained.returncode == 0, trained.stderr
    assert read_answer(trained)["peak_memory"] <= int(wanted[:-3]) * 1024


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "adam", "lion", "adafactor"])
def test_training_takes_what_was_predicted(lissome: Lissome, tmp_path: Path, optimizer: str):
    words = [*export_mlp(tmp_path, 512, 2), "--batch", "64", "--optimizer", optimizer]
    predicted = total(read_answer(lissome("budget", *words, "--memory", "4GiB", "--json")))[1]
    trained = read_answer(lissome("train", *words, "-o", "t.lissome", "--json"))
    assert trained["peak_memory"] == pytest.approx(predicted, rel=0.01)


def test_without_data_a_budget_has_the_sizes_of_the_export(lissome: Lissome, tower: Path):
    given = run_budget(lissome, 1 << 34)
    generated = lissome("budget", "tower.pt2", "--batch", str(SAMPLES), "--memory", "16GiB", "--json")
    assert generated.returncode == 0, generated.stderr
    assert "inputs are generated" in generated.stderr
    assert total(read_answer(generated))[0] == total(given)[0]
    huber = lissome("budget", "tower.pt2", "--loss", "huber", "--batch", "4", "--memory", "16GiB")
    assert huber.returncode == 0, huber.stderr


def test_training_passes_are_shown_and_switched_off_by_name(lissome: Lissome, tmp_path: Path):
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16)
            self.drop, self.head = torch.nn.Dropout(0.25), torch.nn.Linear(16 * 16, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.conv(x))), 2)
            return self.head(self.drop(y.flatten(1)))

    shapes = ({0: torch.export.Dim("batch", min=2, max=64)},)
    torch.export.save(torch.export.export(Net().train(), (torch.randn(4, 3, 8, 8),), dynamic_shapes=shapes), tmp_path / "n.pt2")
    words = ("budget", "n.pt2", "--batch", "8", "--memory", "1GiB", "--json")

    def list_changed(*more: str) -> set[str]:
        done = lissome(*words, "--diff", *more)
        assert done.returncode == 0, done.stderr
        diff = read_answer(done)["diff"]
        assert all("\n+" in "\n" + row["text"] or "\n-" in "\n" + row["text"] for row in diff)
        return {row["pass"] for row in diff}

    changed = list_changed()
    assert {"count_dropout", "mask_before_pool"} <= changed
    assert list_changed("--disable", "mask_before_pool") == changed - {"mask_before_pool"}
    shown = lissome(*words[:-1], "--diff").stdout
    assert "-- count_dropout\n" in shown and "lissome::dropout" in shown
    wrong = lissome(*words, "--disable", "mask_before_pol")
    assert wrong.returncode == 2 and "mask_before_pool" in wrong.stderr
    assert read_answer(lissome(*words))["diff"] is None


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows, self.last = torch.nn.GRU(6, 12, batch_first=True), torch.nn.Linear(12, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.rows(x)[0][:, -1])


class Pixels(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Conv2d(8, 3, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


# Gates of recurrent layers are written in place; labels of every pixel weigh as much as the images.
@pytest.mark.parametrize("kind", ["recurrent", "pixels", "pixels, accumulated"])
def test_training_follows_the_advice_of_a_refusal(lissome: Lissome, tmp_path: Path, kind: str):
    torch.manual_seed(0)
    net, x = (Recurrent(), torch.randn(64, 4, 6)) if kind == "recurrent" else (Pixels(), torch.randn(64, 3, 16, 16))
    labels = torch.arange(64) % 3 if kind == "recurrent" else torch.randint(0, 3, (64, 16, 16))
    exported = torch.export.export(net.train(), (x[:4],), dynamic_shapes=({0: torch.export.Dim("n", max=512)},))
    torch.export.save(exported, tmp_path / "tower.pt2")
    np.savez(tmp_path / "data.npz", x=x, labels=labels)
    words = ["train", "tower.pt2", "--data", "data.npz", "--labels", "labels", "--max-steps", "2", "-o", "t.lissome"]
    words += ["--accumulate", "2"] * kind.endswith("accumulated")
    (taken,) = re.findall(r"memory: ([\d.]+) KiB", lissome(*words, "--memory", "1KiB").stderr)
    refused = lissome(*words, "--memory", f"{int(float(taken)) + 2}KiB")
    assert refused.returncode == 3
    (wanted,) = re.findall(r"Give --memory (\d+KiB) or a smaller", refused.stderr)
    trained = lissome(*words, "--memory", wanted, "--json")
    assert trained.returncode == 0, trained.stderr
    assert read_answer(trained)["peak_memory"] <= int(wanted[:-3]) * 1024
