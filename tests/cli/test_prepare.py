"""lissome prepare: how kernels are chosen, kept and forced, and that a plan is right on lesser processors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lissome as lissome_python
import numpy as np
import pytest
import torch

Lissome = Callable[..., Any]


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(32, 96)
        self.finish = torch.nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.reshape(1, -1, 4, 8).transpose(1, 2) for part in self.project(x).split(32, -1))
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return self.finish(mixed.transpose(1, 2).reshape(1, -1, 32))


@pytest.fixture(scope="module")
def attention(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("attention")
    module, example = Attention().eval(), torch.randn(1, 24, 32)
    torch.export.save(torch.export.export(module, (example,)), folder / "attention.pt2")
    np.savez(folder / "x.npz", x=example.numpy())
    with torch.no_grad():
        return SimpleNamespace(model=folder / "attention.pt2", input=folder / "x.npz", output=module(example).numpy())


def run(succeed: Lissome, folder: Path, model: Path, data: Path, *flags: object) -> np.ndarray:
    succeed("run", model, "--input", data, "--output", folder / "y.npz", *flags)
    with np.load(folder / "y.npz") as outputs:
        return next(iter(outputs.values()))


def kernels(read_json: Lissome, model: Path) -> dict[str, int]:
    return {row["kernel"]: row["steps"] for row in read_json("inspect", model).tables["Plan"]}


@pytest.mark.parametrize(("asked", "libtorch"), [("flash", True), ("math", True), ("ours", False)])
def test_a_kernel_is_forced(
    succeed: Lissome, read_json: Lissome, attention: SimpleNamespace, tmp_path: Path, asked: str, libtorch: bool
):
    model = tmp_path / "forced.lissome"
    succeed("prepare", attention.model, "-o", model, "--kernel", f"attention={asked}")
    seen = kernels(read_json, model)
    assert ("reference" in seen) == libtorch and ("attention" in seen) != libtorch
    assert np.abs(run(succeed, tmp_path, model, attention.input) - attention.output).max() < 1e-5


def test_what_a_forced_kernel_cannot_do_is_said(lissome: Lissome, attention: SimpleNamespace):
    done = lissome("prepare", attention.model, "-o", "m.lissome", "--kernel", "attention=attention_bf16")
    assert done.returncode == 0 and "attention_bf16 was asked for and does not take it" in done.stderr
    done = lissome("prepare", attention.model, "-o", "m.lissome", "--kernel", "convolution=conv_f32")
    assert done.returncode == 0 and "no node runs on" in done.stderr


@pytest.mark.parametrize("command", ["prepare", "optimize"])
def test_unknown_words(lissome: Lissome, attention: SimpleNamespace, command: str):
    for flag, value, allowed in (
        ("--kernel", "attention=flush", "flash, math"),
        ("--kernel", "attention", "PATTERN=NAME"),
        ("--effort", "most", "fast, normal or max"),
    ):
        done = lissome(command, attention.model, "-o", "m.lissome", flag, value)
        assert done.returncode == 2 and allowed in done.stderr and value.split("=")[-1] in done.stderr


def test_timing_is_kept(
    lissome: Lissome, read_json: Lissome, attention: SimpleNamespace, tmp_path: Path
):
    cache = tmp_path / "cache"
    texts = []
    for name in ("first", "second"):
        words = ("prepare", attention.model, "-o", f"{name}.lissome", "--effort", "normal", "--cache", cache)
        assert lissome(*words).returncode == 0
        texts.append(read_json("inspect", tmp_path / f"{name}.lissome").tables["Plan"])
    assert texts[0] == texts[1]
    (kept,) = cache.glob("timings-*.json")
    before = kept.stat().st_mtime_ns
    assert lissome(*words).returncode == 0
    assert kept.stat().st_mtime_ns == before, "nothing was measured, so nothing is written"


def test_kernels_are_timed_at_the_sizes_of_the_input(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    def prepare(*words: object) -> tuple[str, str]:
        cache = tmp_path / f"cache{len(list(tmp_path.iterdir()))}"
        done = lissome("prepare", models.classifier, "-o", "m.lissome", "--effort", "normal", "--cache", cache, *words)
        assert done.returncode == 0, done.stderr
        (kept,) = cache.glob("timings-*.json")
        return done.stderr, kept.read_text()

    np.savez(tmp_path / "wide.npz", input=np.zeros((33, 64), np.float32))
    notes, kept = prepare()
    assert "timed at the smallest dynamic sizes" in notes and "f32,1,64" in kept and "f32,33,64" not in kept
    notes, kept = prepare("--input", tmp_path / "wide.npz")
    assert "smallest" not in notes and "f32,33,64" in kept and "f32,1,64" not in kept
    np.savez(tmp_path / "wrong.npz", input=np.zeros((33, 65), np.float32))
    done = lissome("prepare", models.classifier, "-o", "w.lissome", "--input", tmp_path / "wrong.npz")
    assert done.returncode == 4 and "65" in done.stderr and not (tmp_path / "w.lissome").exists()


def test_effort_fast_times_nothing(lissome: Lissome, attention: SimpleNamespace, tmp_path: Path):
    done = lissome("prepare", attention.model, "-o", "m.lissome", "--effort", "fast", "--cache", tmp_path / "cache")
    assert done.returncode == 0 and not list(tmp_path.glob("cache/timings-*"))


def test_another_machine_is_named_and_the_answers_are_the_same(
    lissome: Lissome, succeed: Lissome, read_json: Lissome, attention: SimpleNamespace, tmp_path: Path
):
    made, again = tmp_path / "made.lissome", tmp_path / "again.lissome"
    succeed("prepare", attention.model, "-o", made, "--threads", "1", "--keep-original")
    assert read_json("inspect", made)["other_machine"] is None
    assert "which is this machine" in succeed("inspect", made)
    assert "chosen on" not in lissome("bench", made, "--runs", "2").stderr
    for level in ("none", "avx2", "avx512", "vnni", "bf16"):
        lesser = ("--isa", level)
        assert np.abs(run(succeed, tmp_path, made, attention.input, *lesser) - attention.output).max() < 1e-5
    facts = read_json("inspect", made, "--isa", "none")
    assert "(here: none)" in facts["other_machine"] and facts["made_for"]["features"] in facts["other_machine"]
    assert "Other machine" in succeed("inspect", made, "--isa", "none")
    errors = lissome("run", made, "--input", attention.input, "--isa", "none").stderr
    assert "(here: none)" in errors and "prepare the original model here" in errors
    assert "chosen on" not in lissome("run", made, "--input", attention.input).stderr
    assert "(here: none)" in lissome("bench", made, "--runs", "2", "--isa", "none").stderr
    assert "(here: none)" in read_json("profile", made, "--runs", "2", "--isa", "none")["other_machine"]
    # Prepared again there, it is a plan of that machine.
    succeed("prepare", made, "-o", again, "--isa", "none", "--threads", "1")
    assert read_json("inspect", again, "--isa", "none")["other_machine"] is None
    assert np.abs(run(succeed, tmp_path, again, attention.input, "--isa", "none") - attention.output).max() < 1e-5


@pytest.mark.parametrize("command", ["prepare", "quantize", "optimize"])
def test_state_that_a_train_form_goes_on_updating_is_said(lissome: Lissome, tmp_path: Path, command: str):
    """Batch norm stops in eval form; the power iteration of a spectral norm is the module's own code."""
    np.savez(tmp_path / "x.npz", input=np.random.default_rng(0).standard_normal((64, 32), np.float32))
    flags = {"prepare": (), "quantize": ("--data", "x.npz"), "optimize": ("--data", "x.npz", "--time", "1s")}[command]
    for name, layer in (("normed", torch.nn.BatchNorm1d(32)),
                        ("spectral", torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(32, 32)))):
        module = torch.nn.Sequential(torch.nn.Linear(32, 32), layer).train()
        shapes = ({0: torch.export.Dim("batch", min=2, max=64)},)
        torch.export.save(torch.export.export(module, (torch.randn(4, 32),), dynamic_shapes=shapes), tmp_path / f"{name}.pt2")
        done = lissome(command, f"{name}.pt2", *flags, "-o", "out.lissome")
        assert done.returncode == 0, done.stderr
        assert ("converted to its eval form" in done.stderr) == (name == "normed")
        said = "note: each call updates the state of the result" in done.stderr
        assert said == (name == "spectral") and ("_u" in done.stderr) == said


class Branches(torch.nn.Module):
    """What each branch computes of constants alone becomes a weight of the branch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def inner(y: torch.Tensor) -> torch.Tensor:
            return torch.cond(y.sum() > 20, lambda z: z * (torch.arange(3) / 7), lambda z: z - torch.full((3,), 0.5), (y,))

        once = torch.cond(x.sum() > 0, inner, lambda y: y + torch.ones(3), (x,))
        return torch.cond(x.sum() > 0, lambda y: y + torch.ones(3) * 3, lambda y: y * torch.arange(3), (once,))


class Conjugates(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.fft.fft(x).conj().resolve_conj())


@pytest.mark.parametrize("net", [Branches(), Conjugates()], ids=["branches", "conjugates"])
def test_finished_models_hold_what_was_computed_beforehand(lissome: Lissome, tmp_path: Path, net: torch.nn.Module):
    torch.manual_seed(1)
    x = torch.randn(4, 3)
    torch.export.save(torch.export.export(net.eval(), (x,)), tmp_path / "net.pt2")
    assert lissome("prepare", "net.pt2", "-o", "net.lissome").returncode == 0
    finished = lissome_python.prepare(net, (x,))
    for shift in (-3, 1, 5):
        shifted = x + shift
        np.save(tmp_path / "x.npy", shifted.numpy())
        for model in ("net.pt2", "net.lissome"):
            done = lissome("run", model, "--input", "x.npy", "-o", "y.npz")
            assert done.returncode == 0, done.stderr
            with np.load(tmp_path / "y.npz") as outputs:
                np.testing.assert_allclose(next(iter(outputs.values())), net(shifted).numpy(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(torch.as_tensor(finished(shifted)), net(shifted))
