"""Compares lissome's optimized models with the same models in eager Python PyTorch.

    compare_eager.py DEMO_FOLDER LISSOME_WORKER [--threads 2] [--json PATH] [--only NAME]

Batch 1, one process an engine, same inputs and threads; rounds are interleaved and alternate who goes first. Each
engine also answers every test image or held-out sentence once, so speed and quality come from the same processes.
Exit status 1 when a model misses its speed-up or its quality.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy
from engines import read_outputs

HERE = pathlib.Path(__file__).parent
RESAMPLES = 2000
PAUSE_SECONDS = 0.02  # lets the other engine's threads go to sleep


@dataclass
class Case:
    name: str
    title: str
    weights: str  # of the eager model, in its folder
    inputs: str
    model: str  # lissome's
    rounds: int
    runs: int  # a round, counted
    warm_up: int  # a round, not counted
    least_ratio: float  # with VNNI


CASES = [
    Case("fashion_mnist", "Fashion-MNIST net", "weights.safetensors", "test.npz", "fast.lissome", 60, 100, 10, 3.0),
    Case("minilm", "MiniLM, 128 tokens", "-", "held_out.npz", "fast.lissome", 30, 15, 2, 2.0),
]
LEAST_RATIO_WITHOUT_VNNI = 1.5
MOST_LOST_POINTS = 0.3
LEAST_COSINE = 0.99


class Worker:
    """A process that runs one engine and answers line by line; see eager_worker.py."""

    def __init__(self, command: list[str]):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.read_answer()

    def read_answer(self) -> str:
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{' '.join(self.command)} ended with status {self.process.wait()}")
        return answer.strip()

    def ask(self, *words: object) -> str:
        print(*words, file=self.process.stdin, flush=True)
        return self.read_answer()

    def run(self, case: Case) -> list[float]:
        """Milliseconds of one round."""
        answer = self.ask("run", case.warm_up + case.runs).split()[case.warm_up :]
        time.sleep(PAUSE_SECONDS)
        return [int(word) / 1e6 for word in answer]

    def read_outputs(self) -> numpy.ndarray:
        return read_outputs(self.ask)

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def bootstrap_ratio(slow: list[list[float]], fast: list[list[float]]) -> tuple[float, float]:
    """The 99 % interval of the ratio of medians: whole rounds are drawn again, both engines' together."""
    generator = random.Random(0)
    medians = [(statistics.median(a), statistics.median(b)) for a, b in zip(slow, fast)]
    ratios = []
    for _ in range(RESAMPLES):
        drawn = generator.choices(medians, k=len(medians))
        ratios.append(statistics.median(a for a, _ in drawn) / statistics.median(b for _, b in drawn))
    ratios.sort()
    return ratios[RESAMPLES // 200], ratios[-RESAMPLES // 200 - 1]


def summarize(rounds: list[list[float]]) -> dict[str, float]:
    times = sorted(value for values in rounds for value in values)
    return {"median_ms": statistics.median(times), "lowest_tenth_ms": times[len(times) // 10], "runs": len(times)}


def judge_accuracy(eager: numpy.ndarray, fast: numpy.ndarray, labels: numpy.ndarray) -> dict[str, object]:
    accuracies = [float((output.argmax(1) == labels).mean() * 100) for output in (eager, fast)]
    lost = accuracies[0] - accuracies[1]
    text = f"accuracy {accuracies[0]:.2f} % -> {accuracies[1]:.2f} % on {len(labels)} images"
    goal = f"at most {MOST_LOST_POINTS} points lost"
    return {"accuracy": accuracies, "lost_points": lost, "text": text, "goal": goal, "met": lost <= MOST_LOST_POINTS + 1e-9}


def judge_cosine(eager: numpy.ndarray, fast: numpy.ndarray) -> dict[str, object]:
    norms = numpy.linalg.norm(eager, axis=1) * numpy.linalg.norm(fast, axis=1)
    cosine = (eager * fast).sum(1) / norms
    mean = float(cosine.mean())
    text = f"cosine {mean:.4f} on average, {float(cosine.min()):.4f} at worst, on {len(cosine)} rows of sentences"
    goal = f"at least {LEAST_COSINE} on average"
    return {"cosine": mean, "worst": float(cosine.min()), "text": text, "goal": goal, "met": mean >= LEAST_COSINE}


def has_vnni() -> bool:
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    return "avx512_vnni" in flags or "avx_vnni" in flags


def compare(case: Case, arguments: argparse.Namespace) -> dict[str, object]:
    folder = arguments.demo_folder / case.name
    inputs, threads = str(folder / case.inputs), str(arguments.threads)
    eager_script = str(HERE / "eager_worker.py")
    weights = case.weights if case.weights == "-" else str(folder / case.weights)
    eager = Worker([sys.executable, eager_script, case.name, weights, inputs, threads])
    fast = Worker([str(arguments.lissome_worker), str(folder / case.model), inputs, threads])
    times: dict[Worker, list[list[float]]] = {eager: [], fast: []}
    for index in range(case.rounds):
        print(f"\r{case.title}: round {index + 1} of {case.rounds}", end="", file=sys.stderr, flush=True)
        for worker in (eager, fast) if index % 2 == 0 else (fast, eager):
            times[worker].append(worker.run(case))
    print(f"\r{case.title}: quality            ", end="", file=sys.stderr, flush=True)
    outputs = eager.read_outputs(), fast.read_outputs()
    print("\r\033[K", end="", file=sys.stderr, flush=True)
    eager.stop()
    fast.stop()

    if case.name == "fashion_mnist":
        with numpy.load(inputs) as file:
            quality = judge_accuracy(*outputs, file["labels"])
    else:
        quality = judge_cosine(*outputs)
    results = {"eager": summarize(times[eager]), "lissome": summarize(times[fast])}
    ratio = results["eager"]["median_ms"] / results["lissome"]["median_ms"]
    goal = case.least_ratio if has_vnni() else LEAST_RATIO_WITHOUT_VNNI
    speed = {"ratio": ratio, "interval_99": bootstrap_ratio(times[eager], times[fast]), "goal": goal, "met": ratio >= goal}
    return {"name": case.name, "title": case.title, **results, "speed": speed, "quality": quality}


def print_result(result: dict) -> None:
    print(f"\n{result['title']}: batch 1")
    print(f"  {'':10}{'median':>10}{'lowest tenth':>15}")
    for engine in ("eager", "lissome"):
        row = result[engine]
        print(f"  {engine:10}{row['median_ms']:>7.3f} ms{row['lowest_tenth_ms']:>12.3f} ms")
    speed, quality = result["speed"], result["quality"]
    low, high = speed["interval_99"]
    print(f"  speed    {speed['ratio']:.2f}x [{low:.2f}, {high:.2f}], goal {speed['goal']}x: {describe(speed)}")
    print(f"  quality  {quality['text']}, goal {quality['goal']}: {describe(quality)}")


def describe(judged: dict) -> str:
    return "met" if judged["met"] else "NOT MET"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("demo_folder", type=pathlib.Path)
    parser.add_argument("lissome_worker", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", choices=[case.name for case in CASES])
    arguments = parser.parse_args()
    results = [compare(case, arguments) for case in CASES if arguments.only in (None, case.name)]
    print(f"{arguments.threads} threads, VNNI: {'yes' if has_vnni() else 'no'}, intervals of 99 %")
    for result in results:
        print_result(result)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        record = {"threads": arguments.threads, "vnni": has_vnni(), "models": results}
        arguments.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        print(f"\n{arguments.json}")
    return 0 if all(result["speed"]["met"] and result["quality"]["met"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
