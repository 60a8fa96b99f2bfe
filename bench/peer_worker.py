"""Runs one model in one of the engines that lissome is compared with, on request. Started by compare_peers.py.

    peer_worker.py ENGINE FOLDER INPUTS.npz THREADS [ANSWERS]

FOLDER holds what models.py and prepare_peers.py made. Says `ready` once the model has run a few times, then answers each
line on stdin with one on stdout:
    run N         N latencies in nanoseconds, of the next N calls (the first follows the last)
    outputs PATH  `ok`; PATH, an .npz, holds `output`: the first output of every call, one behind the other
With ANSWERS it answers so many calls, then prints the clock at the first answer and the peak of its resident memory in
kB, and ends: each engine imports only what it needs, so this is its leanest runner in Python.
"""

import json
import os
import pathlib
import sys
import time
from collections.abc import Callable

import numpy

WARM_UP_RUNS = 5

Row = dict[str, numpy.ndarray]
Call = Callable[[], object]  # runs one prepared row
Read = Callable[[object], numpy.ndarray]  # its first output


def load_module(folder: pathlib.Path):
    """The module as it was pickled, else made anew with its weights; weights stay in the file until they are read."""
    import torch

    if (folder / "module.pt").exists():
        return torch.load(folder / "module.pt", mmap=True, weights_only=False)
    import nets

    name = folder.name.split("_batch")[0]
    with torch.device("meta") if name != "minilm" and name != "minilm16" else torch.device("cpu"):
        module = nets.make_module(name)
    module.load_state_dict(torch.load(folder / "weights.pt", mmap=True), assign=True)
    return module


class TorchEngine:
    """The module itself: as it is, compiled, or traced."""

    def __init__(self, engine: str, folder: pathlib.Path, threads: int):
        self.engine = engine
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder.parent.parent / "inductor"))
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        import torch

        self.torch = torch
        torch.set_num_threads(threads)
        torch.set_flush_denormal(True)
        self.module = load_module(folder)
        self.module.eval()
        if engine in ("inductor", "autotune"):
            import torch._inductor.config as config

            config.freezing = True
            if engine == "autotune":
                config.max_autotune = True
                config.cpp_wrapper = True
            self.module = torch.compile(self.module, dynamic=False)
        self.guard = torch.inference_mode() if engine == "eager" else torch.no_grad()
        self.guard.__enter__()

    def bind(self, row: Row) -> Call:
        tensors = [self.torch.from_numpy(array) for array in row.values()]
        if self.engine == "torchscript" and not isinstance(self.module, self.torch.jit.ScriptModule):
            traced = self.torch.jit.trace(self.module, tuple(tensors), check_trace=False)
            self.module = self.torch.jit.optimize_for_inference(self.torch.jit.freeze(traced))
        return lambda: self.module(*tensors)

    def read(self, answer: object) -> numpy.ndarray:
        return (answer[0] if isinstance(answer, (tuple, list)) else answer).numpy()


class OnnxRuntimeEngine:
    """All optimizations, inputs and outputs bound ahead of the call, denormals flushed."""

    def __init__(self, engine: str, folder: pathlib.Path, threads: int):
        import onnxruntime

        self.runtime = onnxruntime
        onnxruntime.set_default_logger_severity(3)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        file = read_choice(folder, engine)["file"]
        self.session = onnxruntime.InferenceSession(str(folder / file), options, providers=["CPUExecutionProvider"])
        self.outputs = [output.name for output in self.session.get_outputs()]

    def bind(self, row: Row) -> Call:
        binding = self.session.io_binding()
        for argument in self.session.get_inputs():
            binding.bind_cpu_input(argument.name, row[argument.name])
        for name in self.outputs:
            binding.bind_output(name)
        # The first call allocates the outputs; they are written again by every later one.
        self.session.run_with_iobinding(binding)
        for name, value in zip(self.outputs, binding.get_outputs()):
            binding.bind_ortvalue_output(name, value)

        def call() -> object:
            self.session.run_with_iobinding(binding)
            return binding

        return call

    def read(self, answer: object) -> numpy.ndarray:
        return answer.get_outputs()[0].numpy().copy()


class OpenVinoEngine:
    """Latency hint, a model compiled before and cached, tensors shared with the caller, denormals flushed."""

    def __init__(self, engine: str, folder: pathlib.Path, threads: int):
        import openvino

        self.openvino = openvino
        choice = read_choice(folder, engine)
        core = openvino.Core()
        core.set_property({"CACHE_DIR": str(folder / "openvino_cache")})
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": choice["hint"],
            "CPU_DENORMALS_OPTIMIZATION": True,
        }
        self.model = core.compile_model(str(folder / choice["file"]), "CPU", settings)
        self.request = self.model.create_infer_request()
        self.names = [argument.any_name for argument in self.model.inputs]

    def bind(self, row: Row) -> Call:
        tensors = [self.openvino.Tensor(row[name], shared_memory=True) for name in self.names]
        request = self.request

        def call() -> object:
            for place, tensor in enumerate(tensors):
                request.set_input_tensor(place, tensor)
            request.infer()
            return request

        return call

    def read(self, answer: object) -> numpy.ndarray:
        return answer.get_output_tensor(0).data.copy()


def read_choice(folder: pathlib.Path, engine: str) -> dict[str, str]:
    return json.loads((folder / "peers.json").read_text(encoding="utf-8"))[engine]


def load_engine(engine: str, folder: pathlib.Path, threads: int):
    kinds = {"ort": OnnxRuntimeEngine, "ov": OpenVinoEngine}
    return kinds.get(engine.split("_")[0], TorchEngine)(engine, folder, threads)


def cut_rows(inputs: pathlib.Path, folder: pathlib.Path) -> list[Row]:
    """Calls of the model's own batch; what is no input (labels) is left out."""
    with numpy.load(folder / "row.npz") as file:
        sizes = {name: len(file[name]) for name in file.files}
    with numpy.load(inputs) as file:
        arrays = {name: file[name] for name in sizes}
    batch = next(iter(sizes.values()))
    count = len(next(iter(arrays.values()))) // batch
    return [{name: array[i * batch : (i + 1) * batch] for name, array in arrays.items()} for i in range(count)]


def answer_lean(engine: object, row: Row, answers: int) -> None:
    call = engine.bind(row)
    engine.read(call())
    first = time.monotonic_ns()
    for _ in range(answers - 1):
        engine.read(call())
    peak = next(line.split()[1] for line in open("/proc/self/status", encoding="utf-8") if line.startswith("VmHWM"))
    print(first, peak, flush=True)


def answer_commands(engine: object, rows: list[Row]) -> None:
    calls = [engine.bind(row) for row in rows]
    for index in range(WARM_UP_RUNS):
        calls[index % len(calls)]()
    print("ready", flush=True)
    position = 0
    for line in sys.stdin:
        command, argument = line.split()
        if command == "run":
            times = []
            for _ in range(int(argument)):
                call = calls[position]
                position = (position + 1) % len(calls)
                start = time.perf_counter_ns()
                call()
                times.append(time.perf_counter_ns() - start)
            print(*times, flush=True)
        elif command == "outputs":
            numpy.savez(argument, output=numpy.concatenate([engine.read(call()) for call in calls]))
            print("ok", flush=True)
        else:
            raise SystemExit(f"unknown command {command}")


def main() -> None:
    name, folder, inputs, threads, *answers = sys.argv[1:]
    folder = pathlib.Path(folder)
    engine = load_engine(name, folder, int(threads))
    rows = cut_rows(pathlib.Path(inputs), folder)
    if answers:
        answer_lean(engine, rows[0], int(answers[0]))
    else:
        answer_commands(engine, rows)


if __name__ == "__main__":
    main()
