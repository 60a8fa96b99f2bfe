"""Runs the user's own model in Python PyTorch, one row at a time, on request. Started by compare_eager.py.

    eager_worker.py fashion_mnist WEIGHTS.safetensors INPUTS.npz THREADS
    eager_worker.py minilm - INPUTS.npz THREADS

Says `ready` once the model has run a few times, then answers each line on stdin with one on stdout:
    run N         N latencies in nanoseconds, of the next N rows (the first row follows the last)
    outputs PATH  `ok`; PATH, an .npz, holds `output`: what the model gives for every row
"""

import pathlib
import sys
import time

import numpy
import torch

WARM_UP_RUNS = 20
INPUT_NAMES = {"fashion_mnist": ["images"], "minilm": ["input_ids", "attention_mask"]}


def load_model(name: str, weights: str) -> torch.nn.Module:
    if name == "fashion_mnist":
        sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples" / "fashion_mnist"))
        from fashion_mnist_net import FashionMnistNet
        from safetensors.torch import load_file

        net = FashionMnistNet()
        missing, unexpected = net.load_state_dict(load_file(weights), strict=False)
        if unexpected or any(not key.endswith("num_batches_tracked") for key in missing):
            raise SystemExit(f"{weights} does not fit the net: missing {missing}, unexpected {unexpected}")
        return net.eval()
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples" / "sentences"))
    from sentence_encoder import load_encoder

    return load_encoder()


def main() -> None:
    name, weights, inputs, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    model = load_model(name, weights)
    with numpy.load(inputs) as file:
        arrays = [torch.from_numpy(file[key]) for key in INPUT_NAMES[name]]
    rows = [[array[row : row + 1] for array in arrays] for row in range(len(arrays[0]))]

    with torch.inference_mode():
        for row in range(WARM_UP_RUNS):
            model(*rows[row % len(rows)])
        print("ready", flush=True)
        position = 0
        for line in sys.stdin:
            command, argument = line.split()
            if command == "run":
                times = []
                for _ in range(int(argument)):
                    row = rows[position]
                    position = (position + 1) % len(rows)
                    start = time.perf_counter_ns()
                    model(*row)
                    times.append(time.perf_counter_ns() - start)
                print(*times, flush=True)
            elif command == "outputs":
                numpy.savez(argument, output=torch.cat([model(*row) for row in rows]).numpy())
                print("ok", flush=True)
            else:
                raise SystemExit(f"unknown command {command}")


if __name__ == "__main__":
    main()
