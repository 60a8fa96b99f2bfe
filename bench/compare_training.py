"""Steps of training, forward to optimizer: lissome against eager PyTorch and torch.compile, in turns on the same cores.

    compare_training.py FOLDER [--only net,vit] [--precision f32,bf16] [--rounds 30] [--json FILE]

FOLDER is what training_models.py made. One process an engine, stopped while another is measured; a round is a few steps
of each. Prints milliseconds a step, and the ratios with 99 % intervals. bf16 is autocast on all sides, by default only on
processors that multiply it.
"""

import argparse
import json
import pathlib
import sys

from engines import HERE, Missing, Process, note, pin_to
from figures import bootstrap_ratio, geometric_mean, summarize
from training_nets import TRAININGS

WORKER = HERE.parent / "build" / "release" / "bin" / "lissome_training_worker"
COMPARED = ("net", "vit", "resnet18", "minilm")
THREADS = 2
ROUND_SECONDS = 0.3


def has_bf16() -> bool:
    return "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")


def make_command(engine: str, folder: pathlib.Path, precision: str, threads: int = THREADS) -> list[str]:
    batch = str(TRAININGS[folder.name].batch)
    if engine == "lissome":
        return [str(WORKER), str(folder / "model.pt2"), str(folder / "data.npz"), batch, str(threads), precision]
    return [sys.executable, str(HERE / "training_peer_worker.py"), engine, str(folder), batch, str(threads), precision]


def compare_model(folder: pathlib.Path, precision: str, rounds: int) -> dict:
    processes = {}
    for engine in ("eager", "compile", "lissome"):
        note(f"{folder.name} {precision}: starting {engine}")
        processes[engine] = Process(make_command(engine, folder, precision))
    times = {engine: [] for engine in processes}
    try:
        steps = max(1, int(ROUND_SECONDS * 1e3 / processes["eager"].run(0, 1)[0]))
        for index in range(rounds):
            note(f"{folder.name} {precision}: round {index + 1} of {rounds}")
            for engine, process in processes.items():
                times[engine].append(process.run(1, steps))
    finally:
        for process in processes.values():
            process.stop()
    result = {"model": folder.name, "precision": precision, "rows": {e: summarize(t) for e, t in times.items()}, "ratios": {}}
    for engine in ("eager", "compile"):
        ratio = result["rows"][engine]["median_ms"] / result["rows"]["lissome"]["median_ms"]
        result["ratios"][engine] = [ratio, *bootstrap_ratio(times[engine], times["lissome"])]
    return result


def print_result(result: dict) -> None:
    cells = [f"{engine} {row['median_ms']:.1f} ms" for engine, row in result["rows"].items()]
    cells += [f"{ratio:.2f}x {engine} [{low:.2f}, {high:.2f}]" for engine, (ratio, low, high) in result["ratios"].items()]
    print(f"\r\033[K{result['model']:9} {result['precision']:5}", "  ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(COMPARED))
    parser.add_argument("--precision", default="f32,bf16" if has_bf16() else "f32")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    pin_to(list(range(THREADS)))
    results = []
    for precision in arguments.precision.split(","):
        for name in arguments.only.split(","):
            try:
                results.append(compare_model(arguments.folder / name, precision, arguments.rounds))
                print_result(results[-1])
            except Missing as error:
                print(f"\r\033[K{name} {precision}: {error}", flush=True)
        for engine in ("eager", "compile"):
            ratios = [r["ratios"][engine][0] for r in results if r["precision"] == precision]
            if ratios:
                print(f"geometric mean {precision}: {geometric_mean(ratios):.3f}x {engine}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
