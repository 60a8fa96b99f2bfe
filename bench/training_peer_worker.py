"""Trains one model in PyTorch on request: the peers' side of compare_training.py, which starts it.

    training_peer_worker.py ENGINE FOLDER BATCH THREADS PRECISION

ENGINE is eager or compile. Says `ready` once a few steps have run, then answers each line on stdin:
    run N    N times of a step in nanoseconds: forward, backward and AdamW over the next batch
    loss 1   the loss of the last step
PyTorch's fastest documented settings: gradients set to none, fused AdamW, autocast for bf16.
"""

import os
import pathlib
import sys
import time

import numpy

WARM_UP_STEPS = 4


class Trainer:
    def __init__(self, engine: str, folder: pathlib.Path, batch: int, threads: int, precision: str):
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder.parent.parent / "inductor"))
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        import torch

        from training_nets import TRAININGS

        self.torch = torch
        torch.manual_seed(0)
        torch.set_num_threads(threads)
        torch.set_flush_denormal(True)
        module = TRAININGS[folder.name].make()
        module.load_state_dict(torch.load(folder / "weights.pt"))
        module.train()
        self.optimizer = torch.optim.AdamW(module.parameters(), 1e-4, fused=True)
        self.autocast = precision == "bf16"
        self.loss_of = torch.compile(self.compute_loss, dynamic=False) if engine == "compile" else self.compute_loss
        self.module = module
        with numpy.load(folder / "data.npz") as file:
            arrays = [torch.from_numpy(file[name]) for name in file.files]
        self.batches = [[a[i : i + batch].contiguous() for a in arrays] for i in range(0, len(arrays[0]) - batch + 1, batch)]
        self.position = 0
        self.loss = None
        for _ in range(WARM_UP_STEPS):
            self.step()

    def compute_loss(self, *arrays):
        *inputs, labels = arrays
        with self.torch.autocast("cpu", self.torch.bfloat16, enabled=self.autocast):
            scores = self.module(*inputs)
            if scores.dim() == 3:
                scores, labels = scores.flatten(0, 1), labels.flatten()
            return self.torch.nn.functional.cross_entropy(scores, labels)

    def step(self) -> None:
        batch = self.batches[self.position % len(self.batches)]
        self.position += 1
        self.loss = self.loss_of(*batch)
        self.loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def main() -> None:
    engine, folder, batch, threads, precision = sys.argv[1:]
    trainer = Trainer(engine, pathlib.Path(folder), int(batch), int(threads), precision)
    print("ready", flush=True)
    for line in sys.stdin:
        command, count = line.split()
        if command == "run":
            times = []
            for _ in range(int(count)):
                start = time.perf_counter_ns()
                trainer.step()
                times.append(time.perf_counter_ns() - start)
            print(*times, flush=True)
        elif command == "loss":
            print(trainer.loss.item(), flush=True)


if __name__ == "__main__":
    main()
