"""lissome optimize: goals met and missed, with and without data, interrupted, printed for people and for programs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from answer import read_answer

Lissome = Callable[..., Any]
QUICK = ("--time", "20s", "--threads", "1")


def optimize(lissome: Lissome, *words: object, code: int = 0) -> dict[str, Any]:
    done = lissome("optimize", *words, *QUICK, "--json", "-o", "out.lissome")
    assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return read_answer(done)


def check_steps(record: dict[str, Any]) -> None:
    """What every record must hold: each step accepted or undone, with its reason; nothing kept that does not pay."""
    assert record["steps"]
    for step in record["steps"]:
        assert step["stage"] in {"basic", "memory", "computation", "compilation", "deployment", "validation"}
        assert step["name"] and step["reason"]
        if step["accepted"] and "it is kept" not in step["reason"]:
            low, high = step["ratio"]["interval"]
            assert low <= step["ratio"]["median"] <= high <= 1
            assert high < 1 or step["memory_after"] < step["memory_before"]


def test_with_labels(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    record = optimize(lissome, models.classifier, "--data", models.data, "--labels", "labels", "--report", "r.html")
    check_steps(record)
    assert record["metric"] == "top1" and record["quality_original"] == 1
    assert record["quality_final"] >= 1 - 0.005
    (loss,) = (goal for goal in record["goals"] if goal["name"] == "loss")
    assert loss["met"] and loss["target"] == 0.005
    assert "labels" in record["data"] and "calibration" in record["data"]
    assert 0 < (tmp_path / "r.html").stat().st_size < 300_000
    assert record["answer"] in (tmp_path / "r.html").read_text().replace("&amp;", "&")
    assert record["layers"] and record["machine"] and "lissome optimize" in record["command"]
    # The result runs, and is as good on all samples as the search said of the held-out ones.
    done = lissome("run", "out.lissome", "--input", models.one, "--output", "y.npz")
    assert done.returncode == 0
    with np.load(tmp_path / "y.npz") as outputs:
        assert next(iter(outputs.values())).argmax() == models.labels[0]


def test_the_record_says_when_answers_were_there(lissome: Lissome, models: SimpleNamespace):
    record = optimize(lissome, models.classifier, "--data", models.data, "--labels", "labels")
    kept = [step for step in record["steps"] if step["accepted"]]
    finished = [step["finished_seconds"] for step in record["steps"] if step["seconds_before"] > 0]
    assert finished == sorted(finished) and finished[0] > 0
    assert record["first_answer_seconds"] == kept[0]["finished_seconds"]
    assert record["first_answer_seconds"] <= record["most_gain_seconds"] <= record["spent_seconds"]
    assert record["most_gain_seconds"] in finished
    text = lissome("optimize", models.classifier, "--data", models.data, *QUICK, "-o", "out.lissome").stdout
    (line,) = (line for line in text.splitlines() if line.startswith("search "))
    assert re.search(r"first answer after .+, 90 % of the gain after .+, .+ in all", line), line


def test_weights_alone_are_tried_where_they_are_most_of_a_model(lissome: Lissome, models: SimpleNamespace):
    steps = {step["name"]: step for step in optimize(lissome, models.classifier, "--data", models.data)["steps"]}
    for name in ("int8 weights", "int4 weights"):
        assert any("layers have" in note for note in steps[name]["notes"]), steps[name]
    pictures = models.folder / "many.npz"
    np.savez(pictures, images=np.random.default_rng(0).standard_normal((64, 3, 32, 32), np.float32))
    steps = {step["name"]: step for step in optimize(lissome, models.pictures, "--data", pictures)["steps"]}
    assert "of the weights" in steps["int8 weights"]["reason"] or steps["int8 weights"]["notes"]


def test_without_labels_judges_agreement(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    np.savez(tmp_path / "x.npz", input=models.samples.numpy())
    record = optimize(lissome, models.classifier, "--data", "x.npz")
    check_steps(record)
    assert record["metric"] == "cosine" and record["quality_original"] == pytest.approx(1)
    assert "against the original model" in record["data"]


@pytest.mark.parametrize("form", ["several a sample", "ignored"])
def test_integer_labels_that_are_no_classes_are_left_aside(
    lissome: Lissome, models: SimpleNamespace, tmp_path: Path, form: str
):
    labels = np.asarray(models.labels).copy()
    labels[::3] = -100
    stored = np.stack([labels, labels], 1) if form == "several a sample" else labels
    np.savez(tmp_path / "d.npz", input=models.samples.numpy(), labels=stored)
    record = optimize(lissome, models.classifier, "--data", "d.npz", "--labels", "labels")
    assert record["metric"] == "cosine" and "the labels are not used: " in record["data"], record["data"]
    done = lissome("quantize", models.classifier, "--data", "d.npz", "--labels", "labels", "--json", "-o", "q.lissome")
    assert done.returncode == 0 and any("no top-1 accuracy" in note for note in read_answer(done)["notes"]), done.stderr
    asked = lissome("optimize", models.classifier, "--data", "d.npz", "--labels", "labels", "--metric", "top1", *QUICK, "-o", "o.lissome")
    assert asked.returncode in (2, 4), asked.stderr


def test_a_processor_without_vnni_is_warned_what_int8_can_win(lissome: Lissome, models: SimpleNamespace):
    words = ("optimize", models.classifier, "--data", models.data, "--labels", "labels", *QUICK, "--json", "-o", "o.lissome")
    done = lissome(*words, env={**os.environ, "NO_COLOR": "1", "LISSOME_ISA": "avx512"})
    assert done.returncode == 0, done.stderr
    message = (
        r"int8 (will hardly pay in time|pays less in time than it could) here: "
        r"without VNNI 8-bit products reach (\d\.\d\d) of the f32 rate \(\d+ against \d+ billion a second\)"
    )
    found = re.search("note: " + message, done.stderr)
    assert found, done.stderr
    assert found.start() < done.stderr.index("measuring the original"), "the note comes before anything is tried"
    assert (float(found[2]) < 1.5) == ("hardly" in found[1])
    notes = [note for step in read_answer(done)["steps"] if step["name"] == "int8" for note in step["notes"]]
    assert any(re.search(message, note) for note in notes)


@pytest.mark.parametrize(("precision", "words"), [("f32", set()), ("bf16", {"bf16"}), ("int8", {"int8", "dynamic"})])
def test_precision_is_the_only_one_tried(lissome: Lissome, models: SimpleNamespace, precision: str, words: set[str]):
    record = optimize(lissome, models.classifier, "--data", models.data, "--labels", "labels", "--precision", precision)
    tried = {step["name"].split(",")[0].split(" ")[0] for step in record["steps"] if step["stage"] == "computation"}
    assert tried == words


def test_unknown_precision(lissome: Lissome, models: SimpleNamespace):
    done = lissome("optimize", models.classifier, "--precision", "f16", "-o", "out.lissome")
    assert done.returncode == 2 and "f32, bf16 or int8" in done.stderr


def test_model_of_a_fixed_batch(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    """Calibration fills its last batch up with samples that it has seen."""
    exported = torch.export.export(models.modules["classifier"], (models.samples[:7],))
    torch.export.save(exported, tmp_path / "seven.pt2")
    record = optimize(lissome, "seven.pt2", "--data", models.data, "--precision", "int8", "--batch", "7")
    assert any("int8" in step["name"] and "layers in int8" in " ".join(step["notes"]) for step in record["steps"])


def test_int8_tells_what_it_smoothed(lissome: Lissome, tmp_path: Path):
    """A norm with one channel forty times as large as the others, before a linear."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.Linear(64, 64)).eval()
    with torch.no_grad():
        module[0].weight[5] = 40
    samples = torch.randn(512, 64)
    torch.export.save(torch.export.export(module, (samples[:8],)), tmp_path / "outlier.pt2")
    np.savez(tmp_path / "x.npz", input=samples.numpy())
    record = optimize(lissome, "outlier.pt2", "--data", "x.npz", "--precision", "int8", "--batch", "8")
    notes = [note for step in record["steps"] for note in step["notes"]]
    wanted = re.compile(r"1 smoothed at strength 0\.\d by the norm before it: ([\d.]+) dB -> ([\d.]+) dB")
    matches = [wanted.fullmatch(note) for note in notes]
    gains = [float(match[2]) - float(match[1]) for match in matches if match]
    assert gains and min(gains) > 3


def test_without_data_only_exact_steps(lissome: Lissome, models: SimpleNamespace):
    done = lissome("optimize", models.pictures, *QUICK, "-o", "out.lissome", "--json")
    assert done.returncode == 0 and "without --data" in done.stderr
    record = read_answer(done)
    check_steps(record)
    assert record["quality_final"] is None
    assert not any("int8" in step["name"] and step["accepted"] for step in record["steps"])
    assert "generated" in record["data"]


def test_goal_out_of_reach(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    record = optimize(lissome, models.pictures, "--latency", "1us", code=3)
    (latency,) = (goal for goal in record["goals"] if goal["name"] == "latency")
    assert not latency["met"] and latency["measured"] > 1e-6
    assert any("compression" in line for line in latency["advice"])
    assert any("hardware" in line for line in latency["advice"])
    assert "slowest layer" in record["blocker"] and "goal not met: latency" in record["answer"]
    assert lissome("run", "out.lissome", "--input", _pictures(tmp_path)).returncode == 0


def _pictures(folder: Path) -> Path:
    np.savez(folder / "p.npz", images=np.zeros((1, 3, 32, 32), np.float32))
    return folder / "p.npz"


def test_memory_goal_out_of_reach(lissome: Lissome, models: SimpleNamespace):
    record = optimize(lissome, models.classifier, "--memory", "1kB", code=3)
    (memory,) = (goal for goal in record["goals"] if goal["name"] == "memory")
    assert not memory["met"] and memory["advice"] and "weights" in record["blocker"]


def test_goals_of_size_throughput_and_first_answer(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    goals = ("--throughput", "10/s", "--first-answer", "10s", "--max-loss", "50%")
    record = optimize(lissome, models.classifier, "--data", models.data, "--size", "1GiB", *goals)
    found = {goal["name"]: goal for goal in record["goals"]}
    assert all(found[name]["met"] for name in ("size", "throughput", "first answer")), found
    assert found["throughput"]["at_least"] and not found["size"]["at_least"]
    assert found["size"]["measured"] == record["file_bytes"]
    assert abs((tmp_path / "out.lissome").stat().st_size - record["file_bytes"]) < 8192 + 0.02 * record["file_bytes"]
    assert f"samples a second in calls of {record['throughput_batch']}" in record["answer"]
    # A size that only weights of fewer bits reach, at whatever cost in time.
    smaller = optimize(lissome, models.classifier, "--data", models.data, "--size", "1kB", *goals, code=3)
    (size,) = (goal for goal in smaller["goals"] if goal["name"] == "size")
    assert size["advice"] and "weights take" in smaller["blocker"]
    assert any("comes closer to the size goal" in step["reason"] for step in smaller["steps"])
    # Of files as small as these, the records of the two searches differ by more than the weights do.
    assert smaller["size_final"] <= record["size_final"]
    for words in (("--throughput", "0"), ("--throughput", "fast"), ("--size", "none"), ("--first-answer", "-1s")):
        done = lissome("optimize", models.classifier, "-o", "none.lissome", *words)
        assert done.returncode == 2 and not (tmp_path / "none.lissome").exists(), done.stderr


def test_a_goal_of_size_counts_the_record_of_the_file(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Embedding(400, 16), torch.nn.Flatten(), torch.nn.Linear(128, 32), torch.nn.Linear(32, 4))
    rows = torch.randint(0, 400, (200, 8))
    shapes = ({0: torch.export.Dim("n", max=512)},)
    torch.export.save(torch.export.export(net.eval(), (rows[:4],), dynamic_shapes=shapes), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=rows)
    words = ("net.pt2", "--data", "d.npz", "--max-loss", "90%")
    whole = optimize(lissome, *words)
    halved = next(step["size_after"] for step in whole["steps"] if step["name"].startswith("bf16"))
    # Above the weights of bf16 by less than what the record takes: a smaller form is needed.
    goal = halved + 2500
    record = optimize(lissome, *words, "--size", goal)
    assert record["file_bytes"] <= goal and (tmp_path / "out.lissome").stat().st_size == record["file_bytes"]
    (size,) = (one for one in record["goals"] if one["name"] == "size")
    assert size["met"]


def test_advice_on_size_names_the_reason_of_the_step(lissome: Lissome, models: SimpleNamespace):
    done = optimize(lissome, models.classifier, "--data", models.data, "--size", "1kB", "--max-loss", "99%", code=3)
    (advice,) = ("\n".join(goal["advice"]) for goal in done["goals"] if goal["name"] == "size")
    left_out = [step for step in done["steps"] if "int4" in step["name"] and not step["accepted"]]
    assert "allow more loss" not in advice
    assert all(step["reason"] in advice for step in left_out[:1])


def test_versions_of_the_front_are_kept_and_picked_later(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    words = ("--data", models.data, "--labels", "labels")
    record = optimize(lissome, models.classifier, *words, "--front", "front")
    written = (tmp_path / "out.lissome").stat().st_size
    assert record["file_bytes"] == written
    points = record["front"]
    assert points and [point["ratio"]["median"] for point in points] == sorted(p["ratio"]["median"] for p in points)
    assert {path.name for path in (tmp_path / "front").iterdir()} == {p["file"] for p in points} | {"front.json"}
    assert {p["file"]: (tmp_path / "front" / p["file"]).stat().st_size for p in points} == {p["file"]: p["size"] for p in points}
    for point in points:
        others = [other for other in points if other is not point]
        assert not any(
            other["ratio"]["median"] <= point["ratio"]["median"] and other["memory"] <= point["memory"]
            and other["size"] <= point["size"] and other["quality"] >= point["quality"] for other in others
        ), (point, others)
        pick = ("optimize", models.classifier, "--front", "front", "--pick", point["name"], "-o", "picked.lissome")
        done = lissome(*pick, "--json")
        assert done.returncode == 0, done.stderr
        assert read_answer(done)["picked"] == point | {"chosen": read_answer(done)["picked"]["chosen"]}
        assert (tmp_path / "picked.lissome").read_bytes() == (tmp_path / "front" / point["file"]).read_bytes()
        assert lissome("run", "picked.lissome", "--input", models.one).returncode == 0
    for refused, text in (
        ((models.classifier, "--front", "front", "--pick", "none"), "has no version 'none'; it has "),
        ((models.pictures, "--front", "front", "--pick", points[0]["name"]), "not of "),
        ((models.classifier, "--front", "nowhere", "--pick", "x"), "'nowhere/front.json' is not there"),
        ((models.classifier, "--pick", "x"), "--pick needs --front"),
        ((models.classifier, "--front", "front"), "holds the front of an earlier search"),
    ):
        done = lissome("optimize", *refused, "-o", "none.lissome")
        assert done.returncode == 2 and text in done.stderr, done.stderr
        assert not (tmp_path / "none.lissome").exists()
    point = {"name": "x", "seconds": 1.0, "memory": 1, "size": 1}
    for changed, text in (
        ({"file": "../a"}, "outside of its folder"),
        ({"file": ".."}, "outside of its folder"),
        ({"file": "a\0b"}, "outside of its folder"),
        ({"file": 5}, "is no front"),
        ({"file": "a", "name": 5}, "is no front"),
        ({"file": "a", "seconds": "1"}, "is no front"),
        ({"file": "a", "memory": 1e300}, "is no front"),
    ):
        front = {"model": str(models.classifier), "points": [point | changed]}
        (tmp_path / "front" / "front.json").write_text(json.dumps(front))
        done = lissome("optimize", models.classifier, "--front", "front", "--pick", "x", "-o", "none.lissome")
        assert done.returncode == 4 and text in done.stderr, done.stderr
        assert not (tmp_path / "none.lissome").exists()


def test_single_numbers_are_judged_by_their_error(lissome: Lissome, tmp_path: Path):
    """Their cosine is agreement of signs."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(16, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).eval()
    samples = torch.randn(256, 16)
    batch = torch.export.Dim("batch", min=1)
    torch.export.save(torch.export.export(module, (samples[:4],), dynamic_shapes={"input": {0: batch}}), tmp_path / "m.pt2")
    np.savez(tmp_path / "x.npz", input=samples.numpy(), target=module(samples).detach().numpy())
    record = optimize(lissome, "m.pt2", "--data", "x.npz", "--max-loss", "0")
    assert record["metric"] == "rel_error"
    lossy = [step for step in record["steps"] if step["quality_after"] and step["quality_after"] > 1e-3]
    assert not any(step["accepted"] for step in lossy)
    done = lissome("optimize", "m.pt2", "--data", "x.npz", "--labels", "target", "--metric", "top1", "-o", "o.lissome")
    assert done.returncode == 2 and "top1 takes one integer for each sample" in done.stderr, done.stderr


def test_goal_already_met_says_so(lissome: Lissome, models: SimpleNamespace):
    record = optimize(lissome, models.classifier, "--latency", "10s")
    check_steps(record)
    (latency,) = (goal for goal in record["goals"] if goal["name"] == "latency")
    assert latency["met"] and not record["blocker"]
    assert "already" in record["answer"]


def test_nothing_to_gain_keeps_nothing(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    """A model that a search has finished already offers nothing that pays again by much: whatever is kept has paid."""
    optimize(lissome, models.classifier, "--keep-original")
    (tmp_path / "out.lissome").rename(tmp_path / "finished.lissome")
    check_steps(optimize(lissome, "finished.lissome"))


def test_same_seed_same_split(lissome: Lissome, models: SimpleNamespace):
    def search(seed: int) -> dict[str, Any]:
        words = ("--data", models.data, "--labels", "labels", "--seed", seed)
        return optimize(lissome, models.classifier, *words)

    first, second = search(3), search(3)
    assert first["data"] == second["data"] and first["seed"] == 3
    qualities = [{s["name"]: s["quality_after"] for s in r["steps"] if s["quality_after"]} for r in (first, second)]
    shared = qualities[0].keys() & qualities[1].keys()
    assert all(qualities[0][name] == qualities[1][name] for name in shared)


def test_interrupt_keeps_the_best_so_far(program: Path, lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    words = [program, "optimize", models.pictures, "-o", "out.lissome", "--json", "--threads", "1"]
    child = subprocess.Popen(
        list(map(str, words)), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert any("%" in line for line in child.stderr)  # the first line of progress: the search is on
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    record = read_answer(output)
    assert record["interrupted"] and "interrupted" in record["answer"]
    assert lissome("run", "out.lissome", "--input", _pictures(tmp_path)).returncode == 0


def test_words_for_people(lissome: Lissome, models: SimpleNamespace):
    done = lissome("optimize", models.classifier, *QUICK, "-o", "out.lissome")
    assert done.returncode == 0
    first = done.stdout.splitlines()[0]
    assert "faster" in first and "instead of" in first or "against" in first
    for word in ("Steps", "Time by layer", "machine", "command  lissome optimize"):
        assert word in done.stdout
    assert "\033[" not in done.stdout + done.stderr
    assert "written to out.lissome" in done.stderr


def test_keep_steps(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    record = optimize(lissome, models.pictures, "--keep-steps", "steps")
    accepted = [step for step in record["steps"] if step["accepted"]]
    before = sorted((tmp_path / "steps").glob("*-before.lissome"))
    after = sorted((tmp_path / "steps").glob("*-after.lissome"))
    assert len(before) == len(after) == len(accepted)


def test_time_bounds_the_search_and_leaves_the_prepared_form(
    lissome: Lissome, read_json: Lissome, models: SimpleNamespace, tmp_path: Path
):
    """Loading and preparing are done whatever the time; what comes then ends with it, and is said."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    module = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).eval()
    torch.export.save(torch.export.export(module, (torch.randn(1, 32, 256),)), tmp_path / "encoder.pt2")
    np.savez(tmp_path / "x.npz", src=torch.randn(400, 32, 256).numpy())
    for seconds in (1, 4):
        words = ("--data", "x.npz", "--time", f"{seconds}s", "--threads", "1", "-o", "fast.lissome")
        record = read_json("optimize", "encoder.pt2", *words)
        first = record["steps"][0]
        assert first["accepted"] and first["name"].startswith("prepared")
        # What is done whatever the time: the original's answers, the first step, one call of each at the end.
        least = first["spent_seconds"] + 40 * record["seconds_original"]
        assert record["spent_seconds"] <= max(seconds, least) + max(1, 0.1 * seconds)
        left_out = [step for step in record["steps"] if step["reason"].startswith("no time left")]
        message = re.search(r"stopped by --time after (\d+) of (\d+) steps", record["answer"])
        assert bool(message) == bool(left_out)
        if message:
            assert int(message[2]) - int(message[1]) == len(left_out)
        assert read_json("audit", "fast.lissome", "--expect", "fallback=none")["as_expected"]
    assert left_out or len(record["steps"]) > 3
