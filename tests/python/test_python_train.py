"""lissome.train: the module's own weights are trained, in the form in which it is, and its state dict keeps its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import lissome


def make_classifier() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 3)
    )


def make_data(samples: int = 96) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(samples, 6, generator=generator)
    return x, x[:, :3].argmax(1)


def train(module: torch.nn.Module, **keywords: Any) -> lissome.Trained:
    x, labels = make_data()
    return lissome.train(module, x, labels=labels, example_inputs=(x[:4],), batch=16, lr=0.02, **keywords)


def copy_state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def test_the_module_learns(tmp_path: Path):
    module = make_classifier().train()
    before = copy_state(module)
    x, labels = make_data()
    seen: list[str] = []
    trained = train(module, epochs=12, validation=(x,), validation_labels=labels, progress=lambda stage, *_: seen.append(stage))
    epochs = trained.record["epochs"]
    assert len(epochs) == 12
    assert trained.record["steps"] == 12 * 6
    assert epochs[-1]["loss"] < 0.6 * epochs[0]["loss"]
    assert "training" in seen
    after = module.state_dict()
    assert list(after) == list(before)
    assert all(not torch.equal(after[name], before[name]) for name in before)
    assert int(after["1.num_batches_tracked"]) == 72
    module.eval()
    with torch.no_grad():
        assert (module(x).argmax(1) == labels).float().mean() > 0.85
        trained.save(tmp_path / "trained.lissome")
        again = lissome.load(tmp_path / "trained.lissome")
        torch.testing.assert_close(again(x[:5]), module(x[:5]), rtol=1e-4, atol=1e-5)


def test_the_processs_threads_and_random_numbers_stay_as_they_were():
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        module = make_classifier().train()
        generator = torch.get_rng_state()
        train(module, epochs=1, threads=1)
        assert torch.get_num_threads() == 2
        assert torch.equal(torch.get_rng_state(), generator)
    finally:
        torch.set_num_threads(threads)


def test_what_is_frozen_stays():
    module = make_classifier().train()
    before = copy_state(module)
    train(module, freeze=["0.*"])
    after = module.state_dict()
    assert torch.equal(after["0.weight"], before["0.weight"])
    assert not torch.equal(after["4.weight"], before["4.weight"])


def test_a_module_in_eval_form_keeps_its_statistics():
    module = make_classifier().eval()
    before = copy_state(module)
    trained = train(module, optimizer="sgd", optimizer_options={"momentum": 0.9})
    assert torch.equal(module.state_dict()["1.running_mean"], before["1.running_mean"])
    assert not torch.equal(module.state_dict()["0.weight"], before["0.weight"])
    assert any("eval mode" in note for note in trained.record["notes"])


def test_the_same_seed_gives_the_same_weights():
    states = []
    for _ in range(2):
        module = make_classifier().train()
        train(module, seed=3)
        states.append(copy_state(module))
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_updates_in_the_backward_pass_give_the_same_weights():
    states = []
    for update_in_backward in (False, True):
        module = make_classifier().train()
        train(module, clip=0, update_in_backward=update_in_backward, epochs=2)
        states.append(copy_state(module))
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    with pytest.raises(lissome.UsageError, match="Give clip=0"):
        train(make_classifier(), update_in_backward=True)


def test_lossy_activations_are_for_a_budget_and_reported():
    with pytest.raises(lissome.UsageError, match="give memory, recompute auto and a number for batch"):
        train(make_classifier().train(), lossy_activations=True)
    trained = train(make_classifier().train(), lossy_activations=True, memory="1GiB")
    assert any("no activations are stored in bf16" in note for note in trained.record["notes"])


def test_offloading_is_reported_and_leaves_the_weights(tmp_path: Path):
    states = []
    for offload in (None, tmp_path):
        module = make_classifier().train()
        train(module, offload=offload, memory="1GiB")
        states.append(copy_state(module))
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    with pytest.raises(lissome.UsageError, match="no/folder"):
        train(make_classifier().train(), offload="no/folder")
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3)).train()
    words = {"labels": torch.arange(16) % 3, "example_inputs": (torch.rand(4, 12),), "batch": 8, "memory": "1GiB"}
    found = lissome.budget(module, torch.rand(16, 12), offload=tmp_path, **words)
    assert found["offloaded"] == found["offloaded_bytes"] == found["bytes_predicted"]["states"] == 0


def test_page_locked_memory_without_a_device_is_noted_and_changes_nothing():
    states = []
    for pin_memory in (False, True):
        module = make_classifier().train()
        trained = train(module, pin_memory=pin_memory)
        states.append(copy_state(module))
        noted = any("has no effect" in note for note in trained.record["notes"])
        assert noted == (pin_memory and not torch.cuda.is_available())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_bytes_are_images_for_a_budget_too_where_a_transform_makes_floats():
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3)).train()
    images, labels = torch.randint(0, 256, (16, 3, 2, 2), dtype=torch.uint8), torch.arange(16) % 3
    words = {"labels": labels, "example_inputs": (torch.rand(4, 3, 2, 2),), "batch": 8, "memory": "1GiB"}
    with pytest.raises(lissome.InvalidInputError, match="has the type u8"):
        lissome.budget(module, images, **words)
    assert lissome.budget(module, images, transforms="to_float", **words)["nodes_recomputed"] == 0


def test_memory_and_precision_are_kept_to():
    module = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(12)))
    x = torch.randn(256, 64)
    trained = lissome.train(
        module.train(), x, labels=x.sin(), loss="mse", example_inputs=(x[:4],), batch=256, memory="3MiB", precision="bf16"
    )
    assert any("are predicted to take" in note for note in trained.record["notes"])
    assert trained.record["peak_memory"] <= 3 << 20
    with pytest.raises(lissome.OverBudgetError, match="1.0 KiB"):
        lissome.train(module, x, labels=x.sin(), loss="mse", example_inputs=(x[:4],), memory=1024)
    with pytest.raises(lissome.UsageError, match="precision of a training must be f32"):
        train(make_classifier(), precision="f8")


def test_bad_input_is_refused():
    module = make_classifier().train()
    before = copy_state(module)
    x, labels = make_data()
    with pytest.raises(lissome.InvalidInputError, match="sample 5 has the label 7"):
        labels[5] = 7
        lissome.train(module, x, labels=labels, example_inputs=(x[:4],))
    with pytest.raises(lissome.UsageError, match="optimizer must be adamw"):
        train(module, optimizer="rprop")
    with pytest.raises(lissome.InvalidInputError, match="labels"):
        lissome.train(module, x, example_inputs=(x[:4],))
    assert all(torch.equal(module.state_dict()[name], before[name]) for name in before)


class Tower(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(8))
        self.head = torch.nn.Linear(64, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


OLD_KEYS = {
    "nodes_run_again": "nodes_recomputed",
    "seconds_told": "seconds_predicted",
    "seconds_told_keeping_all": "seconds_predicted_keeping_all",
    "bytes_told": "bytes_predicted",
}


def check_old_keys(found: dict[str, Any]) -> None:
    """The keys of the version before are there with the values of the new ones."""
    assert all(found[old] == found[new] for old, new in OLD_KEYS.items()), found
    assert found["modules"] and all(row["made_again"] == row["recomputed"] for row in found["modules"]), found


def test_a_budget_is_predicted_and_kept():
    torch.manual_seed(0)
    module, x, labels = Tower().train(), torch.randn(512, 64), torch.arange(512) % 3
    before = copy_state(module)
    words = {"labels": labels, "example_inputs": (x[:4],), "batch": 512, "threads": 1}
    plain = lissome.budget(module, x, memory="1GiB", **words)
    assert plain["nodes_recomputed"] == 0 and plain["bytes"] == pytest.approx(plain["bytes_predicted"], rel=0.03)
    memory = int(plain["bytes"]["all"] - 0.3 * plain["bytes"]["activations"])
    small = lissome.budget(module, x, memory=memory, **words)
    assert small["nodes_recomputed"] > 0
    assert small["bytes"]["all"] <= memory < plain["bytes"]["all"]
    assert sum(row["recomputed"] for row in small["modules"]) > 0
    assert small["seconds"] > 0 and small["seconds_predicted"] > small["seconds_predicted_keeping_all"]
    check_old_keys(small)
    given = lissome.budget(module, x, memory="1GiB", update_in_backward=True, **words)
    assert given["bytes"]["gradients"] == 0
    assert given["bytes"]["all"] < plain["bytes"]["all"] - 0.7 * plain["bytes"]["gradients"]
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    with pytest.raises(lissome.OverBudgetError, match="before any activation"):
        lissome.budget(module, x, memory="100KiB", **words)


def test_the_old_name_of_8_bit_states_is_accepted_with_a_warning():
    states = []
    for name in ("states_8bit", "byte_states"):
        torch.manual_seed(2)
        module = torch.nn.Sequential(torch.nn.Linear(6, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 3)).train()
        if name == "byte_states":
            with pytest.warns(DeprecationWarning, match="old name of 'states_8bit'"):
                train(module, optimizer_options={name: True})
        else:
            train(module, optimizer_options={name: True})
        states.append(copy_state(module))
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    with pytest.raises(lissome.UsageError, match="sgd has no 'states_8bit'"):
        train(make_classifier(), optimizer="sgd", optimizer_options={"states_8bit": True})


class Pictures(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 5, 3)
        self.head = torch.nn.Linear(5, 4)
        self.head.weight = torch.nn.Parameter(torch.randn(5, 4).t())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.conv(x).relu().mean((2, 3)))


@pytest.mark.parametrize("place", [True, False])
def test_weights_in_another_order_than_rows_train(place: bool):
    """Channels-last and transposed weights learn what others learn, and stay where and as they lie."""
    torch.manual_seed(2)
    module = Pictures().to(memory_format=torch.channels_last).train()
    dense = Pictures().train()
    dense.load_state_dict(module.state_dict())
    dense.head.weight = torch.nn.Parameter(dense.head.weight.detach().contiguous())
    x, labels = torch.randn(40, 3, 8, 8), torch.arange(40) % 4
    strides = [parameter.stride() for parameter in module.parameters()]
    assert strides != [parameter.stride() for parameter in dense.parameters()]
    places = [parameter.data_ptr() for parameter in module.parameters()]
    words = {"labels": labels, "example_inputs": (x[:4],), "batch": 20, "epochs": 3, "lr": 0.05}
    if not place:
        words["memory"] = "64MiB"
    lissome.budget(module, x, labels=labels, example_inputs=(x[:4],), batch=20, memory="64MiB")
    for each in (module, dense):
        lissome.train(each, x, **words)
    assert strides == [parameter.stride() for parameter in module.parameters()]
    assert places == [parameter.data_ptr() for parameter in module.parameters()]
    for (name, seen), (_, wanted) in zip(module.named_parameters(), dense.named_parameters(), strict=True):
        torch.testing.assert_close(seen, wanted, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")


class Gated(torch.nn.Module):
    """Takes no gradient of the gate, in each of the ways that there are."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.linear = way, torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.way == "detach":
            gate = self.linear(x).detach()
        else:
            with torch.no_grad() if self.way == "no_grad" else torch.set_grad_enabled(False):
                gate = self.linear(x)
        return self.linear(x) * gate


@pytest.mark.parametrize("way", ["no_grad", "set_grad_enabled", "detach"])
@pytest.mark.parametrize("outside", [True, False])
def test_what_a_module_takes_no_gradient_of_has_none(way: str, outside: bool):
    torch.manual_seed(0)
    module, x, y = Gated(way), torch.randn(8, 3), torch.randn(8, 3)
    before = module.linear.weight.detach().clone()
    torch.nn.functional.mse_loss(module(x), y).backward()
    assert module.linear.weight.grad is not None
    wanted = module.linear.weight.grad.clone()
    with torch.set_grad_enabled(outside):
        lissome.train(module, x, labels=y, loss="mse", optimizer="sgd", lr=1.0, clip=0.0, batch=8, example_inputs=(x,))
    torch.testing.assert_close(before - module.linear.weight.detach(), wanted, rtol=1e-4, atol=1e-5)


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        x.add_(1)
        return y


@pytest.mark.parametrize("precision", ["f32", "bf16", "fp16"])
def test_a_module_that_writes_to_its_input_is_refused(precision: str):
    x, y = torch.randn(8, 3), torch.randn(8, 3)
    with pytest.raises(lissome.UnsupportedError, match="writes to an input, 'x'"):
        lissome.train(Counting(), x, labels=y, loss="mse", example_inputs=(x[:4],), batch=4, precision=precision)


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return -gradient


class OwnBackward(torch.nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.linear = kind, torch.nn.Linear(3, 3)
        if kind == "parameter":
            self.linear.weight.register_hook(lambda gradient: -gradient)
        if kind == "module":
            self.linear.register_full_backward_pre_hook(lambda module, gradients: (-gradients[0],))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        if self.kind == "function":
            y = Reversed.apply(y)
        if self.kind == "tensor" and y.requires_grad:
            y.register_hook(lambda gradient: -gradient)
        return y


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("function", "Reversed has a backward of its own"),
        ("tensor", "a tensor a hook of its gradient"),
        ("parameter", "the parameter linear.weight has a hook"),
        ("module", "Linear linear has a hook of the backward pass"),
    ],
)
def test_code_of_the_backward_pass_that_no_export_holds_is_refused(kind: str, message: str):
    apply, register = torch.autograd.Function.__dict__["apply"], torch.Tensor.register_hook
    x, y = torch.randn(8, 3), torch.randn(8, 3)
    with pytest.raises(lissome.UnsupportedError, match=message):
        lissome.train(OwnBackward(kind), x, labels=y, loss="mse", example_inputs=(x[:4],), batch=4)
    assert torch.autograd.Function.__dict__["apply"] is apply and torch.Tensor.register_hook is register
    lissome.train(OwnBackward("none"), x, labels=y, loss="mse", example_inputs=(x[:4],), batch=4)
    assert lissome.prepare(OwnBackward(kind), (x[:4],))(x).shape == (8, 3)  # without gradients it plays no part


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"recompute": "foo"}, "^recompute must be .*'foo'"),
        ({"recompute": "every:0"}, "'every:0'"),
        ({"label_smoothing": -0.1}, "label_smoothing is -0.1; 0 to 1 is allowed"),
        ({"clip": -1.0}, "clip is -1; a finite number"),
        ({"clip": float("nan")}, "clip is nan"),
        ({"memory": 0}, "memory is 0 bytes; 1 or more"),
        ({"memory": 1.5}, "memory is 1.5 bytes; a whole number"),
        ({"recompute": "modules:zzz"}, "recompute='modules:zzz' needs memory"),
        ({"update_in_backward": True, "clip": 0, "accumulate": 2}, "in place of accumulate"),
        ({"validation_labels": torch.arange(3)}, "validation_labels: there are no samples for them"),
    ],
)
def test_values_out_of_range_are_refused(keywords: dict[str, Any], message: str):
    with pytest.raises(lissome.UsageError, match=message):
        train(make_classifier().train(), **keywords)


def test_pytorchs_own_errors_stay_its_own():
    train(make_classifier().train(), epochs=1)
    for work in (lambda: torch.ops.aten.mm(torch.ones(2), torch.ones(2)), lambda: torch.jit.load("nowhere.pt")):
        with pytest.raises((RuntimeError, ValueError)) as raised:
            work()
        assert not isinstance(raised.value, lissome.Error)


def test_a_table_with_sparse_gradients_trains():
    module, x, y = torch.nn.Embedding(10, 4, sparse=True), torch.randint(0, 10, (8, 7)), torch.randn(8, 7, 4)
    before = module.weight.detach().clone()
    torch.nn.functional.mse_loss(module(x), y).backward()
    assert module.weight.grad is not None
    wanted = module.weight.grad.to_dense()
    lissome.train(module, x, labels=y, loss="mse", optimizer="sgd", lr=1.0, clip=0.0, batch=8, example_inputs=(x[:4],))
    torch.testing.assert_close(before - module.weight.detach(), wanted, rtol=1e-4, atol=1e-6)


class TwoForms(torch.nn.Module):
    """Does something else while self.training is set."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.linear = kind, torch.nn.Linear(6, 3)
        self.register_buffer("mean", torch.zeros(3), persistent=kind != "unsaved mean")
        if kind == "spectral norm":
            torch.nn.utils.parametrizations.spectral_norm(self.linear)
        if kind == "spectral norm by hooks":
            torch.nn.utils.spectral_norm(self.linear)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        if self.training and self.kind == "noise":
            y = y + torch.randn_like(y)
        if self.training and self.kind.endswith("mean"):
            self.mean.lerp_(y.detach().mean(0), 0.1)
        return y - self.mean


@pytest.mark.parametrize("kind", ["noise", "mean", "unsaved mean", "spectral norm", "spectral norm by hooks"])
def test_the_result_is_the_modules_own_eval_form(tmp_path: Path, kind: str):
    module, x = TwoForms(kind).train(), make_data()[0]
    trained = train(module, epochs=2)
    assert module.training and not any("will update its state" in note for note in trained.record["notes"])
    trained.save(tmp_path / "trained.lissome")
    with torch.no_grad():
        wanted = module.eval()(x)
    for model in (trained, lissome.load(tmp_path / "trained.lissome"), lissome.optimize(trained, time="1s")):
        for _ in range(3):
            torch.testing.assert_close(model(x), wanted, rtol=1e-4, atol=1e-5)


class NoEvalForm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y if self.training or y.sum() > 0 else -y


def test_a_module_whose_eval_form_cannot_be_exported_keeps_its_train_form():
    module, x = NoEvalForm().train(), make_data()[0]
    with pytest.warns(UserWarning, match="for its eval form is refused") as seen:
        trained = train(module)
    assert [str(warning.category.__name__) for warning in seen] == ["UserWarning"] and seen[0].filename == __file__
    torch.testing.assert_close(trained(x), module(x), rtol=1e-4, atol=1e-5)


class LossInTrain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 3)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        scores = self.linear(x)
        return {"loss": torch.nn.functional.cross_entropy(scores, y), "scores": scores} if self.training else scores


def test_a_loss_that_train_form_alone_returns():
    module, (x, labels) = LossInTrain().train(), make_data()
    trained = lissome.train(module, {"x": x, "y": labels}, loss="loss", example_inputs=(x[:4], labels[:4]))
    torch.testing.assert_close(trained(x, labels), module.eval()(x, labels), rtol=1e-4, atol=1e-5)


class AlwaysDropout(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.dropout(self.linear(x), 0.1).unsqueeze(1)
        return torch.nn.functional.scaled_dot_product_attention(y, y, y, dropout_p=0.1).squeeze(1)


def test_dropout_that_never_ends_is_left_out_of_what_is_saved(tmp_path: Path):
    module, x = AlwaysDropout().train(), make_data()[0]
    trained = train(module)
    trained.save(tmp_path / "trained.lissome")
    again = lissome.load(tmp_path / "trained.lissome")
    assert torch.equal(again(x), again(x))
    for model in (trained, again):
        torch.testing.assert_close(model(x), module.linear(x), rtol=1e-4, atol=1e-5)
