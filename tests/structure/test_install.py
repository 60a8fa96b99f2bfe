"""`cmake --install` lays down what another project can find, compile against and run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
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


# Ten lines: load, run, read.
CPLUSPLUS = """
#include <cstdio>
#include "lissome/runtime.h"
int main(int, char** words) {
  auto session = lissome::Session::load(words[1]);
  lissome::NamedArray x{"", lissome::make_array(lissome::Dtype::f32, {2, 3})};
  for (int i = 0; i < 6; ++i) x.array.data<float>()[i] = i;
  const auto y = session.run(std::span(&x, 1));
  std::printf("%g %g\\n", y[0].array.data<float>()[0], y[0].array.data<float>()[1]);
}
"""

TWO_SESSIONS = """
#include <cstdio>
#include <thread>
#include <vector>
#include "lissome/runtime.h"
int main(int, char** words) {
  const auto plan = std::make_shared<lissome::Plan>(lissome::Session::load(words[1]).plan());
  int wrong[2] = {0, 0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      lissome::Session session(plan, {.threads = 2});
      for (int i = 0; i < 2000; ++i) {
        const lissome::Array x = lissome::make_array(lissome::Dtype::f32, {1 + i % 4, 3});
        for (int k = 0; k < 3 * (1 + i % 4); ++k) x.data<float>()[k] = static_cast<float>(t + i);
        const lissome::TensorView view = x.view();
        const auto y = session.run(std::span(&view, 1));
        for (int k = 0; k <= i % 4; ++k) wrong[t] += y[0].data<float>()[k] != static_cast<float>(3 * (t + i) + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d %d\\n", wrong[0], wrong[1]);
}
"""

PLAIN_C = """
#include <stdio.h>
#include "lissome/runtime/session_c.h"
int main(int count, char** words) {
  lissome_session* session = NULL;
  lissome_result* result = NULL;
  lissome_value input;
  lissome_tensor y;
  float x[6] = {0, 1, 2, 3, 4, 5}, place[2] = {0, 0};
  int64_t sizes[2] = {2, 3}, places[2] = {2, 1};
  lissome_tensor given = {LISSOME_F32, 2, sizes, x}, taken = {LISSOME_F32, 2, places, place};
  if (lissome_session_load("nowhere.lissome", 0, &session) != LISSOME_USAGE || session) return 1;
  printf("%s\\n", lissome_last_error());
  if (count < 2 || lissome_session_load(words[1], 0, &session)) return 2;
  if (lissome_session_input(session, 0, &input) || lissome_session_input(session, 1, &input) != LISSOME_USAGE) return 3;
  printf("%s %d %d %d\\n", input.name, (int)input.dtype, (int)input.sizes[0], (int)input.sizes[1]);
  if (lissome_session_run(session, &given, 1, &result) || lissome_result_output(result, 0, &y)) return 4;
  printf("%s %d %d %g %g\\n", lissome_session_output_name(session, 0), (int)y.sizes[0], (int)y.sizes[1],
         ((float*)y.data)[0], ((float*)y.data)[1]);
  lissome_result_free(result);
  if (lissome_session_run_into(session, &given, 1, &taken, 1)) return 5;
  printf("%g %g\\n", place[0], place[1]);
  sizes[1] = 4;
  if (lissome_session_run(session, &given, 1, &result) != LISSOME_INVALID_INPUT || result) return 6;
  printf("%s\\n", lissome_last_error());
  given.dtype = LISSOME_I64, sizes[1] = 3;
  if (lissome_session_run(session, &given, 1, &result) != LISSOME_INVALID_INPUT) return 7;
  given.data = NULL;
  if (lissome_session_run(session, &given, 1, &result) != LISSOME_USAGE) return 8;
  lissome_session_free(session);
  return 0;
}
"""

# The same answers within less memory than the weights take.
LIMITED_C = """
#include <stdio.h>
#include <string.h>
#include "lissome/runtime/session_c.h"
static int run_once(lissome_session* session, float* place) {
  float x[512];
  int64_t sizes[2] = {1, 512};
  lissome_tensor given = {LISSOME_F32, 2, sizes, x}, taken = {LISSOME_F32, 2, sizes, place};
  for (int i = 0; i < 512; ++i) x[i] = (float)(i % 7) - 3;
  return lissome_session_run_into(session, &given, 1, &taken, 1);
}
int main(int count, char** words) {
  const int64_t limit = 4 << 20;
  lissome_session *unlimited = NULL, *limited = NULL;
  lissome_stream stream;
  float wanted[512], seen[512];
  if (count < 2 || lissome_session_load(words[1], 0, &unlimited) || run_once(unlimited, wanted)) return 1;
  if (lissome_session_stream(unlimited, &stream) || stream.weights || stream.streamed) return 2;
  if (lissome_session_load_within(words[1], 0, 0, &limited) != LISSOME_USAGE || limited) return 3;
  if (lissome_session_load_within(words[1], 0, 1 << 16, &limited) != LISSOME_OVER_BUDGET || limited) return 4;
  printf("%s\\n", lissome_last_error());
  if (lissome_session_load_within(words[1], 0, limit, &limited)) return 5;
  /* sizes are fixed: what it will cost is known before the first call */
  if (lissome_session_stream(limited, &stream) || stream.streamed < stream.weights - limit) return 6;
  for (int i = 0; i < 3; ++i) {
    if (run_once(limited, seen) || memcmp(wanted, seen, sizeof seen)) return 7;
  }
  if (lissome_session_stream(limited, &stream) || stream.bytes_per_second <= 0) return 8;
  printf("%d %d\\n", stream.weights >= 8 << 20, stream.streamed >= stream.weights - limit);
  if (lissome_session_stream(limited, NULL) != LISSOME_USAGE) return 9;
  lissome_session_free(limited);
  lissome_session_free(unlimited);
  return 0;
}
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", ROOT / "build" / "release", "--prefix", path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = relu(x0 + x1 + x2 + 1), as a file that needs no libtorch."""
    import torch

    layer = torch.nn.Linear(3, 1)
    torch.nn.init.ones_(layer.weight)
    torch.nn.init.ones_(layer.bias)
    module = torch.nn.Sequential(layer, torch.nn.ReLU()).eval()
    path = tmp_path_factory.mktemp("model")
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(module, (torch.ones(2, 3),), dynamic_shapes=({0: batch},))
    torch.export.save(program, path / "sum.pt2")
    run(ROOT / "build" / "lissome", "prepare", path / "sum.pt2", "-o", path / "sum.lissome")
    return path / "sum.lissome"


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight layers of 1 MiB each."""
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(8))).eval()
    path = tmp_path_factory.mktemp("wide")
    torch.export.save(torch.export.export(module, (torch.ones(1, 512),)), path / "wide.pt2")
    run(ROOT / "build" / "lissome", "prepare", path / "wide.pt2", "-o", path / "wide.lissome")
    return path / "wide.lissome"


def build(folder: Path, prefix: Path, source: str, name: str = "main.cpp") -> Path:
    (folder / "CMakeLists.txt").write_text(PROJECT.replace("main.cpp", name))
    (folder / name).write_text(source)
    run("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder / "build")
    return folder / "build" / "user"


def test_another_project_finds_and_uses_it(tmp_path: Path, prefix: Path):
    assert "a message of 2 parts" in run(build(tmp_path, prefix, MAIN))


def test_ten_lines_run_a_model(tmp_path: Path, prefix: Path, model: Path):
    assert run(build(tmp_path, prefix, CPLUSPLUS), model) == "4 13\n"


def test_two_sessions_run_at_once(tmp_path: Path, prefix: Path, model: Path):
    assert run(build(tmp_path, prefix, TWO_SESSIONS), model) == "0 0\n"


def test_a_program_in_c_runs_a_model_and_reads_its_errors(tmp_path: Path, prefix: Path, model: Path):
    lines = run(build(tmp_path, prefix, PLAIN_C, "main.c"), model).splitlines()
    assert "nowhere.lissome" in lines[0]
    assert lines[1].endswith(" 7 -1 3")
    assert lines[2].endswith(" 2 1 4 13")
    assert lines[3] == "4 13"
    assert "is f32[2, 4], must be f32[" in lines[4]


def test_a_program_in_c_limits_the_memory_of_a_model(tmp_path: Path, prefix: Path, wide: Path):
    refused, counted = run(build(tmp_path, prefix, LIMITED_C, "main.c"), wide).splitlines()
    assert "at least" in refused and "largest layer" in refused
    assert counted == "1 1"


def test_the_runtime_is_small_and_knows_no_libtorch(prefix: Path):
    library = next(prefix.rglob("liblissome_runtime.so"))
    assert library.stat().st_size <= 10_000_000
    assert "torch" not in run("ldd", library)


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
