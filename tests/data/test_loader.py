"""Automatic settings of the loader reach nearly what the best fixed ones do."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "build" / "release" / "tests" / "run_data"
LEAST_RATIO = 0.95


def test_automatic_settings_are_as_good_as_the_best_of_a_grid():
    # Of the storage, which sleeps; the transforms compete for the processors with whatever else runs (docs/data.md).
    done = subprocess.run([TOOL, "tune", "storage"], capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    assert len(re.findall(r"^\d workers, prefetch \d: ", done.stdout, re.MULTILINE)) == 13
    ratio = re.search(r"automatic over best: ([\d.]+) ", done.stdout)
    assert ratio and float(ratio[1]) >= LEAST_RATIO, done.stdout
