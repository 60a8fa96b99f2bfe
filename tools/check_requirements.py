"""Says by its exit status whether this Python has every pinned package of the given files.

Quicker than asking pip, which tools/setup does only when this says no.
"""

import importlib.metadata
import pathlib
import sys

for name in sys.argv[1:]:
    for line in pathlib.Path(name).read_text(encoding="utf-8").splitlines():
        requirement = line.split("#")[0].strip()
        if not requirement:
            continue
        package, version = requirement.split("==")
        try:
            installed = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            sys.exit(1)
        if installed != version:
            sys.exit(1)
