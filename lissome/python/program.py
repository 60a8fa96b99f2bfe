"""The `lissome` command of an installed package: hands over to the program that lies beside this file."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Replaces this process by the C++ program, so that signals and exit codes are its own."""
    program = Path(__file__).resolve().parent / "bin" / "lissome"
    os.execv(program, [str(program), *sys.argv[1:]])
