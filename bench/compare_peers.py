"""Compares lissome with PyTorch, Inductor, ONNX Runtime and OpenVINO, each in its own process, in turns on the same cores.

    compare_peers.py [--only net,minilm] [--engines eager,lissome] [--full] [--json PATH] [--picture PATH]

Models and engines must have been prepared (bench/run does). Batch 1 and two threads; --full adds batch 8, one thread
and TorchScript, and goes on where it was interrupted: what is in build/bench/results stays, until the program changes.
Exit status 1 when a claim is not met.
"""

import argparse
import hashlib
import json
import os
import pathlib
import sys
import time

import figures
import picture
from convolutions import judge_convolutions
from engines import ENGINES, Engine, Missing, Place, Process, measure_lean, note, order_turns, pin_to
from models import MODELS, Model, folder_name

HERE = pathlib.Path(__file__).parent
BUILD = HERE.parent / "build"
SETTINGS = [(1, 2), (8, 2), (1, 1)]  # batch, threads; the first is what is claimed
MOST_ROUNDS, LEAST_ROUNDS = 24, 8
ROUND_SECONDS = 0.12  # of one engine
MOST_RUNS = 100
WARM_UP_SHARE = 0.2
LEAN_ANSWERS, LEAN_STARTS = 100, 3


def choose_runs(process: Process) -> tuple[int, int]:
    """Calls a round, so that a round of every engine takes about as long."""
    milliseconds = min(process.run(1, 4))
    runs = int(min(max(ROUND_SECONDS * 1e3 / milliseconds, 2), MOST_RUNS))
    return max(1, int(runs * WARM_UP_SHARE)), runs


def measure_rounds(processes: dict[str, Process], title: str, seconds: float) -> dict[str, figures.Rounds]:
    runs = {name: choose_runs(process) for name, process in processes.items()}
    rounds: dict[str, figures.Rounds] = {name: [] for name in processes}
    end = time.monotonic() + seconds
    for index in range(MOST_ROUNDS):
        if index >= LEAST_ROUNDS and time.monotonic() > end:
            break
        note(f"{title}: round {index + 1} of at most {MOST_ROUNDS}")
        for name in order_turns(list(processes), index):
            rounds[name].append(processes[name].run(*runs[name]))
    return rounds


def start_processes(engines: list[Engine], folder: pathlib.Path, place: Place, title: str):
    processes: dict[str, Process] = {}
    missing = []
    for engine in engines:
        note(f"{title}: starting {engine.title} {engine.precision}")
        try:
            processes[engine.name] = Process(place.command(engine, folder, "held_out.npz"))
        except Missing as reason:
            missing.append({"name": engine.name, "title": engine.title, "precision": engine.precision, "missing": str(reason)})
    return processes, missing


def measure_leanness(
    rows: dict[str, dict], engines: list[Engine], folder: pathlib.Path, place: Place, title: str, answers: int, most_starts: int
) -> None:
    for engine in engines:
        if engine.name not in rows or not engine.lean:
            continue
        note(f"{title}: starts of {engine.title} {engine.precision}")
        # A compiler's start takes as long as all others together: once is enough to tell.
        starts = 1 if engine.name in ("inductor", "torchscript") else most_starts
        try:
            rows[engine.name] |= measure_lean(place.command(engine, folder, "row.npz"), answers, starts)
        except Missing as reason:
            note(f"{title}: no start of {engine.title} {engine.precision}: {reason}", end="\n")


def add_file_facts(rows: dict[str, dict], folder: pathlib.Path) -> None:
    """Sizes of our files and of what they hold, as bench/prepare.cpp counted them."""
    prepared = json.loads((folder / "prepared.json").read_text(encoding="utf-8"))
    for row in rows.values():
        if row["ours"]:
            facts = prepared.get(row["precision"], {})
            row |= {key: value for key, value in facts.items() if key.endswith("_bytes")}


def measure_model(
    name: str, folder: pathlib.Path, title: str, batch: int, engines: list[Engine], place: Place, seconds: float,
    lean_answers: int = LEAN_ANSWERS, lean_starts: int = LEAN_STARTS,
) -> dict:
    """Times what lies in `folder` in all engines, by turns; then their starts, each up to so many answers."""
    model_title, title = title, f"{title}, batch {batch}, {place.threads} threads"
    began = time.monotonic()
    processes, missing = start_processes(engines, folder, place, title)
    try:
        rounds = measure_rounds(processes, title, seconds)
        note(f"{title}: outputs")
        outputs = {name: process.read_outputs() for name, process in processes.items()}
    finally:
        for process in processes.values():
            process.stop()
    reference = outputs.get("eager", next(iter(outputs.values())))
    rows = {}
    for engine in engines:
        if engine.name in rounds:
            error = figures.relative_error(outputs[engine.name], reference)
            facts = {"title": engine.title, "precision": engine.precision, "ours": engine.ours, "error": error}
            rows[engine.name] = facts | figures.summarize(rounds[engine.name])
    compared = figures.judge_rows(rows, rounds)
    if batch == 1:
        measure_leanness(rows, engines, folder, place, title, lean_answers, lean_starts)
        add_file_facts(rows, folder)
    note("")
    result = {"name": name, "title": model_title, "batch": batch, "threads": place.threads, "rows": rows}
    return result | {"missing": missing, "compared": compared, "took_s": time.monotonic() - began}


def fingerprint(place: Place, engines: list[Engine]) -> str:
    """Changes with the program and with what is compared."""
    digest = hashlib.sha256()
    for path in sorted(place.worker.parent.parent.glob("lib/liblissome_runtime.so*")) + [place.worker]:
        digest.update(path.read_bytes())
    digest.update(" ".join(engine.name for engine in engines).encode())
    return digest.hexdigest()[:16]


def measure_all(models: list[Model], engines: list[Engine], arguments: argparse.Namespace) -> list[dict]:
    results = []
    for batch, threads in SETTINGS if arguments.full else SETTINGS[:1]:
        place = Place(arguments.python, arguments.worker, threads)
        pin_to(sorted(os.sched_getaffinity(0))[: max(threads, 2)])
        stamp = fingerprint(place, engines)
        for model in models:
            path = BUILD / "bench" / "results" / f"{model.name}_batch{batch}_threads{threads}.json"
            if arguments.full and path.exists():
                kept = json.loads(path.read_text(encoding="utf-8"))
                if kept["stamp"] == stamp:
                    results.append(kept)
                    continue
            folder = BUILD / "bench" / "models" / folder_name(model.name, batch)
            result = measure_model(model.name, folder, model.title, batch, engines, place, arguments.seconds)
            result |= {"stamp": stamp}
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            print(figures.format_table(result), flush=True)
            results.append(result)
    return results


def judge_resnet(results: list[dict], program: pathlib.Path) -> list[dict]:
    for result in results:
        ours = result["rows"].get("lissome_f32")
        if result["name"] == "resnet18" and ours:
            folder = BUILD / "bench" / "models" / "resnet18"
            return judge_convolutions(program, folder, ours["median_ms"], result["threads"])
    return []


def choose_engines(text: str | None, full: bool) -> list[Engine]:
    """Names, or what several names begin with (lissome, ov)."""
    if text is None:
        return [engine for engine in ENGINES if full or not engine.full]
    words = text.split(",")
    for word in words:
        if not any(matches(engine, word) for engine in ENGINES):
            raise SystemExit(f"There is no engine {word}; there are {', '.join(engine.name for engine in ENGINES)}.")
    return [engine for engine in ENGINES if any(matches(engine, word) for word in words)]


def matches(engine: Engine, word: str) -> bool:
    return engine.name == word or engine.name.startswith(word + "_")


def choose_models(text: str | None) -> list[Model]:
    if text is None:
        return MODELS
    names = {model.name: model for model in MODELS}
    for word in text.split(","):
        if word not in names:
            raise SystemExit(f"There is no model {word}; there are {', '.join(names)}.")
    return [names[word] for word in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="models, by name")
    parser.add_argument("--engines", help="such as eager,ort,lissome_int8")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--seconds", type=float, default=35, help="of rounds, a model")
    parser.add_argument("--python", type=pathlib.Path, default=BUILD / "bench" / "peers" / "bin" / "python")
    parser.add_argument("--worker", type=pathlib.Path, default=BUILD / "release" / "bin" / "lissome_bench_worker")
    parser.add_argument("--json", type=pathlib.Path, default=BUILD / "bench" / "peers.json")
    parser.add_argument("--picture", type=pathlib.Path, default=BUILD / "bench" / "peers.svg")
    arguments = parser.parse_args()
    began = time.monotonic()
    results = measure_all(choose_models(arguments.only), choose_engines(arguments.engines, arguments.full), arguments)
    claimed = [result for result in results if (result["batch"], result["threads"]) == SETTINGS[0]]
    claims = figures.summarize_models(claimed) + judge_resnet(claimed, arguments.worker.parent / "lissome")
    record = {"machine": picture.name_processor(), "took_s": time.monotonic() - began, "claims": claims, "models": results}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    arguments.picture.write_text(picture.draw(claimed), encoding="utf-8")
    print(f"\n{record['machine']}, intervals of 99 %, {record['took_s'] / 60:.0f} minutes")
    print(figures.format_claims(claims))
    print(f"\n{arguments.json}\n{arguments.picture}")
    return 0 if all(claim["met"] for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
