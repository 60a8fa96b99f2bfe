"""The build backend behind `pip install .`: scikit-build-core, told where torch is.

pip builds in an environment of its own in which the installed torch cannot be imported. Its Python
is the one of the target environment all the same, so CMake asks it again with pip's additions to
the path switched off (cmake/LissomeTorch.cmake).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import scikit_build_core.build as build

Settings = dict[str, Any] | None

get_requires_for_build_wheel = build.get_requires_for_build_wheel
get_requires_for_build_sdist = build.get_requires_for_build_sdist
build_sdist = build.build_sdist


PROBE = Path(__file__).resolve().parents[2] / "cmake" / "find_torch.py"


def find_python() -> str:
    """The Python whose torch is built against; refuses one without, before pip fetches anything."""
    python = os.environ.get("LISSOME_PYTHON", sys.executable)
    probe = subprocess.run([python, "-BE", PROBE], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise SystemExit(
            f"lissome is built against an installed torch (2.11 to 2.13), and {python} has none: {probe.stderr.strip()}\n"
            "Install one first, for example: pip install torch==2.13.0"
        )
    return python


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Checks for torch first: what comes after may download its dependencies."""
    find_python()
    return build.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Builds the wheel against the torch of the Python that pip installs into."""
    settings = dict(config_settings or {})
    settings.setdefault("cmake.define.LISSOME_PYTHON", find_python())
    return build.build_wheel(wheel_directory, settings, metadata_directory)
