"""Prints where the torch of this Python lies, for LissomeTorch.cmake, without importing it: folder;version."""

import importlib.util
import pathlib
import re
import sys

spec = importlib.util.find_spec("torch")
if spec is None or not spec.submodule_search_locations:
    sys.exit(f"no module named torch in {sys.prefix}")
root = pathlib.Path(spec.submodule_search_locations[0]).resolve()
text = (root / "version.py").read_text(encoding="utf-8")
match = re.search(r"^__version__\s*=\s*['\"](\d+\.\d+(?:\.\d+)?)", text, re.MULTILINE)
if match is None:
    sys.exit(f"no version in {root / 'version.py'}")
print(root, match[1], sep=";")
