"""The Python package: the module's own arguments and structure, data in every form, errors as exceptions."""

from __future__ import annotations

import _thread
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from shared_model import find_wrong_answers

import lissome

QUICK: dict[str, Any] = {"time": "15s", "threads": 1}


def make_classifier() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).eval()


class Nested(torch.nn.Module):
    """A dict of a tensor and a list, an optional, a keyword; a dict with a tuple comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.left = torch.nn.Linear(8, 4)
        self.right = torch.nn.Linear(6, 4)

    def forward(self, features, shift=None, *, gain):
        hidden = torch.relu(self.left(features["left"]) + self.right(features["right"][0]))
        hidden = hidden if shift is None else hidden + shift
        return {"sum": hidden, "pair": (hidden * gain, [hidden.mean()])}


class Point(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


def assert_same(seen: Any, expected: Any) -> None:
    """Same structure, close numbers."""
    assert type(seen) is type(expected)
    if isinstance(expected, dict):
        assert list(seen) == list(expected)
        for key, value in expected.items():
            assert_same(seen[key], value)
    elif isinstance(expected, tuple | list):
        assert len(seen) == len(expected)
        for left, right in zip(seen, expected, strict=True):
            assert_same(left, right)
    elif isinstance(expected, torch.Tensor):
        torch.testing.assert_close(seen, expected, rtol=1e-5, atol=1e-5)
    else:
        assert seen == expected


@pytest.fixture(scope="module")
def samples() -> torch.Tensor:
    return torch.randn(200, 64, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def labels(samples: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return make_classifier()(samples).argmax(1)


@pytest.fixture(scope="module")
def fast(samples: torch.Tensor, labels: torch.Tensor) -> lissome.FastModel:
    return lissome.optimize(make_classifier(), (samples[:1],), data=samples, labels=labels, **QUICK)


def test_version():
    assert lissome.version.count(".") == 2 and lissome.__version__ == lissome.version


def test_optimize(fast: lissome.FastModel, samples: torch.Tensor, labels: torch.Tensor):
    assert fast.record["metric"] == "top1" and fast.record["quality_original"] == 1
    assert fast.record["steps"] and fast.record["answer"] in repr(fast)
    # Exported with a batch of any size, because the data has many samples.
    for count in (1, 7, 64):
        output = fast(samples[:count])
        assert output.shape == (count, 10)
    assert (fast(samples).argmax(1) == labels).float().mean() >= 0.99
    assert fast.report.startswith("<!doctype html>") and fast.threads == 1


def test_save_and_load(fast: lissome.FastModel, samples: torch.Tensor, tmp_path: Path):
    fast.save(tmp_path / "fast.lissome")
    again = lissome.load(tmp_path / "fast.lissome", threads=1)
    assert torch.equal(again(samples[:3]), fast(samples[:3]))
    assert again.record == fast.record
    again.save(tmp_path / "fast.lissome")  # over the file that it is mapped from
    assert torch.equal(lissome.load(tmp_path / "fast.lissome", threads=1)(samples[:3]), fast(samples[:3]))


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_prepare_in_a_lower_precision(samples: torch.Tensor, tmp_path: Path, precision: str):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(samples.shape[1], 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).eval()
    fast = lissome.prepare(module, (samples[:2],), precision=precision, data=samples)
    with torch.no_grad():
        wanted = module(samples)
    error = float((fast(samples) - wanted).norm() / wanted.norm())
    assert 0 < error < 0.1 and error == pytest.approx(fast.precision["relative_error"], rel=0.5)
    assert fast.precision["how"].startswith(precision)
    fast.save(tmp_path / "fast.lissome")
    assert lissome.load(tmp_path / "fast.lissome").precision == fast.precision
    assert lissome.prepare(module, (samples[:2],)).precision["relative_error"] is None
    with pytest.raises(lissome.UsageError, match="int8 needs data"):
        lissome.prepare(module, (samples[:2],), precision="int8")
    with pytest.raises(lissome.UsageError, match="f32, bf16 or int8"):
        lissome.prepare(module, (samples[:2],), precision="int4")


class BatchStatistics(torch.nn.Module):
    """Normalizes as in training, whatever its mode."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)
        self.register_buffer("mean", torch.arange(4) / 4)
        self.register_buffer("variance", torch.arange(4) + 1.0)

    def forward(self, x, training: bool = True):
        return torch.nn.functional.batch_norm(self.linear(x), self.mean, self.variance, training=training, momentum=0.0)


def test_what_behaves_as_in_training_after_eval_is_said():
    module, x = BatchStatistics().eval(), torch.randn(6, 8)
    with pytest.warns(UserWarning, match="converted to its eval form.*running statistics are used") as warned:
        fast = lissome.prepare(module, (x[:2],))
    assert [warning.filename for warning in warned] == [__file__]
    torch.testing.assert_close(fast(x), module(x, training=False), rtol=1e-5, atol=1e-5)
    with pytest.warns(UserWarning, match="converted to its eval form"):
        lissome.quantize(module, (x[:2],), data=(torch.randn(32, 8),))
    with pytest.warns(UserWarning, match="converted to its eval form"):
        lissome.optimize(module, (x[:2],), time="1s", threads=1)


def test_load_within_a_limit(tmp_path: Path):
    torch.manual_seed(0)
    module = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(8))).eval()
    x = torch.randn(3, 512)
    lissome.prepare(module, (x,), threads=1).save(tmp_path / "wide.lissome")
    unlimited = lissome.load(tmp_path / "wide.lissome", threads=1)
    expected = unlimited(x)
    assert unlimited.stream.weights == unlimited.stream.streamed == 0
    for memory in ("4MiB", 4 << 20):
        limited = lissome.load(tmp_path / "wide.lissome", threads=1, memory=memory)
        for _ in range(3):
            assert torch.equal(limited(x), expected)
        assert isinstance(limited.stream, lissome.StreamFacts)
        assert repr(limited.stream).startswith("StreamFacts(weights=")
        assert limited.stream.weights >= 8 << 20 and limited.stream.bytes_per_second > 0
        assert limited.stream.weights - (4 << 20) <= limited.stream.streamed < limited.stream.weights
    with pytest.raises(lissome.OverBudgetError, match="at least"):
        lissome.load(tmp_path / "wide.lissome", memory="64KiB")
    for memory in ("much", 0, -1, float("nan")):
        with pytest.raises(lissome.UsageError):
            lissome.load(tmp_path / "wide.lissome", memory=memory)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "wide.pt2")
    with pytest.raises(lissome.UnsupportedError, match="libtorch"):
        lissome.load(tmp_path / "wide.pt2", memory="4MiB")


def test_output_and_report_files(samples: torch.Tensor, tmp_path: Path):
    files = {"output": tmp_path / "out.lissome", "report": tmp_path / "out.html"}
    fast = lissome.optimize(make_classifier(), (samples[:1],), **files, **QUICK)
    assert (tmp_path / "out.html").read_text() == fast.report
    assert torch.equal(lissome.load(tmp_path / "out.lissome", threads=1)(samples[:1]), fast(samples[:1]))


@pytest.fixture(scope="module")
def nested() -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    torch.manual_seed(0)
    features = {"left": torch.randn(2, 8), "right": [torch.randn(2, 6)]}
    return Nested().eval(), (features,), {"gain": torch.tensor(2.0)}


def test_nested_arguments_and_results(nested):
    module, arguments, keywords = nested
    fast = lissome.prepare(module, arguments, example_kwargs=keywords)
    expected = module(*arguments, **keywords)
    assert_same(fast(*arguments, **keywords), expected)
    # By name, in another order, dicts in another order too.
    swapped = {"right": arguments[0]["right"], "left": arguments[0]["left"]}
    assert_same(fast(gain=keywords["gain"], features=swapped), expected)


def test_loaded_models_keep_their_structure(nested, tmp_path: Path):
    module, arguments, keywords = nested
    lissome.prepare(module, arguments, example_kwargs=keywords).save(tmp_path / "nested.lissome")
    loaded = lissome.load(tmp_path / "nested.lissome")
    assert_same(loaded(*arguments, **keywords), module(*arguments, **keywords))


def test_arguments_that_nest_otherwise(nested):
    module, arguments, keywords = nested
    fast = lissome.prepare(module, arguments, example_kwargs=keywords)
    with pytest.raises(lissome.InvalidInputError, match="nest"):
        fast({"left": arguments[0]["left"]}, **keywords)
    with pytest.raises(lissome.InvalidInputError):
        fast(*arguments)
    with pytest.raises(lissome.InvalidInputError):
        fast(*arguments, **keywords, extra=torch.zeros(1))


def test_data_nested_as_the_arguments():
    torch.manual_seed(0)
    module, count = Nested().eval(), 40
    data = {"left": torch.randn(count, 8), "right": [torch.randn(count, 6)]}
    example = ({"left": data["left"][:2], "right": [data["right"][0][:2]]},)

    class Fixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, features):
            return self.inner(features, gain=2.0)["sum"]

    fast = lissome.optimize(Fixed().eval(), example, data=data, **QUICK)
    assert fast.record["metric"] == "cosine"
    assert fast(data).shape == (count, 4)


def forms(samples: torch.Tensor, labels: torch.Tensor, folder: Path) -> dict[str, dict[str, Any]]:
    arrays = {"input": samples.numpy(), "labels": labels.numpy()}
    np.savez(folder / "data.npz", **arrays)
    dataset = torch.utils.data.TensorDataset(samples, labels)
    return {
        "path": {"data": folder / "data.npz", "labels": "labels"},
        "dict": {"data": arrays, "labels": "labels"},
        "tensor": {"data": samples, "labels": labels},
        "tuple": {"data": (samples.numpy(),), "labels": labels.numpy()},
        "dataset": {"data": dataset},
        "loader": {"data": torch.utils.data.DataLoader(dataset, batch_size=32)},
        "batches": {"data": ((samples[i : i + 50], labels[i : i + 50]) for i in range(0, 200, 50))},
        "dict batches": {"data": [{"input": samples[i::4], "labels": labels[i::4]} for i in range(4)]},
    }


@pytest.mark.parametrize(
    "form", ["path", "dict", "tensor", "tuple", "dataset", "loader", "batches", "dict batches"]
)
def test_forms_of_data(samples: torch.Tensor, labels: torch.Tensor, tmp_path: Path, form: str):
    from lissome.samples import gather_samples

    given = forms(samples, labels, tmp_path)[form]
    dataset = gather_samples(given["data"], given.get("labels"), ["input"])
    assert dataset.samples == 200
    assert dataset.has_labels


def test_inputs_are_not_copied():
    """A model that only looks at the first row of a large input: a copy of the input would be most of the time."""

    class First(torch.nn.Module):
        def forward(self, x):
            return x[0] * 2

    large = torch.randn(16_000_000)[None].reshape(16_000, 1_000)
    fast = lissome.prepare(First(), (large,), threads=1)
    torch.testing.assert_close(fast(large), large[0] * 2)

    def time_of(call) -> float:
        from time import perf_counter

        seconds = []
        for _ in range(15):
            start = perf_counter()
            call()
            seconds.append(perf_counter() - start)
        return float(np.median(seconds))

    assert time_of(lambda: fast(large)) < time_of(large.clone) / 4


class Masked(torch.nn.Module):
    """A mean over the words that count."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(50, 16)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        words = self.words(ids)
        return {"mean": (words * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True), "words": words}


def test_padding_up_to_buckets(tmp_path: Path):
    module, words = Masked().eval(), torch.export.Dim("words", min=1, max=64)
    example = (torch.arange(14).reshape(2, 7), torch.ones(2, 7))
    torch.export.save(torch.export.export(module, example, dynamic_shapes=({1: words}, {1: words})), tmp_path / "m.pt2")
    plain = lissome.prepare(tmp_path / "m.pt2")
    padded = plain.pad_to("ids.1", [8, 32], example, pads={"ids": 0, "mask": 0})
    assert plain.seen_difference is None and 0 <= padded.seen_difference <= 1e-3
    for length in (1, 7, 8, 20, 32, 40):
        inputs = (torch.randint(0, 50, (2, length)), torch.ones(2, length))
        seen = padded(*inputs)
        assert seen["words"].shape == (2, length, 16)
        assert_same(seen, module(*inputs))
    with pytest.raises(lissome.UnsupportedError, match="changes output"):
        plain.pad_to("ids.1", [8, 32], example, pads={"ids": 0, "mask": 1})
    with pytest.raises(lissome.UsageError, match="'mask' is not given"):
        plain.pad_to("ids.1", [8, 32], example, pads={"ids": 0})
    padded.save(tmp_path / "m.lissome")
    assert lissome.load(tmp_path / "m.lissome").seen_difference is None


class Chosen(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (x * mask.unsqueeze(-1)).sum(1)


def test_an_input_of_truth_values_is_padded_with_one():
    words = torch.export.Dim("words", min=1, max=64)
    example = (torch.randn(2, 7, 3), torch.rand(2, 7) > 0.5)
    plain = lissome.prepare(torch.export.export(Chosen(), example, dynamic_shapes=({1: words}, {1: words})))
    padded = plain.pad_to("mask.1", [8, 32], example, pads={"x": 0, "mask": False})
    x, mask = torch.randn(2, 20, 3), torch.rand(2, 20) > 0.5
    torch.testing.assert_close(padded(x, mask), Chosen()(x, mask), rtol=1e-4, atol=1e-5)
    assert plain.pad_to("mask.1", [8, 32], example, pads={"x": 0, "mask": True}).seen_difference <= 1e-3
    with pytest.raises(lissome.ArgumentTypeError, match="of type bool; a number is allowed"):
        plain.pad_to("mask.1", [8, 32], example, pads={"x": False, "mask": False})
    assert "mask: bool[2, " in repr(plain)


def test_strided_inputs_and_gradients(fast: lissome.FastModel, samples: torch.Tensor):
    expected = fast(samples[:8])
    strided = torch.stack([samples[:8], samples[:8]], dim=2)[:, :, 0]
    assert not strided.is_contiguous() and torch.equal(fast(strided), expected)
    assert torch.equal(fast(samples[:8].clone().requires_grad_()), expected)


def test_outputs_own_their_memory(fast: lissome.FastModel, samples: torch.Tensor):
    first = fast(samples[:2])
    kept = first.clone()
    fast(samples[2:4])
    assert torch.equal(first, kept)


def test_threads_share_one_model(fast: lissome.FastModel, samples: torch.Tensor):
    assert not find_wrong_answers(fast, samples, torch.equal)


def test_the_lock_of_the_interpreter_is_free_while_it_runs():
    module = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).eval()
    x = torch.randn(512, 1024)
    fast = lissome.prepare(module, (x,), threads=1)
    fast(x)
    ticks, done = [0], threading.Event()

    def count() -> None:
        while not done.wait(0.001):
            ticks[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    ticks[0] = 0
    for _ in range(3):
        fast(x)
    seen = ticks[0]
    done.set()
    counter.join()
    # Held, the other thread could only step in between two calls.
    assert seen > 6


def test_an_interrupt_carries_the_best_so_far(samples: torch.Tensor):
    def interrupt(*progress: Any) -> None:
        if not interrupted:
            interrupted.append(progress)
            _thread.interrupt_main()

    interrupted: list[Any] = []
    with pytest.raises(KeyboardInterrupt, match="best") as raised:
        lissome.optimize(make_classifier(), (samples[:1],), progress=interrupt, **QUICK)
    fast = raised.value.best
    assert isinstance(raised.value, lissome.Interrupted)
    assert interrupted and fast.record["interrupted"]
    torch.testing.assert_close(fast(samples[:1]), make_classifier()(samples[:1]))


def test_the_module_is_left_alone(samples: torch.Tensor):
    module = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Dropout(0.5)).train()
    module[1].eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    fast = lissome.prepare(module, (samples[:2],))
    assert module.training and module[0].training and not module[1].training
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    torch.testing.assert_close(fast(samples[:2]), module[0](samples[:2]))


def test_goal_out_of_reach_is_an_answer(samples: torch.Tensor):
    fast = lissome.optimize(make_classifier(), (samples[:1],), latency=1e-9, **QUICK)
    assert fast.record["blocker"] and not fast.record["goals"][0]["met"]


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_classes_of_errors():
    also = {
        lissome.UsageError: ValueError,
        lissome.InvalidInputError: ValueError,
        lissome.UnsupportedError: NotImplementedError,
        lissome.OverBudgetError: MemoryError,
        lissome.InputOutputError: OSError,
        lissome.InternalError: RuntimeError,
    }
    for kind, builtin in also.items():
        assert issubclass(kind, lissome.Error) and issubclass(kind, builtin)


def test_errors(fast: lissome.FastModel, samples: torch.Tensor, tmp_path: Path):
    module, example = make_classifier(), (samples[:1],)
    with pytest.raises(lissome.UsageError, match="missing.lissome"):
        lissome.load(tmp_path / "missing.lissome")
    torch.save(module.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(lissome.UnsupportedError, match="state dict"):
        lissome.load(tmp_path / "weights.pt")
    with pytest.raises(lissome.UsageError, match="accuracy"):
        lissome.optimize(module, example, metric="accuracy", **QUICK)
    with pytest.raises(lissome.UsageError, match="soon"):
        lissome.optimize(module, example, latency="soon")
    with pytest.raises(lissome.UsageError, match="example_inputs"):
        lissome.optimize(module)
    with pytest.raises(lissome.UsageError, match="batch"):
        lissome.optimize(module, example, batch=0)
    with pytest.raises(TypeError, match="data is of type int"):
        lissome.optimize(module, example, data=3)
    with pytest.raises(lissome.InvalidInputError, match="no batch"):
        lissome.optimize(module, example, data=iter(()))
    with pytest.raises(lissome.InvalidInputError, match="63"):
        lissome.optimize(module, example, data=samples[:, :63])
    with pytest.raises(lissome.InvalidInputError, match="20"):
        lissome.optimize(module, example, data=samples[:20], labels=torch.zeros(19, dtype=torch.int64))
    with pytest.raises(lissome.InvalidInputError, match="63"):
        fast(samples[:1, :63])
    with pytest.raises(lissome.InvalidInputError, match="str"):
        fast("x")
    with pytest.raises(lissome.InputOutputError):
        fast.save("/sys/lissome-test.lissome")
    assert not list(tmp_path.glob("*.lissome"))


def test_a_module_that_cannot_be_exported(samples: torch.Tensor):
    class Unclear(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x

    with pytest.raises(lissome.UnsupportedError, match="torch.export refuses"):
        lissome.prepare(Unclear(), (samples[:1],))


def test_results_that_torch_cannot_store():
    class Pair(torch.nn.Module):
        def forward(self, x):
            return Point(x + 1, x * 2)

    with pytest.raises(lissome.UnsupportedError, match=r"_register_namedtuple\(Name, serialized_type_name="):
        lissome.prepare(Pair(), (torch.randn(3),))


def test_the_original_is_kept_where_it_is_asked_for(samples: torch.Tensor, tmp_path: Path):
    module = make_classifier()
    for keep_original in (False, True):
        lissome.prepare(module, (samples[:2],), keep_original=keep_original).save(tmp_path / "m.lissome")
        assert torch.allclose(lissome.load(tmp_path / "m.lissome")(samples[:3]), module(samples[:3]), atol=1e-5)
        if keep_original:
            assert torch.allclose(lissome.prepare(tmp_path / "m.lissome")(samples[:3]), module(samples[:3]), atol=1e-5)
        else:
            with pytest.raises(lissome.UnsupportedError, match="--keep-original"):
                lissome.prepare(tmp_path / "m.lissome")


class Several(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(12, 3)

    def forward(self, first: torch.Tensor, *others: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        return self.head(torch.cat([first, *others, last], 1))


def test_the_batch_is_free_where_forward_takes_any_number_of_arguments():
    module, parts = Several().eval(), [torch.randn(7, 3) for _ in range(4)]
    fast = lissome.prepare(module, tuple(part[:1] for part in parts[:3]), example_kwargs={"last": parts[3][:1]})
    wanted = module(*parts[:3], last=parts[3])
    torch.testing.assert_close(fast(*parts[:3], last=parts[3]), wanted, rtol=1e-4, atol=1e-5)


def test_the_batch_is_free_without_data():
    module, x = torch.nn.Linear(6, 3).eval(), torch.randn(9, 6)
    fast = lissome.optimize(module, (x[:4],), time="1s")
    torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)


class Sized(torch.nn.Module):
    """Takes another branch at some sizes of the batch."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if self.kind == "distances":
            return torch.cdist(a, b)  # by another formula above 25 rows
        if self.kind == "least":
            return a + b if a.shape[0] >= 3 else a * b
        return a + b if a.shape[0] % 2 == 0 else a * b


@pytest.mark.parametrize(
    ("kind", "rows", "said", "sizes"),
    [
        ("distances", 4, "takes a batch of 2 to 25 alone", (2, 7, 25)),
        ("distances", 1, "stays as in example_inputs", (1,)),
        ("least", 4, "takes a batch of 3 or more alone", (3, 4, 30)),
        ("even", 4, "stays as in example_inputs", (4,)),
    ],
)
def test_code_that_asks_for_the_batch_narrows_it_as_little_as_it_must(
    kind: str, rows: int, said: str, sizes: tuple[int, ...]
):
    module = Sized(kind)
    with pytest.warns(lissome.DataWarning, match="for the module's code asks for its size$") as seen:
        fast = lissome.prepare(module, (torch.randn(rows, 6), torch.randn(rows, 6)))
    assert len(seen) == 1 and said in str(seen[0].message) and seen[0].filename == __file__
    for size in sizes:
        inputs = torch.randn(size, 6), torch.randn(size, 6)
        torch.testing.assert_close(fast(*inputs), module(*inputs), rtol=1e-4, atol=1e-5)


def test_labels_without_data_are_refused():
    with pytest.raises(lissome.UsageError, match="labels: there is no data"):
        lissome.optimize(torch.nn.Linear(3, 2), (torch.randn(1, 3),), labels=torch.zeros(1))


class Rounded(torch.nn.Module):
    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (3 * x).to(self.dtype).float() + x.to(self.dtype) * x.to(self.dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_a_model_rounds_stays_rounded(dtype: torch.dtype):
    module, x = Rounded(dtype), torch.randn(5, 37)
    assert torch.equal(lissome.prepare(module, (x,))(x), module(x))


def test_a_model_in_f16_is_optimized():
    layers = torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)
    module, x = torch.nn.Sequential(*layers).half().eval(), torch.randn(40, 16)
    fast = lissome.optimize(module, (x[:1].half(),), data=x.half(), time="3s")
    torch.testing.assert_close(fast(x.half()), module(x.half()), rtol=1e-2, atol=1e-2)


def test_an_exported_program_is_a_model(tmp_path: Path):
    module = torch.nn.Linear(4, 3).eval()
    x = torch.randn(2, 4)
    exported = torch.export.export(module, (x,))
    fast = lissome.prepare(exported)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), module(x))
    with pytest.raises(lissome.ArgumentTypeError, match="ExportedProgram"):
        lissome.prepare(3)


SQUEEZES: dict[str, Any] = {
    "all": lambda x: x.squeeze(),
    "first": lambda x: x.squeeze(0),
    "several": lambda x: x.squeeze((0, 1)),
}


@pytest.mark.parametrize("name", SQUEEZES)
def test_a_named_size_of_1_that_a_squeeze_would_take_away_is_refused(name: str):
    class Squeezing(torch.nn.Module):  # type: ignore[misc,unused-ignore]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = SQUEEZES[name](x)
            return y.softmax(0) + y.sum(0)

    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(Squeezing(), (torch.randn(6, 5),), dynamic_shapes=({0: batch},))
    model = lissome.prepare(exported)
    with pytest.raises(lissome.InvalidInputError, match="in 2..64"):
        model(torch.randn(1, 5))
    for size in (2, 3, 8):
        x = torch.randn(size, 5)
        torch.testing.assert_close(model(x), exported.module()(x))


def test_a_constant_size_of_1_is_squeezed_at_any_batch():
    module = torch.nn.Linear(4, 1)
    batch = torch.export.Dim("batch", min=1, max=64)
    sequence = torch.nn.Sequential(module, torch.nn.Flatten(0, 1))
    for model in (lissome.prepare(torch.export.export(sequence, (torch.randn(3, 4),), dynamic_shapes=({0: batch},))),):
        assert model(torch.randn(1, 4)).shape == (1,)
