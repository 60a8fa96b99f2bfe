"""How much engines lose beside other work: lissome, ONNX Runtime and OpenVINO in turns, in scenes of a shared machine.

    compare_shared.py [--only mlp,resnet18,train-net] [--scenes quiet,bursts] [--rounds N] [--json PATH]
    compare_shared.py --list

Models must have been prepared (bench/run --shared does). train-NAME is a training step of NAME in f32, forward to
optimizer, against eager PyTorch. A figure is the median over rounds of the mean call of a
round, so that calls that hang count; `loss` is that against the same engine's quiet time. Claims, each for every model,
precision and scene: lissome loses no more than the peer that loses least, takes at most 1.15 times what it takes with
one thread in the same scene, and answers with the bits of the quiet scene, in at least 100 calls. Exit status 1 when a
claim is not met.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Iterator

from compare_training import make_command
from engines import ENGINES, Engine, Missing, Place, Process, note, order_turns, pin_to
from figures import bootstrap_ratio
from models import MODELS
from scenes import SCENES, Absent, make_scene
from training_nets import TRAININGS

BUILD = pathlib.Path(__file__).parent.parent / "build"
TRAIN = "train-"  # begins the name of a training step
WANTED = ["mobilenet", "net", "mlp", "minilm16", "minilm", "vit", "resnet18", "train-net", "train-vit"]
NAMES = ["lissome_f32", "ort_f32", "ov_f32", "lissome_int8", "ort_int8", "ov_int8"]
THREADS = 2
ROUND_SECONDS = 0.2
MOST_OF_ONE_THREAD = 1.15
SETTLE_SECONDS = 0.3
COMPARED_CALLS = 100

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


def start_training(folder: pathlib.Path) -> dict[str, Process]:
    """lissome's step with two threads and with one, and eager PyTorch's with two."""
    processes = {}
    wanted = {"lissome_f32": ("lissome", THREADS), "lissome_f32 one thread": ("lissome", 1), "eager_f32": ("eager", THREADS)}
    for name, (engine, threads) in wanted.items():
        try:
            processes[name] = Process(make_command(engine, folder, "f32", threads))
        except Missing as reason:
            note(f"{folder.name}: no {name}: {reason}", end="\n")
    return processes


def start_both(name: str, arguments: argparse.Namespace) -> Iterator[tuple[str, dict[str, Process]]]:
    """Processes of one model, by precision; each set is stopped before the next is started."""
    for precision in ("f32",) if name.startswith(TRAIN) else ("f32", "int8"):
        if name.startswith(TRAIN):
            processes = start_training(BUILD / "bench" / "training" / name.removeprefix(TRAIN))
        else:
            engines = [engine for engine in ENGINES if engine.name in NAMES and engine.precision == precision]
            processes = start(engines, BUILD / "bench" / "models" / name, arguments.python, arguments.worker)
        try:
            yield precision, processes
        finally:
            for process in processes.values():
                process.stop()


def measure_scene(processes: dict[str, Process], runs: dict[str, int], rounds: int) -> Rounds:
    means: Rounds = {name: [] for name in processes}
    for index in range(rounds):
        for name in order_turns(list(processes), index):
            means[name].append(statistics.fmean(processes[name].run(0, runs[name])))
    return means


def read_answers(process: Process) -> list[bytes]:
    """Of at least COMPARED_CALLS calls, one run over the inputs of the file each."""
    answers = []
    calls = 0
    while calls < COMPARED_CALLS:
        outputs = process.read_outputs()
        calls += len(outputs)
        answers.append(outputs.tobytes())
    return answers


def measure_model(
    processes: dict[str, Process], answering: list[str], scenes: list[str], cores: list[int], rounds: int, title: str
) -> tuple[dict[str, Rounds], set[str]]:
    """The times by scene, and the scenes in which a process of those `answering` gave other bits than the first did."""
    runs = {}
    for name, process in processes.items():
        runs[name] = max(2, min(int(ROUND_SECONDS * 1e3 / min(process.run(2, 4))), 2000))
    measured = {}
    changed: set[str] = set()
    expected = {name: processes[name].read_outputs().tobytes() for name in answering}
    for scene in scenes:
        note(f"{title}: {scene}")
        try:
            with make_scene(scene, cores) as enter:
                enter([process.process.pid for process in processes.values()])
                time.sleep(SETTLE_SECONDS)
                measured[scene] = measure_scene(processes, runs, rounds)
                if any(set(read_answers(processes[name])) != {expected[name]} for name in answering):
                    changed.add(scene)
        except Absent as reason:
            note(f"{title}: no scene '{scene}': {reason}", end="\n")
    return measured, changed


def judge(model: str, precision: str, measured: dict[str, Rounds], changed: set[str]) -> list[dict]:
    """One row a scene: what lissome and the peers lose, and what one thread would have taken."""
    ours, one = f"lissome_{precision}", f"lissome_{precision} one thread"
    peers = [name for name in measured["quiet"] if name not in (ours, one)]
    rows = []
    for scene, means in measured.items():
        if ours not in means:
            continue
        losses = {name: statistics.median(means[name]) / statistics.median(measured["quiet"][name]) for name in (ours, *peers)}
        of_one = statistics.median(means[ours]) / statistics.median(means[one])
        low, _ = bootstrap_ratio([[value] for value in means[ours]], [[value] for value in means[one]])
        row = {"model": model, "precision": precision, "scene": scene, "milliseconds": statistics.median(means[ours])}
        row |= {"one_thread_ms": statistics.median(means[one]), "of_one_thread": of_one, "loss": losses[ours]}
        row["peer_losses"] = {name.removesuffix(f"_{precision}"): losses[name] for name in peers}
        best = min((losses[name] for name in peers), default=None)
        row["beats_peers"] = scene == "quiet" or best is None or losses[ours] <= best
        row["same_bits"] = scene not in changed
        row["beats_one_thread"] = of_one <= MOST_OF_ONE_THREAD or low <= MOST_OF_ONE_THREAD
        rows.append(row)
    return rows


def format_row(row: dict) -> str:
    peers = "".join(f"  {peer} {loss:.2f}" for peer, loss in row["peer_losses"].items())
    verdict = "" if row["beats_peers"] else "  loses more than a peer"
    verdict += "" if row["beats_one_thread"] else "  one thread is faster"
    verdict += "" if row["same_bits"] else "  other bits"
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
    known = {model.name for model in MODELS} | {TRAIN + name for name in TRAININGS}
    unknown = [*(set(scenes) - set(SCENES)), *(set(arguments.only.split(",")) - known)]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}")
    cores = sorted(os.sched_getaffinity(0))[:THREADS]
    pin_to(cores)
    rows = []
    print(f"{'':30}{'lissome':>10}{'1 thread':>10}{'ratio':>8}{'loss':>8}  losses of peers")
    for name in arguments.only.split(","):
        for precision, processes in start_both(name, arguments):
            answering = [] if name.startswith(TRAIN) else [own for own in processes if own.startswith("lissome")]
            title = f"{name} {precision}"
            measured, changed = measure_model(processes, answering, scenes, cores, arguments.rounds, title)
            note("")
            for row in judge(name, precision, measured, changed):
                print(format_row(row), flush=True)
                rows.append(row)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    lost = [row for row in rows if not (row["beats_peers"] and row["beats_one_thread"] and row["same_bits"])]
    print(f"{len(rows) - len(lost)} of {len(rows)} rows meet all claims")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
