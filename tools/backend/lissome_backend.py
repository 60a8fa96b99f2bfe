"""The build backend behind `pip install .`: scikit-build-core, told where torch is.

pip builds in an environment of its own in which the installed torch cannot be imported. Its Python
is the one of the target environment all the same, so CMake asks it again with pip's additions to
the path switched off (cmake/LissomeTorch.cmake).
"""

from __future__ import annotations

import os
import sys
from typing import Any

import scikit_build_core.build as build

Settings = dict[str, Any] | None

get_requires_for_build_wheel = build.get_requires_for_build_wheel
get_requires_for_build_sdist = build.get_requires_for_build_sdist
build_sdist = build.build_sdist


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Builds the wheel against the torch of the Python that pip installs into."""
    settings = dict(config_settings or {})
    settings.setdefault("cmake.define.LISSOME_PYTHON", os.environ.get("LISSOME_PYTHON", sys.executable))
    return build.build_wheel(wheel_directory, settings, metadata_directory)
