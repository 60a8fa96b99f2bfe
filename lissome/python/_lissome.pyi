from collections.abc import Sequence
from typing import Any

import torch

class Program:
    @property
    def input_names(self) -> list[str]: ...
    @property
    def output_names(self) -> list[str]: ...
    input_tree: str

class Dataset:
    @property
    def samples(self) -> int: ...
    @property
    def has_labels(self) -> bool: ...

class OptimizeArguments:
    metric: str | None
    latency: float | str | None
    memory: float | str | None
    size: float | str | None
    throughput: float | str | None
    first_answer: float | str | None
    front: str
    max_loss: float | str
    time: float | str
    batch: int
    threads: int
    seed: int
    keep_original: bool
    name: str
    command: str

class QuantizeArguments:
    kind: str
    observer: str
    rounding: str
    only: list[str]
    skip: list[str]
    least_signal: float
    loss: str
    epochs: int
    batch: int
    lr: float
    seed: int
    bits: int
    threads: int
    keep_original: bool

class MemoryProbe:
    def finish(self) -> tuple[int, int]: ...

def open_program(arg0: str, /) -> Program: ...
def describe_eval_form(arg0: Program, /) -> list[str]: ...
def load_model(arg0: str, arg1: int, arg2: int, /) -> Any: ...
def prepare_model(arg0: Program, arg1: Dataset | None, arg2: str, arg3: int, arg4: bool, /) -> Any: ...
def quantize_model(
    arg0: Program, arg1: Dataset | None, arg2: Dataset | None, arg3: QuantizeArguments, /
) -> Any: ...
def load_dataset(arg0: str, arg1: str, /) -> Dataset: ...
def make_dataset(arg0: Sequence[tuple[str, torch.Tensor]], arg1: str, /) -> Dataset: ...
def describe_fit(arg0: Program, arg1: Dataset, arg2: bool, /) -> list[str]: ...
def write_file(arg0: str, arg1: str, /) -> None: ...
def optimize(arg0: Program, arg1: Dataset | None, arg2: OptimizeArguments, arg3: Any, /) -> tuple[Any, str]: ...
def train(
    arg0: Program, arg1: Dataset, arg2: Dataset | None, arg3: dict[str, Any], arg4: Any, /
) -> tuple[Program, dict[str, Any], list[tuple[str, torch.Tensor]]]: ...
def budget(arg0: Program, arg1: Dataset, arg2: dict[str, Any], /) -> dict[str, Any]: ...
def save_program(arg0: Program, arg1: str, /) -> None: ...
