"""Holds the source tree to the include table of docs/design.md.

The table is read from that document, so that it cannot drift from what is checked: who may include
whose face, which torch headers a module may see. Besides: other modules' faces only, no cycles,
faces of at most 250 lines, and CMake links no more than the table allows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FACE_LINES = 250
# Small headers that a narrow module may see, besides what the prefixes cover.
NARROW_PREFIXES = ("ATen/core/", "ATen/ops/", "c10/")
NARROW_HEADERS = {
    # How operators are registered with the dispatcher, and their schemas read.
    "torch/library.h",
    "torch/csrc/jit/frontend/function_schema_parser.h",
    "ATen/CPUGeneratorImpl.h",
    "ATen/Context.h",
    "ATen/MemoryOverlap.h",
    "ATen/cuda/CUDAGraph.h",
    "ATen/Parallel.h",
    "ATen/record_function.h",
}
TORCH_PREFIXES = ("torch/", "ATen/", "c10/", "caffe2/")
# A folder inside a module that is a library of its own: the modules that it may include, no torch.
INNER_LIBRARIES = {"data/codec": {"base"}, "program/syntax": {"base"}, "python/runtime": {"base", "runtime"}}
# Faces beside a module's main one: what needs the whole of torch, kept apart so that the main
# face stays narrow, what makes batches, kept apart from what reads files, and what few need. Face -> its module.
FURTHER_FACES = {"import_module": "program", "differentiate": "program", "loader": "data", "footprint": "runtime",
                 "allow_op": "base", "own_folder": "base", "op_library": "runtime"}
# Headers inside a module that others may include as its face: the calls of kernels, and how each kind of step is
# declared, which lowering fills.
INNER_FACES = re.compile(
    r"lissome/kernel/\w+/\w+(?<!_body)\.h|lissome/runtime/step/(step_fields|step_groups|\w+/\w+_(steps|values|fields))\.h"
)
# Made by CMake of the lists kernels.txt.
GENERATED = re.compile(r"lissome/(kernel/(\w+/)?kernel_(versions\.h|rows\.inc)|runtime/step_lists\.inc|lower/candidate_lists\.inc)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


@dataclass
class Row:
    """One module of the table."""

    torch: str
    allowed: set[str]


@dataclass
class SourceFile:
    """One file below lissome/ and what it includes."""

    path: str
    module: str
    ours: list[str] = field(default_factory=list)
    torch: list[str] = field(default_factory=list)

    @property
    def is_test(self) -> bool:
        return self.path.endswith("_test.cpp") or "_test_" in Path(self.path).name


def read_table(design: Path) -> dict[str, Row]:
    """The rows of the table with the header `| rank | module | ...`."""
    lines = design.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.replace(" ", "").startswith("|rank|module|"))
    cells = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells.append([cell.strip() for cell in line.strip("|").split("|")])
    names = [name.strip() for row in cells for name in row[1].split(",")]
    table: dict[str, Row] = {}
    for _, modules, torch, includes in cells:
        listed = re.sub(r"\(.*?\)", "", includes)
        for name in modules.split(","):
            if listed.startswith("all above"):
                allowed = set(table) - set(re.findall(r"\w+", listed.partition("but")[2]))
            elif listed.startswith("every face"):
                allowed = set(names)
            else:
                allowed = set(re.findall(r"\w+", listed)) & set(names)
            level = re.match(r"none|narrow|full", torch)
            table[name.strip()] = Row(level[0] if level else "narrow", allowed)
    return table


def read_cmake_list(root: Path, module: str, keyword: str, call: str = "lissome_module") -> list[str]:
    """The words after a keyword in the calls of a module's CMakeLists.txt, comments left out."""
    path = root / "lissome" / module / "CMakeLists.txt"
    if not path.exists():
        return []
    text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
    words: list[str] = []
    for body in re.findall(call + r"\s*\((.*?)\)", text, re.DOTALL):
        inside = False
        for word in body.split():
            if re.fullmatch(r"[A-Z_]+", word):
                inside = word == keyword
            elif inside:
                words.append(word)
    return words


def find_module(path: str) -> str:
    """The module that a path from the root (lissome/pass.h, lissome/pass/match.h) belongs to."""
    name = path.split("/")[1].removesuffix(".h")
    return FURTHER_FACES.get(name, name)


def read_sources(root: Path) -> dict[str, SourceFile]:
    """Every C++ file below lissome/, by its path from the root."""
    files = {}
    for path in sorted((root / "lissome").rglob("*")):
        if path.suffix not in {".h", ".cpp", ".cu"}:
            continue
        relative = path.relative_to(root).as_posix()
        source = SourceFile(relative, find_module(relative))
        for _, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if name.startswith("lissome/"):
                source.ours.append(name)
            elif name.startswith(TORCH_PREFIXES):
                source.torch.append(name)
        files[relative] = source
    return files


def is_narrow(header: str) -> bool:
    return header.startswith(NARROW_PREFIXES) or header in NARROW_HEADERS


def check_ours(source: SourceFile, table: dict[str, Row], names: set[str]) -> list[str]:
    """Own files and allowed faces only."""
    problems = []
    allowed = table[source.module].allowed
    for folder, inner in INNER_LIBRARIES.items():
        if source.path.startswith(f"lissome/{folder}/"):
            allowed = inner
    for name in source.ours:
        parts = name.split("/")
        module = find_module(name)
        if name not in names and not GENERATED.fullmatch(name):
            problems.append(f"{source.path} includes {name}, which is not there")
        if module == source.module:
            continue
        if len(parts) > 2 and not INNER_FACES.fullmatch(name):
            problems.append(f"{source.path} includes {name}: other modules' faces only (lissome/{module}.h)")
        elif module not in allowed and not source.is_test:
            problems.append(f"{source.path} includes {name}: {source.module} may include {sorted(allowed)}")
    return problems


def check_torch(source: SourceFile, table: dict[str, Row], full_sources: set[str], main_sources: set[str]) -> list[str]:
    """No torch header above the level of the module."""
    level = table[source.module].torch
    stem = Path(source.path).stem.removesuffix("_test")
    importer = any(stem == face or stem.startswith(f"{face}_") for face in FURTHER_FACES)
    if source.path in full_sources or importer:
        level = "full"
    if source.module == "python":
        level = "full"
    if source.path in main_sources or any(source.path.startswith(f"lissome/{f}/") for f in INNER_LIBRARIES):
        level = "none"
    problems = []
    for header in source.torch:
        if level == "none" or (level == "narrow" and not is_narrow(header)):
            problems.append(f"{source.path} includes <{header}>: its torch level is {level}")
    return problems


def find_reached_torch(files: dict[str, SourceFile], start: str) -> str | None:
    """The chain of includes from a file to a torch header, or None."""
    pending = [(start, start)]
    seen = {start}
    while pending:
        name, chain = pending.pop()
        if files[name].torch:
            return f"{chain} -> <{files[name].torch[0]}>"
        for header in files[name].ours:
            if header in files and header not in seen:
                seen.add(header)
                pending.append((header, f"{chain} -> {header}"))
    return None


def find_cycle(edges: dict[str, set[str]]) -> list[str] | None:
    """Some cycle of the graph, first node repeated at the end, or None."""
    done: set[str] = set()

    def visit(node: str, trail: list[str]) -> list[str] | None:
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node in done:
            return None
        for after in sorted(edges.get(node, ())):
            cycle = visit(after, [*trail, node])
            if cycle:
                return cycle
        done.add(node)
        return None

    for node in sorted(edges):
        cycle = visit(node, [])
        if cycle:
            return cycle
    return None


def find_problems(root: Path) -> list[str]:
    """Everything in the tree that breaks the table, one sentence each."""
    table = read_table(root / "docs" / "design.md")
    files = read_sources(root)
    problems = []
    for path in [path for path, source in files.items() if source.module not in table]:
        problems.append(f"{path}: module '{files[path].module}' is not in the table of docs/design.md")
        del files[path]

    full_sources = {
        f"lissome/{module}/{name}" for module in table for name in read_cmake_list(root, module, "FULL_TORCH_SOURCES")
    }
    main_sources = {f"lissome/cli/{name}" for name in read_cmake_list(root, "cli", "SOURCES", "lissome_main")}
    module_edges: dict[str, set[str]] = {}
    for path, source in files.items():
        problems += check_ours(source, table, set(files))
        problems += check_torch(source, table, full_sources, main_sources)
        alone = any(path.startswith(f"lissome/{folder}/") for folder in INNER_LIBRARIES)
        torch_free = alone or path in main_sources or table[source.module].torch == "none"
        if torch_free and not source.is_test and (alone or source.module != "python"):
            chain = find_reached_torch(files, path)
            if chain and chain.count("->") > 1:
                problems.append(f"{path} must not see torch: {chain}")
        if not source.is_test:
            edges = {find_module(name) for name in source.ours} - {source.module}
            module_edges.setdefault(source.module, set()).update(edges)
        if path.count("/") == 1:
            lines = len((root / path).read_text(encoding="utf-8").splitlines())
            if lines > FACE_LINES:
                problems.append(f"{path} is a face of {lines} lines; at most {FACE_LINES} are allowed")

    for kind, edges in (
        ("modules", module_edges),
        ("files", {path: {name for name in source.ours if name in files} for path, source in files.items()}),
    ):
        cycle = find_cycle(edges)
        if cycle:
            problems.append(f"{kind} include each other: {' -> '.join(cycle)}")

    for module, row in table.items():
        for link in read_cmake_list(root, module, "LINKS"):
            if link in table and link not in row.allowed | {module}:
                problems.append(f"lissome/{module}/CMakeLists.txt links {link}: the table allows {sorted(row.allowed)}")
    return problems
