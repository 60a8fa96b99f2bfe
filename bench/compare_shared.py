"""How much engines lose beside other work: lissome, ONNX Runtime and OpenVINO in turns, in scenes of a shared machine.

    compare_shared.py [--only mlp,resnet18] [--scenes quiet,bursts] [--rounds N] [--json PATH]
    compare_shared.py --list

Models must have been prepared (bench/run --shared does). A figure is the median over rounds of the mean call of a
round, so that calls that hang count; `loss` is that against the same engine's quiet time. Claims, each for every model,
precision and scene: lissome loses no more than the peer that loses least, and takes at most 1.15 times what it takes with
one thread in the same scene. Exit status 1 when a claim is not met.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

from engines import ENGINES, Engine, Missing, Place, Process, note, order_turns, pin_to
from figures import bootstrap_ratio
from models import MODELS
from scenes import SCENES, Absent, make_scene

BUILD = pathlib.Path(__file__).parent.parent / "build"
WANTED = ["mobilenet", "net", "mlp", "minilm16", "minilm", "vit", "resnet18"]
NAMES = ["lissome_f32", "ort_f32", "ov_f32", "lissome_int8", "ort_int8", "ov_int8"]
THREADS = 2
ROUND_SECONDS = 0.2
MOST_OF_ONE_THREAD = 1.15
SETTLE_SECONDS = 0.3

Rounds = dict[str, list[float]]  # by contender: the mean call of each round, in milliseconds


def start(engines: list[Engine], folder: pathlib.Path, python: pathlib.Path, worker: pathlib.Path) -> dict[str, Process]:
    """Every engine with two threads, and lissome with one too."""
    processes = {}
    for engine in engines:
        for threads in (THREADS, 1) if engine.ours else (THREADS,):
            name = engine.name if threads == THREADS else f"{engine.name} one thread"
            try:
                processes[name] = Process(Place(python, worker, threads).command(engine, folder, "held_out.npz"))
            except Missing as reason:
                note(f"{folder.name}: no {name}: {reason}", end="\n")
    return processes


def measure_scene(processes: dict[str, Process], runs: dict[str, int], rounds: int) -> Rounds:
    means: Rounds = {name: [] for name in processes}
    for index in range(rounds):
        for name in order_turns(list(processes), index):
            means[name].append(statistics.fmean(processes[name].run(0, runs[name])))
    return means


def measure_model(processes: dict[str, Process], scenes: list[str], cores: list[int], rounds: int, title: str) -> dict[str, Rounds]:
    runs = {}
    for name, process in processes.items():
        runs[name] = max(2, min(int(ROUND_SECONDS * 1e3 / min(process.run(2, 4))), 2000))
    measured = {}
    for scene in scenes:
        note(f"{title}: {scene}")
        try:
            with make_scene(scene, cores) as enter:
                enter([process.process.pid for process in processes.values()])
                time.sleep(SETTLE_SECONDS)
                measured[scene] = measure_scene(processes, runs, rounds)
        except Absent as reason:
            note(f"{title}: no scene '{scene}': {reason}", end="\n")
    return measured


def judge(model: str, precision: str, measured: dict[str, Rounds]) -> list[dict]:
    """One row a scene: what lissome and the peers lose, and what one thread would have taken."""
    ours, one = f"lissome_{precision}", f"lissome_{precision} one thread"
    peers = [name for name in (f"ort_{precision}", f"ov_{precision}") if name in measured["quiet"]]
    rows = []
    for scene, means in measured.items():
        if ours not in means:
            continue
        losses = {name: statistics.median(means[name]) / statistics.median(measured["quiet"][name]) for name in (ours, *peers)}
        of_one = statistics.median(means[ours]) / statistics.median(means[one])
        low, _ = bootstrap_ratio([[value] for value in means[ours]], [[value] for value in means[one]])
        row = {"model": model, "precision": precision, "scene": scene, "milliseconds": statistics.median(means[ours])}
        row |= {"one_thread_ms": statistics.median(means[one]), "of_one_thread": of_one, "loss": losses[ours]}
        row |= {f"{name}_loss": losses[name] for name in peers}
        best = min((losses[name] for name in peers), default=None)
        row["beats_peers"] = scene == "quiet" or best is None or losses[ours] <= best
        row["beats_one_thread"] = of_one <= MOST_OF_ONE_THREAD or low <= MOST_OF_ONE_THREAD
        rows.append(row)
    return rows


def format_row(row: dict) -> str:
    losses = (row.get(f"{peer}_{row['precision']}_loss", float("nan")) for peer in ("ort", "ov"))
    peers = "".join(f"{loss:8.2f}" for loss in losses)
    verdict = "" if row["beats_peers"] else "  loses more than a peer"
    verdict += "" if row["beats_one_thread"] else "  one thread is faster"
    return (f"{row['model']:11}{row['precision']:5} {row['scene']:13}{row['milliseconds']:10.3f}{row['one_thread_ms']:10.3f}"
            f"{row['of_one_thread']:8.2f}{row['loss']:8.2f}{peers}{verdict}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="the models, one a line")
    parser.add_argument("--only", default=",".join(WANTED))
    parser.add_argument("--scenes", default=",".join(SCENES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--python", type=pathlib.Path, default=BUILD / "bench" / "peers" / "bin" / "python")
    parser.add_argument("--worker", type=pathlib.Path, default=BUILD / "release" / "bin" / "lissome_bench_worker")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(WANTED))
        return 0
    scenes = ["quiet", *(scene for scene in arguments.scenes.split(",") if scene != "quiet")]
    unknown = [*(set(scenes) - set(SCENES)), *(set(arguments.only.split(",")) - {model.name for model in MODELS})]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}")
    cores = sorted(os.sched_getaffinity(0))[:THREADS]
    pin_to(cores)
    rows = []
    print(f"{'':30}{'lissome':>10}{'1 thread':>10}{'ratio':>8}{'loss':>8}{'ORT':>8}{'OpenVINO':>9}")
    for name in arguments.only.split(","):
        folder = BUILD / "bench" / "models" / name
        for precision in ("f32", "int8"):
            engines = [engine for engine in ENGINES if engine.name in NAMES and engine.precision == precision]
            processes = start(engines, folder, arguments.python, arguments.worker)
            try:
                measured = measure_model(processes, scenes, cores, arguments.rounds, f"{name} {precision}")
            finally:
                for process in processes.values():
                    process.stop()
            note("")
            for row in judge(name, precision, measured):
                print(format_row(row), flush=True)
                rows.append(row)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    lost = [row for row in rows if not (row["beats_peers"] and row["beats_one_thread"])]
    print(f"{len(rows) - len(lost)} of {len(rows)} rows meet both claims")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
