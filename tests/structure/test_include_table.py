"""The source tree keeps to the include table, and the checker notices when it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from include_table import find_problems, read_table

ROOT = Path(__file__).resolve().parents[2]


def test_the_tree_keeps_to_the_table():
    assert find_problems(ROOT) == []


def test_the_table_is_read_whole():
    table = read_table(ROOT / "docs" / "design.md")
    assert table["base"].allowed == set()
    assert table["base"].torch == "none"
    assert table["kernel"].allowed == {"base"}
    assert table["runtime"].allowed == {"base", "measure", "kernel"}
    assert table["program"].torch == "narrow"
    assert table["lower"].allowed == {"base", "measure", "kernel", "runtime", "program", "pass"}
    assert table["compress"].allowed == {"base", "measure", "program", "pass"}
    assert table["train"].torch == "full"
    assert "serve" not in table["tune"].allowed
    assert "train" in table["tune"].allowed
    assert "tune" in table["cli"].allowed


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A small tree without a problem."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "design.md").write_text((ROOT / "docs" / "design.md").read_text(encoding="utf-8"))
    put(tmp_path, "lissome/base.h", '#include "lissome/base/zip.h"\n')
    put(tmp_path, "lissome/base/zip.h", "#include <vector>\n")
    put(tmp_path, "lissome/measure.h", '#include "lissome/base.h"\n')
    put(tmp_path, "lissome/program.h", '#include <ATen/core/Tensor.h>\n#include "lissome/base.h"\n')
    put(tmp_path, "lissome/program/import/import_module.cpp", "#include <torch/script.h>\n")
    put(tmp_path, "lissome/program/syntax/text.cpp", '#include "lissome/base.h"\n')
    put(
        tmp_path,
        "lissome/program/CMakeLists.txt",
        "lissome_module(\n  NAME program\n  LINKS base measure # why\n  FULL_TORCH_SOURCES\n    import_module.cpp)\n",
    )
    put(tmp_path, "lissome/cli/CMakeLists.txt", "lissome_main(\n  SOURCES\n    main.cpp)\n")
    put(tmp_path, "lissome/cli/main.cpp", '#include "lissome/measure.h"\n')
    assert find_problems(tmp_path) == []
    return tmp_path


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("lissome/base/a.cpp", '#include "lissome/measure.h"\n', "base may include []"),
        ("lissome/measure/a.cpp", '#include "lissome/base/zip.h"\n', "other modules' faces only"),
        ("lissome/measure/a_test.cpp", '#include "lissome/base/zip.h"\n', "other modules' faces only"),
        ("lissome/measure/a.cpp", '#include "lissome/base/gone.h"\n', "which is not there"),
        ("lissome/measure/a.cpp", "# include <ATen/core/Tensor.h>\n", "its torch level is none"),
        ("lissome/program/a.cpp", "#include <ATen/ATen.h>\n", "its torch level is narrow"),
        ("lissome/pass/a.cpp", "#include <torch/torch.h>\n", "its torch level is narrow"),
        ("lissome/program/syntax/a.cpp", "#include <c10/util/Half.h>\n", "its torch level is none"),
        ("lissome/program/syntax/a.cpp", '#include "lissome/program.h"\n', "must not see torch"),
        ("lissome/program/syntax/a.cpp", '#include "lissome/measure.h"\n', "may include ['base']"),
        ("lissome/python/runtime/a.cpp", "#include <torch/csrc/utils/pybind.h>\n", "its torch level is none"),
        ("lissome/python/runtime/a.cpp", '#include "lissome/program.h"\n', "must not see torch"),
        ("lissome/cli/main.cpp", '#include "lissome/program.h"\n', "must not see torch"),
        ("lissome/util/a.cpp", "\n", "module 'util' is not in the table"),
        ("lissome/base/zip.h", '#include "lissome/base.h"\n', "files include each other"),
        ("lissome/base.h", "\n" * 251, "a face of 251 lines"),
        ("lissome/measure/CMakeLists.txt", "lissome_module(NAME measure LINKS kernel)\n", "links kernel"),
    ],
)
def test_a_violation_is_found(sample: Path, path: str, text: str, expected: str):
    put(sample, path, text)
    problems = find_problems(sample)
    assert any(expected in problem for problem in problems), problems


def test_modules_that_include_each_other_are_found(sample: Path):
    put(sample, "lissome/base/a.cpp", '#include "lissome/measure.h"\n')
    assert any("modules include each other: base -> measure -> base" in text for text in find_problems(sample))


def test_a_unit_test_may_include_every_face(sample: Path):
    put(sample, "lissome/base/a_test.cpp", '#include "lissome/measure.h"\n')
    assert find_problems(sample) == []
