"""Every schedule gives PyTorch's rates, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch.optim import lr_scheduler

RATE = 0.05
TOTAL = 60


def make_optimizer(rate: float = RATE) -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.zeros(1)], lr=rate, momentum=0.9)


def list_rates(make: Callable[[torch.optim.Optimizer], lr_scheduler.LRScheduler], steps: int) -> list[list[float]]:
    """Rate and momentum of each step in PyTorch."""
    optimizer = make_optimizer()
    schedule = make(optimizer)
    seen = []
    for step in range(steps):
        group = optimizer.param_groups[0]
        seen.append([float(group["lr"]), float(group["momentum"])])
        optimizer.step()
        if step + 1 < steps:
            schedule.step()
    return seen


def chain(optimizer: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
    parts = [
        lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=10),
        lr_scheduler.CosineAnnealingLR(optimizer, T_max=20),
        lr_scheduler.StepLR(optimizer, step_size=7),
    ]
    return lr_scheduler.SequentialLR(optimizer, parts, milestones=[10, 30])


def warm_up(optimizer: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
    parts = [
        lr_scheduler.LinearLR(optimizer, start_factor=1 / 15, total_iters=15),
        lr_scheduler.CosineAnnealingLR(optimizer, T_max=TOTAL - 15),
    ]
    return lr_scheduler.SequentialLR(optimizer, parts, milestones=[15])


SCHEDULES = [
    ("constant:factor=0.5", lambda o: lr_scheduler.ConstantLR(o, factor=0.5, total_iters=1000)),
    ("linear:steps=20", lambda o: lr_scheduler.LinearLR(o, total_iters=20)),
    ("linear:start=1,end=0.2,steps=2e", lambda o: lr_scheduler.LinearLR(o, 1, 0.2, total_iters=20)),
    ("cosine", lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=TOTAL)),
    ("cosine:steps=25,min=0.001", lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=25, eta_min=0.001)),
    ("cosine:warmup=15", warm_up),
    ("step:size=7", lambda o: lr_scheduler.StepLR(o, 7)),
    ("step:size=2e,gamma=0.5", lambda o: lr_scheduler.StepLR(o, 20, gamma=0.5)),
    ("multistep:milestones=5/9/2e", lambda o: lr_scheduler.MultiStepLR(o, [5, 9, 20])),
    ("exponential:gamma=0.9", lambda o: lr_scheduler.ExponentialLR(o, 0.9)),
    ("polynomial:steps=30,power=2", lambda o: lr_scheduler.PolynomialLR(o, 30, power=2)),
    ("linear:start=0.1,steps=10+cosine:steps=20@10+step:size=7@30", chain),
    ("onecycle", lambda o: lr_scheduler.OneCycleLR(o, RATE, total_steps=TOTAL)),
    (
        "onecycle:max=0.2,steps=6e,pct_start=0.4,anneal=linear,div_factor=10,final_div_factor=100",
        lambda o: lr_scheduler.OneCycleLR(
            o, 0.2, epochs=6, steps_per_epoch=10, pct_start=0.4, anneal_strategy="linear", div_factor=10,
            final_div_factor=100,
        ),
    ),
    (
        "onecycle:phases=3,base_momentum=0.8,max_momentum=0.9",
        lambda o: lr_scheduler.OneCycleLR(
            o, RATE, total_steps=TOTAL, three_phase=True, base_momentum=0.8, max_momentum=0.9
        ),
    ),
    ("onecycle:cycle_momentum=no", lambda o: lr_scheduler.OneCycleLR(o, RATE, total_steps=TOTAL, cycle_momentum=False)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:The epoch parameter in")
@pytest.mark.parametrize(("text", "make"), SCHEDULES, ids=[text for text, _ in SCHEDULES])
def test_rates_equal_those_of_pytorch(
    text: str, make: Callable[[torch.optim.Optimizer], lr_scheduler.LRScheduler], run_train: Callable[..., str]
):
    wanted = list_rates(make, TOTAL)
    printed = run_train("schedule", text, RATE, TOTAL, 10, TOTAL)
    seen = [[float(word) for word in line.split()] for line in printed.splitlines()]
    assert len(seen) == TOTAL
    for step, ((rate, momentum), (wanted_rate, wanted_momentum)) in enumerate(zip(seen, wanted, strict=True)):
        assert math.isclose(rate, wanted_rate, rel_tol=1e-12, abs_tol=1e-14), (step, rate, wanted_rate)
        if momentum != -1:
            assert math.isclose(momentum, wanted_momentum, rel_tol=1e-12), (step, momentum, wanted_momentum)
    cycled = text.startswith("onecycle") and "cycle_momentum=no" not in text
    assert all((momentum != -1) == cycled for _, momentum in seen)


METRICS = [1.0, 0.9, 0.9, 0.95, 0.91, 0.8999, 0.92, 0.93, 0.5, 0.6, 0.6, 0.6, 0.6, 0.7, 0.4, 0.5, 0.5, 0.5, 0.5, 0.5]
PLATEAUS = [
    ("plateau:patience=1", {"patience": 1}),
    ("plateau:patience=2,cooldown=2,factor=0.5", {"patience": 2, "cooldown": 2, "factor": 0.5}),
    ("plateau:mode=max,patience=1,min=0.002", {"mode": "max", "patience": 1, "min_lr": 0.002}),
    (
        "plateau:patience=0,threshold=0.2,threshold_mode=abs",
        {"patience": 0, "threshold": 0.2, "threshold_mode": "abs"},
    ),
]


@pytest.mark.parametrize(("text", "options"), PLATEAUS, ids=[text for text, _ in PLATEAUS])
def test_plateaus_equal_those_of_pytorch(text: str, options: dict[str, object], run_train: Callable[..., str]):
    optimizer = make_optimizer()
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    wanted = []
    for metric in METRICS:
        schedule.step(metric)
        wanted.append(optimizer.param_groups[0]["lr"])
    seen = [float(line) for line in run_train("plateau", text, RATE, *METRICS).splitlines()]
    assert len(set(seen)) > 1
    assert seen == pytest.approx(wanted, rel=1e-12)
