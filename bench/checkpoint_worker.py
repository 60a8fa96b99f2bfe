"""torch.utils.checkpoint over uniform segments of a network's blocks: the peer of bench/compare_budget.py, which starts it.

    checkpoint_worker.py FOLDER BATCH THREADS

Says "ready" and answers lines:
    peaks           ok and JSON: bytes of activations by the number of segments, 0 the plain step
    run SEGMENTS N  nanoseconds of each of N steps
Activations are what libtorch's allocator holds at most during a step, above weights and gradients.
"""

import json
import pathlib
import sys
import time

import numpy
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from training_nets import TRAININGS


def find_blocks(module: nn.Module) -> nn.ModuleList | nn.Sequential | None:
    """The longest list of equal blocks."""
    lists = [m for m in module.modules() if isinstance(m, (nn.ModuleList, nn.Sequential)) and len(m) > 1]
    return max(lists, key=lambda m: (sum(p.numel() for p in m.parameters()), len(m)), default=None)


class Segment(nn.Module):
    """The first of several blocks runs all of them, checkpointed. A block that returns more than what goes on (keys and
    values of its attention, which training leaves) returns a tuple, and so does its segment."""

    def __init__(self, blocks: list[nn.Module]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.in_tuple = False

    def forward(self, x: torch.Tensor, *rest, **options):
        def run(x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                result = block(x, *rest, **options)
                self.in_tuple = isinstance(result, tuple)
                x = result[0] if self.in_tuple else result
            return x

        x = checkpoint(run, x, use_reentrant=False)
        return (x, None) if self.in_tuple else x


class Pass(nn.Module):
    """Where a block stood that `segment` has run."""

    def __init__(self, segment: Segment):
        super().__init__()
        self.segment = [segment]  # in a list: no module of this one

    def forward(self, x: torch.Tensor, *_, **__):
        return (x, None) if self.segment[0].in_tuple else x


def cut(blocks: nn.ModuleList | nn.Sequential, originals: list[nn.Module], segments: int) -> None:
    """No segments: the blocks as they were."""
    for index, block in enumerate(originals):
        blocks[index] = block
    if segments == 0:
        return
    bounds = [round(i * len(originals) / segments) for i in range(segments + 1)]
    for first, last in zip(bounds, bounds[1:]):
        if first == last:
            continue
        blocks[first] = Segment(originals[first:last])
        for index in range(first + 1, last):
            blocks[index] = Pass(blocks[first])


def run_step(module: nn.Module, inputs: list[torch.Tensor], labels: torch.Tensor) -> None:
    module.zero_grad(set_to_none=False)
    scores = module(*inputs)
    if scores.dim() == 3:
        scores = scores.flatten(0, 1)
        labels = labels.flatten()
    nn.functional.cross_entropy(scores, labels).backward()


def measure_peak(work) -> int:
    """Most bytes above the start, from the allocator's own events."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work()
    live = peak = 0
    for event in sorted(profile.profiler.kineto_results.events(), key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    return peak


def main() -> None:
    folder, batch, threads = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:4])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    module = TRAININGS[folder.name].make().train()
    arrays = numpy.load(folder / "data.npz")
    tensors = {name: torch.from_numpy(arrays[name][:batch]) for name in arrays.files}
    labels = tensors.pop("labels")
    inputs = list(tensors.values())
    blocks = find_blocks(module)
    originals = list(blocks)
    run_step(module, inputs, labels)

    def work(segments: int):
        cut(blocks, originals, segments)
        run_step(module, inputs, labels)

    choices = [n for n in (1, 2, 3, 4, 6, 12) if n <= len(originals)]
    peaks = {n: measure_peak(lambda n=n: work(n)) for n in (0, *choices)}
    print("ready", flush=True)
    for line in sys.stdin:
        match line.split():
            case ["peaks"]:
                print("ok", json.dumps(peaks), flush=True)
            case ["run", segments, steps]:
                nanoseconds = []
                for _ in range(int(steps)):
                    start = time.perf_counter_ns()
                    work(int(segments))
                    nanoseconds.append(time.perf_counter_ns() - start)
                print(*nanoseconds, flush=True)


if __name__ == "__main__":
    main()
