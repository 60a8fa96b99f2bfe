"""Times each kind of step natively and in libtorch, on the programs beside its declaration (tests/cases/step_cases.py).

    kernels.py [NAME...] [--threads 2] [--seconds 0.4] [--json PATH]

Rounds are interleaved in one process. "of limit" is the least time that this machine's products and memory allow, as
`lissome peaks` measures them, over the time of the steps; whole programs are compared with libtorch. A NAME is a
kernel ("softmax"), or the beginning of one. Exit status 1 when a program is slower than libtorch for sure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "cases"))

from step_cases import StepCase, read_cases  # noqa: E402

TOOL = ROOT / "build" / "release" / "tests" / "run_cases"


def choose_cases(names: list[str]) -> list[StepCase]:
    cases = [case for case in read_cases() if not names or any(case.name.startswith(name) for name in names)]
    if not cases:
        known = sorted({case.kernel for case in read_cases()})
        raise SystemExit(f"there is no kernel {' or '.join(names)}\nKernels: {', '.join(known)}")
    return cases


def time_cases(cases: list[StepCase], threads: int, seconds: float) -> list[dict]:
    rows = []
    print(f"{'case':32} {'isa':12} {'native':>10} {'libtorch':>10} {'libtorch/native':>22} {'of limit':>9}  bound by")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            (Path(folder) / f"{case.name}.txt").write_text(case.timed(), encoding="utf-8")
        command = [str(TOOL), "time", folder, str(threads), str(seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                row = json.loads(line)
                rows.append(row)
                print_row(row)
        if process.returncode != 0:
            raise SystemExit(f"{TOOL.name} ended with status {process.returncode}")
    return rows


def print_row(row: dict) -> None:
    low, ratio, high = (1 / value for value in reversed(row["ratio"]))
    limit = f"{row['limit'] / row['steps']:9.0%}" if row["limit"] > 0 and row["steps"] > 0 else " " * 9
    print(
        f"{row['name']:32} {row['isa']:12} {row['seconds'] * 1e6:8.0f}us {row['libtorch'] * 1e6:8.0f}us"
        f" {ratio:6.2f}x ({low:.2f} to {high:.2f}) {limit}  {row['bound']}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Times each kind of step natively and in libtorch.")
    parser.add_argument("names", nargs="*", help="kernels, or beginnings of their names; all when left out")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--seconds", type=float, default=0.4, help="for each case")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = time_cases(choose_cases(options.names), options.threads, options.seconds)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    slower = [row["name"] for row in rows if row["ratio"][0] > 1]
    print(f"{len(rows)} cases, {len(slower)} slower than libtorch for sure{': ' if slower else ''}{', '.join(slower)}")
    if slower:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
