#!/usr/bin/env python3
# Exports the parity cases: each becomes a folder with the .pt2 archive, its inputs and
# what PyTorch answers. README.md in this folder describes the files.
#
#   export_models.py --output DIR [--only NAME,...] [--list] [--jobs N]

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import sys
import time
import traceback
import warnings
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # every model is made here or lies on this disk
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import torch

from case import Case
from case_folder import write_case
from models import list_cases


def export_one(job: tuple[str, str]) -> tuple[str, float, str]:
    """Runs in any process: looks the case up by name; returns name, seconds, error text."""
    name, output = job
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(2)
    case = next(case for case in list_cases() if case.name == name)
    start = time.monotonic()
    error = ""
    try:
        write_case(case, Path(output))
    except Exception:  # the exporter goes on and reports every failed case at the end
        error = traceback.format_exc()
    return name, time.monotonic() - start, error


def export_all(cases: list[Case], output: Path, jobs: int):
    work = [(case.name, str(output)) for case in cases]
    if jobs == 1:
        yield from map(export_one, work)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(export_one, work)


def write_index(output: Path) -> None:
    """index.json: one row for each known case whose folder lies in the output."""
    rows = []
    for path in (output / case.name / "case.json" for case in list_cases()):
        if not path.exists():
            continue
        case = json.loads(path.read_text())
        rows.append({key: case[key] for key in ("name", "family", "form", "mode", "dynamic")})
    (output / "index.json").write_text(json.dumps({"torch": torch.__version__, "cases": rows}, indent=1) + "\n")


def select_cases(only: str) -> list[Case]:
    cases = list_cases()
    if not only:
        return cases
    wanted = only.split(",")
    unknown = sorted(set(wanted) - {case.name for case in cases} - {case.family for case in cases})
    if unknown:
        sys.exit(f"no such case or family: {', '.join(unknown)}; --list shows them all")
    return [case for case in cases if case.name in wanted or case.family in wanted]


def print_list(cases: list[Case]) -> None:
    for case in cases:
        dynamic = "dynamic" if case.dynamic is not None else "static"
        print(f"{case.name:44} {case.family:16} {case.form:10} {case.mode:6} {dynamic}")
    print(f"{len(cases)} cases, {sum(case.dynamic is not None for case in cases)} dynamic, "
          f"{sum(case.mode == 'train' for case in cases)} in train mode")


def main() -> int:
    parser = argparse.ArgumentParser(description="Export the parity cases.")
    parser.add_argument("--output", type=Path, help="folder that receives one folder per case")
    parser.add_argument("--only", default="", help="names of cases or families, separated by commas")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("--jobs", type=int, default=1, help="processes at work at the same time")
    options = parser.parse_args()
    cases = select_cases(options.only)
    if options.list:
        print_list(cases)
        return 0
    if options.output is None:
        parser.error("--output is needed")
    options.output.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    failed = []
    for name, seconds, error in export_all(cases, options.output, options.jobs):
        print(f"{'FAILED' if error else 'ok':6} {seconds:6.1f} s  {name}", flush=True)
        if error:
            print(error, file=sys.stderr, flush=True)
            failed.append(name)
    write_index(options.output)
    print(f"{len(cases) - len(failed)} of {len(cases)} cases in {time.monotonic() - start:.0f} s")
    if failed:
        print(f"failed: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
