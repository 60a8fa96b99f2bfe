"""lissome.memory_probe: what a stretch of Python takes and leaves behind."""

import lissome
import pytest
import torch


def test_a_block_tells_its_peak_and_what_it_keeps(capsys: pytest.CaptureFixture[str]):
    kept = []
    with lissome.memory_probe("work") as use:
        x = torch.zeros(1000, 100)
        y = torch.zeros_like(x)
        del x
        kept.append(y)
        del y
    assert use.peak == 2 * 400_000 and use.kept == 400_000 and use.efficiency == 0.5
    assert use.tensors == [("float32[1000, 100]", 400_000)]
    assert capsys.readouterr().err == "work: peak 781.2 KiB, kept 390.6 KiB (50%): float32[1000, 100] 390.6 KiB\n"


def test_a_decorated_function_reports_each_call_and_one_within_another_counts_for_both():
    uses = []

    @lissome.memory_probe(report=uses.append)
    def inner() -> None:
        torch.zeros(5000)

    @lissome.memory_probe("outer", report=uses.append)
    def outer() -> torch.Tensor:
        inner()
        return torch.ones(1000)

    result = outer()
    assert [(use.peak, use.kept) for use in uses] == [(20_000, 0), (20_000, 4000)]
    assert uses[0].name.endswith("inner") and uses[1].name == "outer"
    assert uses[0].tensors == [] and uses[0].efficiency == 0
    assert result.sum() == 1000


def test_what_goes_is_taken_off_and_errors_pass():
    with lissome.memory_probe(report=None):
        pass
    x = torch.zeros(25_000)
    with pytest.raises(ZeroDivisionError), lissome.memory_probe(report=None) as use:
        del x
        1 / 0
    assert use.kept == -100_000 and use.peak == 0
