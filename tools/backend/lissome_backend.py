"""The build backend behind `pip install` of both distributions, lissome-runtime and lissome: CMake builds, this packs.

pip builds in an environment of its own in which an installed torch cannot be imported. Its Python is the one of the target
environment all the same, so CMake asks it again with pip's additions to the path switched off (cmake/LissomeTorch.cmake).

    -C build-dir=build/release    packs what is built there in place of building in build/wheel
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from pyproject_metadata import StandardMetadata

Settings = dict[str, Any] | None

ROOT = Path(__file__).resolve().parents[2]
EXECUTABLE, PLAIN = 0o100755, 0o100644  # of members of a wheel


def find_project() -> tuple[StandardMetadata, str]:
    """The project in the current folder, as the hooks are called, and the name of its part of the build."""
    text = Path("pyproject.toml").read_text(encoding="utf-8")
    metadata = StandardMetadata.from_pyproject(tomllib.loads(text), Path.cwd())
    return metadata, "runtime" if metadata.name == "lissome-runtime" else "lissome"


def find_torch(python: str) -> str | None:
    """Why torch was not found in this Python; None where it was."""
    probe = subprocess.run([python, "-BE", ROOT / "cmake" / "find_torch.py"], capture_output=True, text=True, check=False)
    return None if probe.returncode == 0 else probe.stderr.strip()


def find_python(part: str) -> tuple[str, bool]:
    """The Python that is built for, and whether with torch; refuses one without, before pip fetches anything."""
    python = os.environ.get("LISSOME_PYTHON", sys.executable)
    absent = find_torch(python)
    if part == "lissome" and absent is not None:
        raise SystemExit(
            f"lissome is built against an installed torch (2.11 to 2.13), and {python} has none: {absent}\n"
            "Install one first, for example: pip install torch==2.13.0\n"
            "To run finished models without torch: pip install ./lissome/python/runtime"
        )
    return python, absent is None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    needs = [need for tool, need in (("cmake", "cmake>=3.25"), ("ninja", "ninja>=1.11")) if shutil.which(tool) is None]
    _, with_torch = find_python(find_project()[1])
    return needs if with_torch else [*needs, "pybind11==3.0.4"]  # torch brings its own


def build_tree(part: str, settings: dict[str, Any]) -> Path:
    """Configures and builds what the part needs; gives the build tree."""
    python, with_torch = find_python(part)
    given = settings.get("build-dir")
    folder = ROOT / (given or ("build/wheel" if with_torch else "build/wheel-runtime"))
    if given is None or not (folder / "build.ninja").exists():
        options = {"CMAKE_BUILD_TYPE": "Release", "LISSOME_PYTHON": python, "LISSOME_TORCH": "ON" if with_torch else "OFF"}
        options |= {"LISSOME_TESTS": "OFF", "LISSOME_EXAMPLES": "OFF"}
        words = [f"-D{name}={value}" for name, value in options.items()]
        subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, *words], check=True)
    targets = [f"lissome_python_{part}", f"lissome_python_{part}_files"]
    subprocess.run(["cmake", "--build", folder, "--target", *targets], check=True)
    return folder


def write_metadata(folder: Path) -> Path:
    """The .dist-info folder, but for RECORD."""
    metadata, part = find_project()
    info = folder / f"{metadata.name.replace('-', '_')}-{metadata.version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_bytes(bytes(metadata.as_rfc822()))
    (info / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: lissome\nRoot-Is-Purelib: false\nTag: {'-'.join(list_tags())}\n"
    )
    if metadata.scripts:
        rows = "".join(f"{name} = {target}\n" for name, target in metadata.scripts.items())
        (info / "entry_points.txt").write_text(f"[console_scripts]\n{rows}")
    (info / "licenses").mkdir()
    shutil.copy(ROOT / "LICENSE", info / "licenses" / "LICENSE")
    return info


def list_tags() -> tuple[str, str, str]:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return python, python, sysconfig.get_platform().replace("-", "_").replace(".", "_")


def pack(folder: Path, info: Path, wheel: Path) -> None:
    """All files of the folder, and RECORD with their hashes."""
    record = info / "RECORD"
    rows = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name, data = path.relative_to(folder).as_posix(), path.read_bytes()
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            member.external_attr = (EXECUTABLE if os.access(path, os.X_OK) else PLAIN) << 16
            archive.writestr(member, data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
        rows.append(f"{record.relative_to(folder).as_posix()},,\n")
        archive.writestr(record.relative_to(folder).as_posix(), "".join(rows))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Checks for torch first: what comes after may download the dependencies."""
    find_python(find_project()[1])
    return write_metadata(Path(metadata_directory)).name


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    metadata, part = find_project()
    tree = build_tree(part, dict(config_settings or {}))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = ["--prefix", folder, "--component", f"python_{part}", "--strip"]
        subprocess.run(["cmake", "--install", tree, *words], check=True)
        info = write_metadata(folder)
        wheel = f"{info.name.removesuffix('.dist-info')}-{'-'.join(list_tags())}.whl"
        pack(folder, info, Path(wheel_directory) / wheel)
    return wheel


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """The files that git tracks. One archive holds the sources of both distributions, so only lissome has it."""
    metadata, part = find_project()
    if part != "lissome":
        raise SystemExit("lissome-runtime is built from the sources of lissome: pip install ./lissome/python/runtime")
    stem = f"{metadata.name}-{metadata.version}"
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as name, tarfile.open(Path(sdist_directory) / f"{stem}.tar.gz", "w:gz") as archive:
        for path in tracked.splitlines():
            archive.add(ROOT / path, f"{stem}/{path}")
        (Path(name) / "PKG-INFO").write_bytes(bytes(metadata.as_rfc822()))
        archive.add(Path(name) / "PKG-INFO", f"{stem}/PKG-INFO")
    return f"{stem}.tar.gz"
