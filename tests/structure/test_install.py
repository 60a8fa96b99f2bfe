"""`cmake --install` lays down what another project can find, compile against and run."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
find_package(lissome REQUIRED)
add_executable(user main.cpp)
target_link_libraries(user PRIVATE lissome::runtime)
"""

MAIN = """
#include <cstdio>
#include "lissome/base.h"
int main() {
  try {
    lissome::throw_error(lissome::ErrorKind::over_budget, "a message of ", 2, " parts");
  } catch (const lissome::Error& error) {
    std::puts(error.what());
  }
}
"""


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_another_project_finds_and_uses_it(tmp_path: Path):
    prefix = tmp_path / "prefix"
    run("cmake", "--install", ROOT / "build" / "release", "--prefix", prefix)
    project = tmp_path / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(PROJECT)
    (project / "main.cpp").write_text(MAIN)
    run("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", project / "build")
    assert "a message of 2 parts" in run(project / "build" / "user")


def test_the_installed_tree_holds_program_and_faces(tmp_path: Path):
    run("cmake", "--install", ROOT / "build" / "release", "--prefix", tmp_path)
    for face in (ROOT / "lissome").glob("*.h"):
        assert (tmp_path / "include" / "lissome" / face.name).is_file()
    assert not list((tmp_path / "include").rglob("*_test*"))
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (tmp_path / "bin").rename(moved / "bin")
    (tmp_path / "lib").rename(moved / "lib")
    assert "lissome COMMAND" in run(moved / "bin" / "lissome", "--help")
