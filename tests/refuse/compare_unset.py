"""Calls every op that a model file may call twice on equal arguments, with fresh memory of the process filled with one
byte, then with another. Results that differ hold memory that the op never wrote: a model file could read with it what
the process worked on before.

    compare_unset.py --trials 60                    every op
    compare_unset.py --only embedding_bag           ops whose name matches
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import re
import sys
from typing import Any

import torch
from attack_ops import (GUARD, allowed_ops, call_op, describe, enter_child, find_op, guard_calls, make_call, run_child,
                        sample_seeds)

M_PERTURB = -6  # malloc.h: fresh memory is filled with the complement of this byte
FILLS = (0x55, 0x2A)
# Without its cache per thread, the allocator fills every block.
TUNABLES = "glibc.malloc.tcache_count=0"
MOST_BYTES = 1 << 20


def copy_argument(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (list, tuple)):
        return [copy_argument(item) for item in value]
    return value


def read_bytes(value: Any) -> list[bytes | str]:
    """The elements of every tensor among the results, and what other results say."""
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in read_bytes(item)]
    if not isinstance(value, torch.Tensor):
        return [repr(value)]
    if value.layout == torch.sparse_coo:
        return read_bytes([value._indices(), value._values()])
    if value.layout != torch.strided or value.is_quantized or value.numel() * value.element_size() > MOST_BYTES:
        return []
    dense = value.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return [bytes(dense.view(torch.uint8).tolist()) if dense.numel() else b""]


def call_filled(op: Any, call: list, fill: int, seed: int) -> list[bytes | str]:
    arguments = [copy_argument(value) for value in call]
    ctypes.CDLL(None).mallopt(M_PERTURB, fill)
    try:
        torch.manual_seed(seed)
        return read_bytes(call_op(op, arguments))
    finally:
        ctypes.CDLL(None).mallopt(M_PERTURB, 0)


def compare_op(name: str, op: Any, seeds: list[list], seed: int, trials: int, report: int) -> None:
    """In a child: writes a line for the first call whose results depend on what memory held."""
    enter_child()
    guard_calls()
    answered = 0
    for trial in range(trials):
        r = random.Random(f"{name} {seed} {trial}")
        torch.manual_seed(trial)
        os.write(report, b".\n")  # a sign of life for the parent
        try:
            call = make_call(r, op, seeds)
            with torch.no_grad():
                first, second = (call_filled(op, call, fill, trial) for fill in FILLS)
        except Exception:  # noqa: BLE001 - any error is a refusal
            continue
        answered += 1
        if first != second:
            places = [i for i, (a, b) in enumerate(zip(first, second)) if a != b]
            os.write(report, f"unset results {places} of trial {trial}: {describe(call)}\n".encode())
            break
    os.write(report, f"answered {answered}\n".encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--only", default="", help="ops whose name matches this expression")
    parser.add_argument("--samples", type=int, default=4, help="samples that are traced for each op and dtype; 0: none")
    arguments = parser.parse_args()
    if TUNABLES not in os.environ.get("GLIBC_TUNABLES", ""):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"GLIBC_TUNABLES": TUNABLES})
    if not GUARD.is_file():
        parser.error(f"{GUARD} is not built")
    torch.set_num_threads(1)
    names = [name for name in allowed_ops() if find_op(name) is not None and re.search(arguments.only, name)]
    seeds = sample_seeds(set(names), arguments.samples) if arguments.samples else {}
    compared = found = 0
    for name in names:
        text, _ = run_child(lambda report: compare_op(name, find_op(name), seeds.get(name, []), arguments.seed,
                                                      arguments.trials, report), 10.0)
        for line in text.splitlines():
            if line.startswith("unset"):
                found += 1
                print(f"{name}: {line}", flush=True)
            elif line.startswith("answered"):
                compared += int(line.split()[1])
    print(f"{len(names)} ops: {compared} calls compared, {found} ops leave memory unset")
    return 1 if found or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
