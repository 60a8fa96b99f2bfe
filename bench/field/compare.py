"""Compares lissome with the peers over the field: architectures that its kernels were not made for.

    compare.py [--only NAME,...] [--engines lissome,ov_f32,...] [--batch 8] [--threads 1] [--keep]

Each model is exported, made for each engine and timed, all rounds interleaved; what was measured stays in
build/bench/field and is measured again only when the program or the engines change, so that an interrupted run goes on.
Ends with a table and a picture. Held-out models (see catalog.py) have a table of their own. --keep writes the ratios to
history/PROCESSOR.json; a later run whose ratio is for sure 3 % below a kept one fails, as does a claim that is not met.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

BENCH = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(BENCH))

import figures  # noqa: E402
import picture  # noqa: E402
from compare_peers import choose_engines, fingerprint, measure_model  # noqa: E402
from engines import Engine, Place, note, pin_to  # noqa: E402

from field import catalog  # noqa: E402
from field.model import FieldModel  # noqa: E402

BUILD = BENCH.parent / "build"
FIELD = BUILD / "bench" / "field"
HISTORY = pathlib.Path(__file__).parent / "history"
GOALS = {"held out": {"f32": 1.1, "bf16": 1.1, "int8": 1.15}, "open": {"f32": 1.2, "bf16": 1.2, "int8": 1.25}}
LEAST = {"held out": 0.97, "open": 1.0}  # of a single model
KEPT_SHARE = 0.97
LEAN_ANSWERS, LEAN_STARTS = 3, 1


def is_older(path: pathlib.Path, sources: list[pathlib.Path]) -> bool:
    return not path.exists() or any(source.stat().st_mtime > path.stat().st_mtime for source in sources)


def run_step(title: str, command: list[object], log: pathlib.Path) -> bool:
    """Runs one step of the preparation; its output is in `log`."""
    note(title)
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(list(map(str, command)), stdout=file, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        note(f"{title}: failed, see {log}", end="\n")
    return done.returncode == 0


def prepare(model: FieldModel, folder: pathlib.Path, engines: list[Engine], arguments: argparse.Namespace) -> bool:
    """Exports a model and makes it for the engines, as far as that has not been done."""
    folder.mkdir(parents=True, exist_ok=True)
    title = f"{model.name}, batch {arguments.batch}"
    if not (folder / "model.pt2").exists():
        command = [arguments.python, BENCH / "field" / "export.py", model.name, arguments.batch, folder]
        if not run_step(f"{title}: export", command, folder / "export.log"):
            return False
    programs = [arguments.worker.with_name("lissome_bench_prepare"), *BUILD.glob("release/lib/liblissome_torch.so")]
    ours = sorted({engine.precision for engine in engines if engine.ours})
    made = folder / f"made_{'_'.join(ours)}"
    if ours and is_older(made, programs):
        for path in [folder / "prepared.json", *folder.glob("*.lissome")]:
            path.unlink(missing_ok=True)
        command = [programs[0], folder / "model.pt2", folder / "calibration.npz", arguments.threads, folder, *ours]
        if run_step(f"{title}: lissome's models", command, folder / "prepare.log"):
            made.touch()
    wanted = [engine.name for engine in engines if engine.name.startswith(("ort_", "ov_"))]
    choices = json.loads((folder / "peers.json").read_text()) if (folder / "peers.json").exists() else {}
    missing = [name for name in wanted if name not in choices]
    if missing:
        command = [arguments.python, BENCH / "prepare_peers.py", folder, arguments.threads, *missing]
        run_step(f"{title}: the peers' models", command, folder / "prepare_peers.log")
    return True


def measure(
    model: FieldModel, engines: list[Engine], place: Place, stamp: str, arguments: argparse.Namespace
) -> dict | None:
    name = model.name if arguments.batch == 1 else f"{model.name}_batch{arguments.batch}"
    path = FIELD / "results" / f"{name}_threads{arguments.threads}.json"
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["stamp"] == stamp:
            return kept
    if not prepare(model, FIELD / name, engines, arguments):
        return None
    result = measure_model(model.name, FIELD / name, model.title, arguments.batch, engines, place, arguments.seconds,
                           LEAN_ANSWERS, LEAN_STARTS)
    result |= {"stamp": stamp, "kind": model.kind, "held_out": catalog.is_held_out(model.name)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


def format_ratio(result: dict, precision: str) -> str:
    ours, compared = result["rows"].get(f"lissome_{precision}"), result["compared"].get(precision)
    if ours is None:
        return f"{'':36}"
    text = f"{ours['median_ms']:9.3f}"
    if compared is None:
        return f"{text:36}"
    low, high = compared["interval_99"]
    peer = compared["peer"].split("_")[0]
    return f"{text}{compared['ratio']:6.2f} [{low:.2f}, {high:.2f}] {peer:5}"


def format_rows(results: list[dict]) -> str:
    precisions = [p for p in figures.PRECISIONS if any(f"lissome_{p}" in result["rows"] for result in results)]
    head = f"{'':20}{'eager ms':>10}" + "".join(f"  {p + ' ms':>10}{'x the best peer':>20}{'':4}" for p in precisions)
    lines = [head]
    for result in sorted(results, key=lambda result: (result["kind"], result["name"])):
        eager = result["rows"].get("eager", {}).get("median_ms")
        line = f"{result['name']:20}" + (f"{eager:10.3f}" if eager else f"{'':10}")
        lines.append((line + "".join("  " + format_ratio(result, precision) for precision in precisions)).rstrip())
    return "\n".join(lines)


def list_claims(results: list[dict]) -> list[dict]:
    claims = []
    for part, goals in GOALS.items():
        chosen = [result for result in results if result["held_out"] == (part == "held out")]
        for precision, goal in goals.items():
            rows = {r["name"]: r["compared"][precision] for r in chosen if precision in r["compared"]}
            if not rows:
                continue
            mean = figures.geometric_mean([row["ratio"] for row in rows.values()])
            lost = [name for name, row in rows.items() if row["interval_99"][1] < LEAST[part]]
            claims.append({"what": f"{part}, {precision}: geometric mean of {len(rows)}", "figure": mean, "goal": goal,
                           "below": False, "met": mean >= goal, "detail": ""})
            claims.append({"what": f"{part}, {precision}: models for sure below {LEAST[part]}", "figure": len(lost),
                           "goal": 0, "below": True, "met": not lost, "detail": ", ".join(lost)})
    return claims


def name_row(result: dict, precision: str) -> str:
    return f"{result['name']} {precision}, batch {result['batch']}, threads {result['threads']}"


def history_path() -> pathlib.Path:
    return HISTORY / (re.sub(r"[^a-z0-9]+", "-", picture.name_processor().lower()).strip("-") + ".json")


def read_history() -> dict[str, dict]:
    path = history_path()
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def judge_history(results: list[dict]) -> list[dict]:
    """One claim: no ratio is for sure 3 % below the kept one."""
    kept = read_history()
    lost = []
    for result in results:
        for precision, row in result["compared"].items():
            before = kept.get(name_row(result, precision))
            if before and row["interval_99"][1] < KEPT_SHARE * before["interval_99"][0]:
                lost.append(f"{name_row(result, precision)}: {row['ratio']:.2f} after {before['ratio']:.2f}")
    return [{"what": "ratios for sure 3 % below the kept ones", "figure": len(lost), "goal": 0, "below": True,
             "met": not lost, "detail": "; ".join(lost)}]


def keep(results: list[dict]) -> None:
    path, kept = history_path(), read_history()
    for result in results:
        for precision, row in result["compared"].items():
            figures_of_row = {"ratio": round(row["ratio"], 4), "peer": row["peer"]}
            figures_of_row["interval_99"] = [round(bound, 4) for bound in row["interval_99"]]
            kept[name_row(result, precision)] = figures_of_row
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")
    print(f"kept in {path}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="models, by name; or open, or held-out")
    parser.add_argument("--engines", help="such as ort,ov,lissome; default: all but max-autotune and TorchScript")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20, help="of rounds, a model")
    parser.add_argument("--list", action="store_true", help="print the names, held-out ones marked")
    parser.add_argument("--keep", action="store_true", help="write the ratios to the history of this processor")
    parser.add_argument("--python", type=pathlib.Path, default=BUILD / "bench" / "peers" / "bin" / "python")
    parser.add_argument("--worker", type=pathlib.Path, default=BUILD / "release" / "bin" / "lissome_bench_worker")
    arguments = parser.parse_args()
    models = choose_models(arguments.only)
    if arguments.list:
        for model in models:
            print(f"{model.name:22}{'held out' if catalog.is_held_out(model.name) else 'open':10}{model.title}")
        return 0
    engines = [engine for engine in choose_engines(arguments.engines, False) if engine.lean]
    pin_to(sorted(os.sched_getaffinity(0))[: max(arguments.threads, 2)])
    place = Place(arguments.python, arguments.worker, arguments.threads)
    results, stamp = [], fingerprint(place, engines)
    for model in models:
        result = measure(model, engines, place, stamp, arguments)
        if result is not None:
            results.append(result)
    return report(results, arguments)


def choose_models(text: str | None) -> list[FieldModel]:
    models = catalog.collect()
    if text is None:
        return models
    if text in ("open", "held-out"):
        return [model for model in models if catalog.is_held_out(model.name) == (text == "held-out")]
    return [catalog.find(name) for name in text.split(",")]


def report(results: list[dict], arguments: argparse.Namespace) -> int:
    note("")
    for title, held_out in (("open", False), ("held out", True)):
        if rows := [result for result in results if result["held_out"] == held_out]:
            print(f"\n{title}\n{format_rows(rows)}")
    claims = list_claims(results) + judge_history(results)
    print(f"\n{picture.name_processor()}, batch {arguments.batch}, {arguments.threads} threads, intervals of 99 %")
    print(figures.format_claims(claims))
    drawing = FIELD / f"field_batch{arguments.batch}_threads{arguments.threads}.svg"
    drawing.write_text(picture.draw(results), encoding="utf-8")
    print(f"\n{drawing}")
    if arguments.keep:
        keep(results)
    return 0 if all(claim["met"] for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
