"""How much of the exchange of gradients hides behind the backward pass, beside PyTorch's DistributedDataParallel: a GPT-2 of 6
layers over two ranks, a processor each, and a shaped link between them.

    .venv/bin/python bench/overlap_gradients.py [--rate 250mbit] [--rounds 3] [--steps 10] [--batch 48]

Needs root, `ip` and `tc`. Rounds are interleaved; times are medians of a round's steps. What is hidden is the time of a step alone
and of the exchange alone, less the time of the step with both, as a share of the exchange. The step alone is that of two processes
that train apart at the same time, because cores that compute together are slower than one. Ends with 1 where --bucket auto is not
faster than DistributedDataParallel as it comes, or slower than its best bucket.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from compress_gradients import PROGRAM, ROOT, read_steps, shaped_link
from training_nets import Gpt2

PEER = """
import json, os, statistics, sys, time
import numpy as np, torch, torch.distributed as dist
sys.path.insert(0, sys.argv[1])
from training_nets import Gpt2
torch.set_num_threads(1)
steps, batch, bucket = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
torch.manual_seed(0)
net = Gpt2(words=1024, width=320).train()
if dist.is_available() and int(os.environ["WORLD_SIZE"]) > 1:
    dist.init_process_group("gloo")
    options = {"bucket_cap_mb": bucket} if bucket > 0 else {}
    net = torch.nn.parallel.DistributedDataParallel(net, **options)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
data = np.load("data.npz")
tokens, labels = torch.from_numpy(data["tokens"])[:batch], torch.from_numpy(data["labels"])[:batch]
times = []
for _ in range(steps):
    begin = time.perf_counter()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(tokens).transpose(1, 2), labels).backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    times.append(time.perf_counter() - begin)
print(json.dumps(statistics.median(times[3:])))
"""
PEERS = {"ddp": 0.0, "ddp 1 MiB": 1.0, "ddp 4 MiB": 4.0}
BUCKETS = {"none": "none", "25 MiB": "25MiB", "auto": "auto"}


class Language(Gpt2):
    """tokens i64 [N, 128] -> logits f32 [N, 1024, 128], the order that cross entropy takes."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return super().forward(tokens).transpose(1, 2)


def export(folder: Path, batch: int) -> None:
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    tokens = random.integers(0, 1024, (4 * batch, 129))
    np.savez(folder / "data.npz", tokens=tokens[:, :-1], labels=tokens[:, 1:].copy())
    sizes = ({0: torch.export.Dim("batch", min=2, max=512)},)
    example = torch.from_numpy(tokens[:4, :-1].copy())
    torch.export.save(torch.export.export(Language(words=1024, width=320).train(), (example,), dynamic_shapes=sizes), folder / "net.pt2")


def list_words(steps: int, batch: int, bucket: str) -> list[str]:
    words = ["train", "net.pt2", "--data", "data.npz", "--labels", "labels", "--batch", str(batch), "--epochs", "1000", "--lr", "1e-4"]
    words += ["--max-steps", str(steps), "--snapshot-every", "never", "--threads", "1", "--workers", "0", "--bucket", bucket]
    return [str(PROGRAM), *words]


def run_ranks(folder: Path, namespaces: list[str], commands: list[list[str]], apart: bool) -> list[str]:
    """stdout and stderr of each rank. Apart: each trains by itself, at the same time."""
    ranks = []
    for rank, (namespace, command) in enumerate(zip(namespaces, commands, strict=True)):
        variables = {"RANK": 0 if apart else rank, "WORLD_SIZE": 1 if apart else len(namespaces), "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": 29519,
                     "GLOO_SOCKET_IFNAME": "wire", "OMP_NUM_THREADS": 1, "NO_COLOR": 1}
        environment = {**os.environ, **{key: str(value) for key, value in variables.items()}}
        inside = ["ip", "netns", "exec", namespace, "taskset", "-c", str(rank), *command]
        ranks.append(subprocess.Popen(inside, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit("\n".join(outputs))
    return outputs


def measure_ours(folder: Path, namespaces: list[str], arguments: argparse.Namespace, bucket: str, apart: bool = False) -> tuple[float, str]:
    """Median seconds of a step, and what was said of buckets."""
    (folder / "log.jsonl").unlink(missing_ok=True)
    words = list_words(arguments.steps, arguments.batch // (2 if apart else 1), bucket)
    commands = [[*words, "-o", f"r{rank}.lissome", *(["--log", "log.jsonl"] if rank == 0 else [])] for rank in range(len(namespaces))]
    output = run_ranks(folder, namespaces, commands, apart)[0]
    note = re.search(r"gradients leave in .*", output.replace("\n  ", " "))
    steps = read_steps(folder)[4:]
    return statistics.median(step["seconds_gradients"] + step["seconds_update"] for step in steps), note[0] if note else ""


def measure_peer(folder: Path, namespaces: list[str], arguments: argparse.Namespace, bucket: float, apart: bool = False) -> float:
    words = [sys.executable, "-c", PEER, str(ROOT / "bench"), str(arguments.steps), str(arguments.batch // 2), str(bucket)]
    output = run_ranks(folder, namespaces, [words] * len(namespaces), apart)[0]
    return json.loads(output.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="250mbit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    arguments = parser.parse_args()
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as path, shaped_link(arguments.rate) as namespaces:
        folder, note = Path(path), ""
        export(folder, arguments.batch)
        for _ in range(arguments.rounds):
            times.setdefault("alone", []).append(measure_ours(folder, namespaces, arguments, "none", apart=True)[0])
            for name, bucket in BUCKETS.items():
                seconds, said = measure_ours(folder, namespaces, arguments, bucket)
                times.setdefault(name, []).append(seconds)
                note = said or note
            times.setdefault("ddp alone", []).append(measure_peer(folder, namespaces, arguments, 0, apart=True))
            for name, mebibytes in PEERS.items():
                times.setdefault(name, []).append(measure_peer(folder, namespaces, arguments, mebibytes))
    medians = {name: statistics.median(of) for name, of in times.items()}
    exchange = medians["none"] - medians["alone"]
    print(f"two ranks, {arguments.rate}; the exchange alone takes {exchange:.3f} s\n{note}")
    print(f"{'':12}{'step':>10}{'hidden':>9}{'of ddp':>9}")
    for name, seconds in medians.items():
        alone = medians["ddp alone" if name.startswith("ddp") else "alone"]
        ratio = statistics.median(a / b for a, b in zip(times["ddp"], times[name], strict=True))
        hidden = "" if "alone" in name else f"{(alone + exchange - seconds) / exchange:8.0%}"
        print(f"{name:12}{seconds:8.3f} s{hidden:>9}{ratio:8.2f}x")
    best = min(medians[name] for name in PEERS)
    sys.exit(0 if medians["auto"] < medians["ddp"] and medians["auto"] <= best else 1)


if __name__ == "__main__":
    main()
