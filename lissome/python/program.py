"""The `lissome` command of an installed package: hands over to the program that lies beside this file."""

import importlib.util
import os
import signal
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def find_torch_libraries() -> Path | None:
    """Where torch lies when it is no neighbour of this package, as in an environment that sees another's packages. The
    libraries that need it look beside themselves alone."""
    if (PACKAGE.parent / "torch").is_dir():
        return None
    spec = importlib.util.find_spec("torch")
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0]) / "lib" if places else None


def main() -> None:
    """Replaces this process by the C++ program, so that signals and exit codes are its own."""
    # Ctrl-C until the program has its own handlers: a plain end in place of Python's trace of calls.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    program, environment = PACKAGE / "bin" / "lissome", dict(os.environ)
    libraries = find_torch_libraries()
    if libraries is not None:
        known = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = f"{libraries}:{known}" if known else str(libraries)
    os.execve(program, [str(program), *sys.argv[1:]], environment)
