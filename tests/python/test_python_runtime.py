"""The runtime's part of the package: numpy in and out, without torch and with it, pickles and copies, async, errors."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import lissome
import ml_dtypes
import numpy as np
import pytest
import torch
from lissome import _runtime
from lissome.plain_tree import read_plain_tree
from shared_model import find_wrong_answers
from torch.utils import _pytree as pytree


class Nested(torch.nn.Module):
    """A dictionary of a tensor and a list, a keyword; a dictionary with a tuple comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = torch.nn.Linear(8, 4), torch.nn.Linear(6, 4)

    def forward(self, features, *, gain):
        hidden = torch.relu(self.left(features["left"]) + self.right(features["right"][0]))
        return {"sum": hidden, "pair": (hidden * gain, [hidden.mean()])}


class Counter(torch.nn.Module):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls.add_(1)
        return x + self.calls


@pytest.fixture(scope="module")
def fast() -> lissome.FastModel:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).eval()
    return lissome.prepare(module, (torch.randn(2, 64),), threads=1)


def run_python(folder: Path, source: str, *words: object) -> str:
    """A process of its own, in which torch cannot be imported."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.modules['torch'] = None\n" + source, *map(str, words)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(lissome.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


WITHOUT_TORCH = """
import numpy as np, pickle, copy, asyncio, lissome
model = lissome.load("nested.lissome")
given = np.load("given.npz")
features = {"left": given["left"], "right": [given["right"]]}
for model in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.to_numpy()):
    result = model(features, gain=given["gain"])
    assert list(result) == ["sum", "pair"] and type(result["pair"]) is tuple and type(result["pair"][1]) is list
result = asyncio.run(model.run_async(features=features, gain=given["gain"]))
np.savez("seen.npz", sum=result["sum"], scaled=result["pair"][0], mean=result["pair"][1][0])
try:
    model({"left": given["left"]}, gain=given["gain"])
except lissome.InvalidInputError as error:
    print("refused", "keys" in str(error))
try:
    lissome.optimize
except ImportError as error:
    print(isinstance(error, lissome.Error), "pip install lissome torch" in str(error))
try:
    lissome.load("module.pt2")
except ImportError as error:
    print(isinstance(error, lissome.Error), "pip install lissome torch" in str(error))
print([str(value) for value in model.inputs])
maps = open("/proc/self/maps").read()
print("liblissome_runtime" in maps, "libtorch" in maps or "libc10" in maps)
"""


def test_a_process_without_torch_loads_and_runs(tmp_path: Path):
    torch.manual_seed(0)
    module, features = Nested().eval(), {"left": torch.randn(2, 8), "right": [torch.randn(2, 6)]}
    gain = torch.tensor(2.0)
    lissome.prepare(module, (features,), example_kwargs={"gain": gain}).save(tmp_path / "nested.lissome")
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.randn(3),)), tmp_path / "module.pt2")
    np.savez(tmp_path / "given.npz", left=features["left"], right=features["right"][0], gain=gain)
    lines = run_python(tmp_path, WITHOUT_TORCH).splitlines()
    assert lines[:3] == ["refused True", "True True", "True True"]
    assert lines[3].startswith("['features.left: f32[") and lines[3].endswith("gain: f32[]']")
    assert lines[4] == "True False"
    expected = module(features, gain=gain)
    with np.load(tmp_path / "seen.npz") as seen:
        np.testing.assert_allclose(seen["sum"], expected["sum"].detach(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(seen["scaled"], expected["pair"][0].detach(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(seen["mean"], expected["pair"][1][0].detach(), rtol=1e-5, atol=1e-6)


def test_numpy_gives_numpy_and_torch_gives_torch(fast: lissome.FastModel):
    x = torch.randn(3, 64)
    expected = fast(x)
    assert isinstance(expected, torch.Tensor)
    seen = fast(x.numpy())
    assert isinstance(seen, np.ndarray) and seen.dtype == np.float32
    assert np.array_equal(seen, expected.numpy())
    always = fast.to_numpy()
    assert isinstance(always(x), np.ndarray) and np.array_equal(always(x), seen)


DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.uint8, torch.int8, torch.int16, torch.int32,
          torch.int64, torch.bool, torch.complex64]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_element_type(dtype: torch.dtype):
    class Turn(torch.nn.Module):
        def forward(self, x):
            return x.transpose(0, 1).clone()

    x = (torch.arange(24).reshape(4, 6) % 2).to(dtype)
    fast = lissome.prepare(Turn(), (x,))
    assert torch.equal(fast(x), x.T) and fast(x).dtype == dtype
    if dtype == torch.bfloat16:  # numpy lacks it
        assert fast.to_numpy()(x).dtype == np.float32 and np.array_equal(fast.to_numpy()(x), x.T.float().numpy())
        return
    assert np.array_equal(fast(x.numpy()), x.T.numpy()) and fast(x.numpy()).dtype == x.numpy().dtype
    assert fast.inputs[0].shape[1] == 6


def test_bf16_arrays_of_ml_dtypes_are_taken():
    class Double(torch.nn.Module):
        def forward(self, x):
            return 2 * x

    x = torch.randn(5, 7).bfloat16()
    fast = lissome.prepare(Double(), (x,))
    seen = fast(x.float().numpy().astype(ml_dtypes.bfloat16))
    assert seen.dtype == np.float32 and np.array_equal(seen, (2 * x).float().numpy())


def make_arrays() -> dict[str, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((6, 64)).astype(np.float32)
    shifted = np.frombuffer(b"\0" + x.tobytes(), np.float32, offset=1).reshape(x.shape)
    return {
        "dense": x,
        "rows": np.concatenate([x, x])[6:],
        "read only": np.frombuffer(x.tobytes(), np.float32).reshape(x.shape),
        "column order": np.asfortranarray(x),
        "every other": np.repeat(x, 2, axis=0)[::2],
        "backwards": x[::-1, ::-1].copy()[::-1, ::-1],
        "misaligned": shifted,
        "big endian": x.astype(">f4"),
        "broadcast": np.broadcast_to(x[:1], x.shape),
    }


LENT = ("dense", "rows", "read only")


@pytest.mark.parametrize("form", make_arrays())
def test_dense_aligned_arrays_are_lent_and_others_copied(fast: lissome.FastModel, form: str):
    array = make_arrays()[form]
    assert _runtime.count_copies([array]) == (form not in LENT)
    np.testing.assert_array_equal(fast(array), fast(np.array(array, np.float32, order="C")))


def test_results_own_the_memory_that_the_session_wrote(fast: lissome.FastModel):
    x = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    first = fast(x)
    kept = first.copy()
    fast(2 * x)
    assert np.array_equal(first, kept) and first.flags.writeable
    assert type(first.base).__name__ == "PyCapsule"  # holds the session's array: no copy was made
    tensor = fast(torch.from_numpy(x))
    assert tensor.numpy().base is not None


def test_inputs_outputs_and_repr(fast: lissome.FastModel):
    assert [value.name for value in fast.inputs] == ["input"]
    assert fast.inputs[0].dtype == "f32" and fast.inputs[0].shape[1] == 64
    assert fast.outputs[0].shape[1] == 10
    assert repr(fast).startswith("<lissome model (input: f32[") and "not measured" in repr(fast)


@pytest.mark.parametrize("way", ["pickle", "copy", "deepcopy"])
def test_copies_answer_the_same(fast: lissome.FastModel, way: str):
    made = {"pickle": lambda it: pickle.loads(pickle.dumps(it)), "copy": copy.copy, "deepcopy": copy.deepcopy}[way](fast)
    x = torch.randn(5, 64)
    assert torch.equal(made(x), fast(x)) and made.record == fast.record
    assert made.threads == fast.threads == 1
    assert isinstance(pickle.loads(pickle.dumps(fast.to_numpy()))(x), np.ndarray)


def test_a_copy_has_a_state_of_its_own():
    fast = lissome.prepare(Counter(), (torch.zeros(2),))
    assert fast(np.zeros(2, np.float32))[0] == 1 and fast(np.zeros(2, np.float32))[0] == 2
    for made in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        assert made(np.zeros(2, np.float32))[0] == 1
    assert fast(np.zeros(2, np.float32))[0] == 3


def test_a_pickle_is_read_as_a_file_is(fast: lissome.FastModel):
    data = pickle.dumps(fast)
    place = data.index(b"plan.json")
    broken = data[: place + 200] + bytes(20) + data[place + 220 :]
    with pytest.raises(lissome.InvalidInputError):
        pickle.loads(broken)
    function, arguments = fast.__reduce__()
    with pytest.raises(lissome.Error):
        function(b"no model", *arguments[1:])


def test_the_event_loop_goes_on_while_a_model_runs():
    module = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).eval()
    x = np.random.default_rng(0).standard_normal((512, 1024)).astype(np.float32)
    fast = lissome.prepare(module, (torch.from_numpy(x),), threads=1)
    expected = fast(x)

    async def work() -> tuple[Any, list[float]]:
        running = [asyncio.create_task(fast.run_async(x)) for _ in range(3)]
        ticks = []
        while not all(task.done() for task in running):
            ticks.append(time.perf_counter())
            await asyncio.sleep(0.001)
        return [await task for task in running], ticks

    results, ticks = asyncio.run(work())
    assert all(np.array_equal(result, expected) for result in results)
    # Were the loop blocked by each run, it would come round about once between two of them.
    assert len(ticks) > 8


def test_threads_share_one_model(fast: lissome.FastModel):
    x = np.random.default_rng(2).standard_normal((40, 64)).astype(np.float32)
    assert not find_wrong_answers(fast, x, np.array_equal)


# ---- how arguments nest, read without torch ---------------------------------------------------------------------------


def list_nestings() -> list[Any]:
    """Every combination of two levels of containers, in several sizes."""
    from collections import OrderedDict

    makers = [tuple, list, lambda items: dict(zip("abcd", items)), lambda items: OrderedDict(zip("dcba", items))]
    inner = [make(range(size)) for make in makers for size in (0, 1, 3)]
    return [*inner, *(make([left, 7, right]) for make in makers for left in inner for right in inner)]


@pytest.mark.parametrize("first", range(0, 600, 150))
def test_trees_are_read_as_torch_reads_them(first: int):
    for value in list_nestings()[first : first + 150]:
        leaves, spec = pytree.tree_flatten(value)
        tree = read_plain_tree(json.loads(pytree.treespec_dumps(spec))[1])
        assert tree is not None and tree.num_leaves == len(leaves)
        assert tree.flatten_up_to(value) == leaves == spec.flatten_up_to(value)
        made = tree.unflatten(leaves)
        assert made == value and type(made) is type(value)


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_every_kind_of_error_has_the_class_that_the_library_names():
    import builtins

    from lissome.errors import BY_KIND

    assert list(BY_KIND) == list(_runtime.error_kinds)
    for kind, name in _runtime.error_kinds.items():
        assert issubclass(BY_KIND[kind], lissome.Error) and issubclass(BY_KIND[kind], getattr(builtins, name))


WRONG_INPUTS = ["x", None, object(), {1, 2}, b"x", [1.0], 3 + 4j]


@pytest.mark.parametrize("value", WRONG_INPUTS, ids=lambda value: type(value).__name__)
def test_an_input_of_a_wrong_type_is_a_type_error_by_name(fast: lissome.FastModel, value: Any):
    with pytest.raises((TypeError, ValueError)) as raised:
        fast(value)
    assert isinstance(raised.value, lissome.InvalidInputError)
    assert "input" in str(raised.value)


def test_errors_are_pythons_own_too(fast: lissome.FastModel, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="missing.lissome") as raised:
        lissome.load(tmp_path / "missing.lissome")
    assert isinstance(raised.value, lissome.UsageError)
    with pytest.raises(ValueError, match="63"):
        fast(np.zeros((1, 63), np.float32))
    with pytest.raises(ValueError, match=r"f64.*; convert its elements to f32$"):
        fast(np.zeros((1, 64)))
    with pytest.raises(ValueError, match="64 bits"):
        fast(2**70)
    with pytest.raises(ValueError, match="elements of type"):
        fast(np.array(["a"]))
    with pytest.raises(OSError, match="lissome-test"):
        fast.save("/sys/lissome-test.lissome")
    with pytest.raises(TypeError, match="path is of type int"):
        lissome.load(3)
    with pytest.raises(TypeError, match="threads is of type str"):
        lissome.load(tmp_path, threads="many")
