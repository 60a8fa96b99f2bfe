"""Calls every op that a model file may call with hostile arguments, in forked children: none may die or hang.

Seeds are valid calls: those of PyTorch's own samples for its ops (op_db), traced below Python, and calls made from the
schema alone. Each attack changes a few arguments of a seed: indices of -1, 2^31, 1e11 and INT64_MIN, empty and huge
tensors, sizes of nothing, strides of 0, other dtypes, sparse tensors, paddings and windows out of range, lists of
another length, NaN and INT64_MIN as numbers. The library's checks of values stand before each call (guard_calls.cpp),
as they do when it runs a program; --raw leaves them out, to see what they are for. With --meta the calls are those of
the check of what a file says of its values: on tensors without elements.

    attack_ops.py --seed 1 --trials 200             every op
    attack_ops.py --seed 1 --trials 20 --ops 60     a sample of 60 ops
    attack_ops.py --only aten::embedding_bag --trials 2000
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import os
import random
import re
import resource
import select
import signal
import sys
import time
import traceback
import types
import unittest
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "lissome" / "program" / "check" / "allowed_ops.h"
GUARD = ROOT / "build" / "release" / "tests" / "guard_calls.so"
GIB = 1 << 30
INTEGERS = (-1, 0, 1, 2, 3, -2, 5, 17, 127, 2**31 - 1, 2**31, -(2**31), 10**11, 2**62, 2**63 - 1, -(2**63))
INDICES = (-1, 0, 1, 2, 3, 7, -7, 2**31 - 1, 2**31, 10**11, -(10**11), 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, float("nan"), float("inf"), -float("inf"))
DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.uint8, torch.int8, torch.bfloat16,
          torch.float16, torch.complex64)
SIZES = ((), (0,), (1,), (2,), (3,), (5,), (2, 3), (3, 2), (0, 3), (3, 0), (1, 1), (4, 4), (2, 3, 4), (1, 2, 5, 5),
         (2, 0, 3), (2, 3, 4, 5), (1, 1, 3, 3, 3), (2**30, 2**30, 0), (0, 2**40))


def allowed_ops() -> list[str]:
    """The table's, and all of ours where the library is built."""
    ours = []
    if GUARD.is_file():
        ctypes.CDLL(str(GUARD)).lissome_register_ops()
        ours = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("lissome::")]
    return re.findall(r'"([^"]+)"', TABLE.read_text()) + sorted(ours)


def find_op(name: str) -> Any:
    space, _, rest = name.partition("::")
    word, _, overload = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, space), word), overload or "default")
    except AttributeError:
        return None


# ---- seeds ----------------------------------------------------------------------------------------------------------
def load_samples() -> list:
    """PyTorch's descriptions of its ops, whose module wants a package that only its own tests use."""
    stub = types.ModuleType("expecttest")
    stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    sys.modules.setdefault("expecttest", stub)
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


def trace_calls(function: Any, inputs: list) -> list[tuple[Any, tuple, dict]]:
    """The dispatcher's calls that a function makes, before they are decomposed and after."""
    from torch.fx.experimental.proxy_tensor import make_fx

    calls = []

    class Recorder(torch.fx.Interpreter):
        def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
            if isinstance(target, torch._ops.OpOverload):
                calls.append((target, args, dict(kwargs)))
            return super().call_function(target, args, kwargs)

    for pre_dispatch in (True, False):
        try:
            graph = make_fx(function, pre_dispatch=pre_dispatch)(*inputs)
            Recorder(graph).run(*inputs)
        except Exception:  # noqa: BLE001 - a sample that does not trace gives no seed
            continue
    return calls


def flatten_call(call: tuple[Any, tuple, dict]) -> list:
    """The arguments by the schema's order, defaults written out."""
    target, args, kwargs = call
    flat = list(args)
    for argument in target._schema.arguments[len(args):]:
        flat.append(kwargs.get(argument.name, argument.default_value))
    return flat


def call_op(op: Any, call: list) -> Any:
    """By the schema: arguments behind the star go by their names."""
    named = {argument.name: value for argument, value in zip(op._schema.arguments, call) if argument.kwarg_only}
    return op(*call[: len(call) - len(named)], **named)


def sample_seeds(wanted: set[str], most: int) -> dict[str, list[list]]:
    seeds: dict[str, list[list]] = {}
    for info in load_samples():
        words = {info.aten_name, info.name.replace(".", "_"), info.name.split(".")[-1]}
        if not any(name.split("::")[1].split(".")[0].strip("_") in words or len(wanted) > 500 for name in wanted):
            continue
        for dtype in (torch.float32, torch.int64):
            if dtype not in info.supported_dtypes("cpu"):
                continue
            try:
                samples = list(zip(range(most), info.sample_inputs("cpu", dtype, requires_grad=False)))
            except Exception:  # noqa: BLE001 - a sample that cannot be made gives no seed
                continue
            for _, sample in samples:
                values, spec = torch.utils._pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
                places = [i for i, value in enumerate(values) if isinstance(value, torch.Tensor)]

                def run(*tensors: torch.Tensor) -> Any:
                    filled = list(values)
                    for place, tensor in zip(places, tensors):
                        filled[place] = tensor
                    first, args, kwargs = torch.utils._pytree.tree_unflatten(filled, spec)
                    return info.op(first, *args, **kwargs)

                for call in trace_calls(run, [values[place] for place in places]):
                    name = call[0]._schema.name
                    name += f".{call[0]._schema.overload_name}" if call[0]._schema.overload_name else ""
                    if name in wanted and len(seeds.setdefault(name, [])) < 24:
                        seeds[name].append(flatten_call(call))
    return seeds


# ---- hostile arguments ----------------------------------------------------------------------------------------------
def make_tensor(r: random.Random, sizes: tuple | None = None, dtype: torch.dtype | None = None) -> torch.Tensor:
    sizes = r.choice(SIZES) if sizes is None else sizes
    dtype = r.choice(DTYPES) if dtype is None else dtype
    count = 1
    for size in sizes:
        count *= size
    if count == 0 or count > 10**6:
        return torch.empty(sizes, dtype=dtype) if count == 0 else torch.zeros(1, dtype=dtype).expand(sizes)
    if dtype.is_floating_point or dtype.is_complex:
        tensor = torch.randn(sizes).to(dtype)
        if r.random() < 0.2:
            tensor.view(-1)[r.randrange(count)] = r.choice(FLOATS)
        return tensor
    if dtype == torch.bool:
        return torch.rand(sizes) > 0.5
    return fill_indices(r, torch.zeros(sizes, dtype=dtype))


def fill_indices(r: random.Random, tensor: torch.Tensor) -> torch.Tensor:
    limits = torch.iinfo(tensor.dtype)
    fitting = [index for index in INDICES if limits.min <= index <= limits.max]
    flat = tensor.clone().reshape(-1)
    if r.random() < 0.3:
        flat.fill_(r.choice(fitting))
    else:
        for _ in range(r.randint(1, 3)):
            flat[r.randrange(flat.numel())] = r.choice(fitting)
    return flat.reshape(tensor.shape)


def make_sparse(r: random.Random) -> torch.Tensor:
    """A sparse tensor whose indices were overwritten after it had been checked, as in-place ops of a program can."""
    dense = torch.randn(4, 4) * (torch.rand(4, 4) > 0.5)
    layout = r.choice((torch.sparse_coo, torch.sparse_csr, torch.sparse_csc))
    return dense.to_sparse().coalesce() if layout == torch.sparse_coo else dense.to_sparse(layout=layout)


def spoil_tensor(r: random.Random, tensor: torch.Tensor) -> Any:
    if tensor.layout != torch.strided:
        return make_tensor(r) if r.random() < 0.5 else tensor
    choice = r.random()
    integral = not tensor.dtype.is_floating_point and not tensor.dtype.is_complex and tensor.dtype != torch.bool
    if integral and tensor.numel() and choice < 0.6:
        return fill_indices(r, tensor)
    if choice < 0.25:
        return tensor.to(r.choice(DTYPES))
    if choice < 0.35 and tensor.dim():
        return tensor.narrow(r.randrange(tensor.dim()), 0, 0)
    if choice < 0.45 and tensor.dim():
        return tensor.select(r.randrange(tensor.dim()), 0) if tensor.numel() else tensor
    if choice < 0.55:
        return tensor.unsqueeze(0)
    if choice < 0.65 and tensor.dim() and tensor.numel():
        dim = r.randrange(tensor.dim())
        return tensor.narrow(dim, 0, 1).expand([r.choice((7, 64)) if i == dim else s
                                                for i, s in enumerate(tensor.shape)])
    if choice < 0.7:
        return tensor.transpose(0, -1) if tensor.dim() else tensor
    if choice < 0.75:
        return make_sparse(r)
    if choice < 0.82 and tensor.is_floating_point() and tensor.numel():
        return torch.full_like(tensor, r.choice(FLOATS))
    if choice < 0.9 and tensor.dim():
        return torch.cat([tensor, tensor], r.randrange(tensor.dim()))
    return make_tensor(r)


def spoil(r: random.Random, value: Any, type_name: str) -> Any:
    if isinstance(value, torch.Tensor):
        return spoil_tensor(r, value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return r.choice(INTEGERS) if r.random() < 0.8 else value + r.choice((-1, 1))
    if isinstance(value, float):
        return r.choice(FLOATS)
    if isinstance(value, (list, tuple)):
        items = list(value)
        choice = r.random()
        if not items:
            return make_argument(r, type_name)
        if choice < 0.15:
            items.pop()
        elif choice < 0.3:
            items.append(items[-1])
        elif choice < 0.35:
            items = []
        else:
            place = r.randrange(len(items))
            items[place] = spoil(r, items[place], type_name.removeprefix("List[").removesuffix("]"))
        return items
    if value is None:
        return make_argument(r, type_name.removeprefix("Optional[").removesuffix("]"))
    return value


def make_argument(r: random.Random, type_name: str) -> Any:
    if type_name.startswith("Optional["):
        return None if r.random() < 0.5 else make_argument(r, type_name.removeprefix("Optional[").removesuffix("]"))
    if type_name.startswith("List["):
        inner = type_name.removeprefix("List[").removesuffix("]")
        return [make_argument(r, inner) for _ in range(r.randrange(4))]
    if type_name == "Tensor":
        return make_sparse(r) if r.random() < 0.03 else make_tensor(r)
    if type_name in ("int", "SymInt"):
        return r.choice(INTEGERS)
    if type_name == "float":
        return r.choice(FLOATS)
    if type_name == "bool":
        return r.random() < 0.5
    if type_name == "number":
        return r.choice(INTEGERS + FLOATS)
    if type_name == "str":
        return r.choice(("", "none", "relu", "mean", "sum", "reflect", "bij,bjk->bik", "a" * 300))
    return None


def make_call(r: random.Random, op: Any, seeds: list[list]) -> list:
    types = [str(argument.type) for argument in op._schema.arguments]
    if not seeds or r.random() < 0.15:
        return [make_argument(r, name) for name in types]
    call = list(r.choice(seeds))
    if not types:
        return call
    for _ in range(r.randint(0, 3)):
        place = r.randrange(len(types))
        call[place] = spoil(r, call[place], types[place])
    return call


# ---- children -------------------------------------------------------------------------------------------------------
def describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        text = f"{str(value.dtype)[6:]}{list(value.shape)}"
        if value.layout != torch.strided:
            return text + str(value.layout)
        return text + (str(value.reshape(-1)[:6].tolist()) if 0 < value.numel() < 10**6 else "")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(describe(item) for item in value) + "]"
    return repr(value)


def guard_calls(on_meta: bool = False) -> bool:
    """Puts the library's own checks of values before every call of this thread; false where it is not built."""
    if not GUARD.is_file():
        return False
    ctypes.CDLL(str(GUARD)).lissome_guard_calls(ctypes.c_bool(on_meta))
    return True


def take_python_forms_out() -> None:
    """What torch.library adds to the meta device from Python; a process without Python has libtorch's own forms."""
    torch._meta_registrations._meta_lib_dont_use_me_use_register_meta._destroy()


def enter_child() -> None:
    """No core files, no words on stderr, and 1 GiB beyond what the parent holds: enough for every honest call."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + GIB
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def attack(name: str, op: Any, seeds: list[list], seed: int, first: int, trials: int, report: int,
           guarded: bool, on_meta: bool) -> None:
    """In a child: writes the number of each trial before it, so that the parent knows which one ended it."""
    enter_child()
    if guarded:
        guard_calls(on_meta)
    done = refused = 0
    for trial in range(first, trials):
        r = random.Random(f"{name} {seed} {trial}")
        torch.manual_seed(r.randrange(2**31))
        os.write(report, f"{trial}\n".encode())
        try:
            call = make_call(r, op, seeds)
            with torch.no_grad():
                result = call_op(op, call)
            del result, call
            done += 1
        except Exception:  # noqa: BLE001 - any error is a refusal
            refused += 1
    os.write(report, f"end {done} {refused}\n".encode())


def run_child(work: Any, limit: float) -> tuple[str, str]:
    """What the child wrote, and how it ended: "ok", "hang" or a signal's name."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            work(write_end)
            os._exit(0)
        except BaseException:  # noqa: BLE001 - reported by the exit status
            traceback.print_exc()
            os._exit(3)
    os.close(write_end)
    text = b""
    last = time.monotonic()
    end = "ok"
    while True:
        ready, _, _ = select.select([read_end], [], [], 0.2)
        if ready:
            part = os.read(read_end, 65536)
            if not part:
                break
            text += part
            last = time.monotonic()
        elif time.monotonic() - last > limit:
            os.kill(child, signal.SIGKILL)
            end = "hang"
            break
    os.close(read_end)
    _, status = os.waitpid(child, 0)
    if end == "ok" and os.WIFSIGNALED(status):
        end = signal.Signals(os.WTERMSIG(status)).name
    elif end == "ok" and os.WEXITSTATUS(status) != 0:
        end = f"exit {os.WEXITSTATUS(status)}"
    return text.decode(), end


def attack_op(name: str, seeds: list[list], seed: int, trials: int, guarded: bool, on_meta: bool,
              most: int) -> tuple[int, int, list[str]]:
    op = find_op(name)
    calls = refused = first = 0
    findings: list[str] = []
    while first < trials and len(findings) < most:
        text, end = run_child(lambda report: attack(name, op, seeds, seed, first, trials, report, guarded, on_meta), 10.0)
        lines = text.split("\n")[:-1]
        if lines and lines[-1].startswith("end"):
            _, done, no = lines[-1].split()
            calls, refused = calls + int(done), refused + int(no)
            break
        trial = int(lines[-1]) if lines else first
        r = random.Random(f"{name} {seed} {trial}")
        torch.manual_seed(r.randrange(2**31))
        findings.append(f"{end}: {name} trial {trial}: {describe(make_call(r, op, seeds))}")
        calls += len(lines)
        first = trial + 1
    return calls, refused, findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--ops", type=int, default=0, help="a sample of so many ops; 0: all")
    parser.add_argument("--only", default="", help="ops whose name matches this expression")
    parser.add_argument("--most", type=int, default=3, help="findings an op, after which it is left")
    parser.add_argument("--samples", type=int, default=4, help="samples that are traced for each op and dtype; 0: none")
    parser.add_argument("--raw", action="store_true", help="without the library's own check of values")
    parser.add_argument("--meta", action="store_true", help="on tensors without elements")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    names = [name for name in allowed_ops() if find_op(name) is not None and re.search(arguments.only, name)]
    if arguments.ops:
        order = {name: hashlib.sha256(f"{arguments.seed} {name}".encode()).digest() for name in names}
        names = sorted(names, key=order.__getitem__)[: arguments.ops]
    guarded = not arguments.raw and GUARD.is_file()
    seeds = sample_seeds(set(names), arguments.samples) if arguments.samples else {}
    if arguments.meta:
        take_python_forms_out()
    calls = refused = 0
    findings: list[str] = []
    for name in names:
        done, no, found = attack_op(name, seeds.get(name, []), arguments.seed, arguments.trials, guarded,
                                    arguments.meta, arguments.most)
        calls, refused, findings = calls + done, refused + no, findings + found
        for finding in found:
            print(finding, flush=True)
    print(f"{len(names)} ops, {len(seeds)} with samples: {calls} calls answered, {refused} refused, "
          f"{len(findings)} died or hung; values were {'checked' if guarded else 'not checked'} before the call")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
