"""Every exported case, lowered and run through a session, gives the numbers of its program: see run_lower.cpp."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from test_parity import BUILD, cases  # noqa: F401


def test_sessions_equal_interpretation(cases: Path) -> None:  # noqa: F811
    result = subprocess.run([BUILD / "tests" / "run_lower", str(cases)], capture_output=True, text=True, check=False)
    table = result.stdout + result.stderr
    (BUILD / "parity" / "lowered.txt").write_text(table)
    print(table)
    assert result.returncode == 0, table[-8000:]
    totals = re.search(r"(\d+) of (\d+) lowered cases agree with their programs; (\d+) need no libtorch", table)
    assert totals is not None
    agree, every, native = map(int, totals.groups())
    assert agree == every >= 70
    assert native >= 20
    # Every arena is judged by the runner; a plan for a new shape takes less than 5 ms, the quickest of three.
    planned = re.search(r"largest arena ([\d.]+) of what is alive at one step; slowest plan .* ([\d.]+) ms", table)
    assert planned is not None
    assert float(planned[1]) <= 1.05
    assert float(planned[2]) < 5
