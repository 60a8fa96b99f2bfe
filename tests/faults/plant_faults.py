"""Whether the unit tests notice faults in what judges: plant_faults.py [NUMBER ...]

Plants each fault of faults.py in its file, builds the unit tests of its module, runs them, and puts the file back.
Prints a line for each; exit code 1 if one was not noticed. The files must have no changes that are not committed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def build_and_test(module: str) -> bool:
    """Whether the module's tests pass. They have to build."""
    built = run("tools/build", f"test_{module}")
    if built.returncode != 0:
        sys.exit(f"test_{module} does not build:\n{built.stdout[-3000:]}{built.stderr[-1000:]}")
    return run(f"build/release/tests/test_{module}").returncode == 0


def is_noticed(fault: Fault) -> bool:
    path = ROOT / "lissome" / fault.file
    text = path.read_text()
    if text.count(fault.before) != 1:
        sys.exit(f"lissome/{fault.file} has {text.count(fault.before)} times, and not once: {fault.before}")
    try:
        path.write_text(text.replace(fault.before, fault.after))
        return not build_and_test(path.parent.name)
    finally:
        path.write_text(text)


def main(numbers: list[int]) -> int:
    files = sorted({f"lissome/{fault.file}" for fault in FAULTS})
    if run("git", "diff", "--quiet", "HEAD", "--", *files).returncode != 0:
        sys.exit("commit what you changed first: " + ", ".join(files))
    chosen = numbers or list(range(len(FAULTS)))
    modules = sorted({Path(FAULTS[number].file).parent.name for number in chosen})
    for module in modules:
        if not build_and_test(module):
            sys.exit(f"test_{module} fails without a fault")
    missed = 0
    for number in chosen:
        fault, start = FAULTS[number], time.monotonic()
        noticed = is_noticed(fault)
        missed += not noticed
        print(f"{number:3} {'noticed' if noticed else 'MISSED ':8} {time.monotonic() - start:5.1f} s  {fault.file}: "
              f"{fault.meaning}", flush=True)
    for module in modules:
        build_and_test(module)
    print(f"{len(chosen) - missed} of {len(chosen)} faults noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]]))
