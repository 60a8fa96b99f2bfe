"""The HTML report in a real browser: quiet, offline, and readable on a phone and on a wide screen, light and dark."""

from __future__ import annotations

import re
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from browser import Browser, open_browser

WIDTHS = (400, 1600)
SCHEMES = ("light", "dark")
MOST_BYTES = 300_000


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(16)
        self.head = torch.nn.Linear(16, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.norm(self.stem(images))).mean((2, 3)))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def real_report(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Path:
    """Of a small model, through the whole command."""
    folder = tmp_path_factory.mktemp("report")
    torch.manual_seed(0)
    images = torch.randn(120, 3, 32, 32)
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(Net().eval(), (images[:2],), dynamic_shapes=({0: batch},))
    torch.export.save(exported, folder / "net.pt2")
    np.savez(folder / "data.npz", images=images.numpy())
    words = ["optimize", "net.pt2", "--data", "data.npz", "--latency", "1us", "--time", "20s", "-o", "out.lissome"]
    done = subprocess.run([program, *words, "--report", "report.html"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 3, done.stderr
    return folder / "report.html"


@pytest.fixture(scope="module")
def odd_report(root: Path) -> Path:
    """Of a record full of odd characters and large numbers, as lissome/report/html_test.cpp writes it."""
    tests = root / "build" / "release" / "tests"
    subprocess.run([tests / "test_report"], check=True, capture_output=True)
    return tests / "odd_report.html"


@pytest.fixture(scope="module")
def training_report(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Path:
    """Of a training of the same model."""
    folder = tmp_path_factory.mktemp("training")
    torch.manual_seed(0)
    images, labels = torch.randn(40, 3, 16, 16), torch.arange(40) % 10
    batch = torch.export.Dim("batch", min=2, max=64)
    exported = torch.export.export(Net().train(), (images[:2],), dynamic_shapes=({0: batch},))
    torch.export.save(exported, folder / "net.pt2")
    np.savez(folder / "data.npz", images=images.numpy(), labels=labels.numpy())
    words = ["train", "net.pt2", "--data", "data.npz", "--validation", "data.npz", "--labels", "labels", "--epochs", "5"]
    words += ["--batch", "8", "-o", "trained.lissome", "--report", "report.html"]
    subprocess.run([program, *words], cwd=folder, capture_output=True, check=True)
    return folder / "report.html"


@pytest.fixture(params=["real", "odd", "training"])
def report(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(f"{request.param}_report")


def read_pixels(png: bytes) -> np.ndarray:
    """The bytes of an 8-bit PNG's rows, their filters undone only as far as telling colours apart needs: not at all."""
    assert png.startswith(b"\x89PNG")
    position, data = 8, b""
    while position < len(png):
        (length,) = struct.unpack(">I", png[position : position + 4])
        if png[position + 4 : position + 8] == b"IDAT":
            data += png[position + 8 : position + 8 + length]
        position += 12 + length
    return np.frombuffer(zlib.decompress(data), np.uint8)


def test_size_and_sources(report: Path):
    html = report.read_text(encoding="utf-8")
    assert len(html.encode()) < MOST_BYTES
    assert "<script" not in html
    # Addresses may stand in the text (escaped), never in a tag, where a browser would follow them.
    assert not re.search(r"""<[a-z][^>]*\b(?:src|href|action|poster|srcset)\s*=\s*["']?(?!data:)\s*\w""", html)
    assert "@import" not in html and "url(" not in html


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_in_a_browser(browser: Browser, report: Path, tmp_path: Path, width: int, scheme: str):
    page = browser.open(report, width, scheme)
    assert page.messages == []
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
    assert page.overflow <= 0, page.widest
    assert page.widest == ""
    (tmp_path / "page.png").write_bytes(page.screenshot)
    assert len(np.unique(read_pixels(page.screenshot))) > 50


def test_schemes_differ(browser: Browser, real_report: Path):
    light, dark = (browser.open(real_report, 1600, scheme).screenshot for scheme in SCHEMES)
    assert light != dark


def test_the_answer_comes_first(browser: Browser, real_report: Path):
    lines = [line for line in browser.open(real_report, 1600, "light").text.splitlines() if line.strip()]
    assert lines[0] == "lissome"
    assert "goal not met: latency" in lines[1]
    text = "\n".join(lines)
    for part in ("Goals", "Not met", "Steps", "Time by layer", "Memory over time", "How this was measured", "Run it again"):
        assert part in text
    assert "lissome optimize net.pt2" in text
    assert "test_report.py:" in text and "self.stem(images)" in text  # the user's own source lines


def test_odd_characters_are_text(browser: Browser, odd_report: Path):
    text = browser.open(odd_report, 1600, "light").text
    assert '<img src=x onerror="alert(1)">' in text
    assert "Ünïcødé 模型" in text and "a & b" in text


def test_a_training_is_told(browser: Browser, training_report: Path):
    text = browser.open(training_report, 1600, "light").text
    for part in ("Trained for 25 steps in 5 epochs", "Validation loss", "accuracy", "Learning rate", "Throughput"):
        assert part in text
    for part in ("Time of a step", "Gradient norm", "Memory", "Epochs", "lissome train net.pt2"):
        assert part in text
