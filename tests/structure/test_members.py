"""Classes hold what one can keep in mind: at most a dozen members. What needs more is several things."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_MEMBERS = 12
CLASS = re.compile(r"^(?P<indent> *)class (?P<name>\w+)[^;{]*\{$(?P<body>.*?)^(?P=indent)\};", re.MULTILINE | re.DOTALL)
# A line of declarations: "  Type name_, other_ = 0;  // why". Functions have no name that ends so before a bracket.
MEMBERS = re.compile(r"^ +(?!return|using|friend)[\w:<>,&*\s\[\]]*?[\w>&*] +[&*]?\w+_\b(?! *\().*;", re.MULTILINE)
NAME = re.compile(r"\b[a-z]\w*_\b(?= *(?:[,;={\[]|$))")


def strip_bodies(text: str) -> str:
    """What a class declares itself: without the bodies of its functions and of the classes inside of it."""
    kept: list[str] = []
    depth = 0
    for line in text.splitlines():
        line = line.split("//")[0]
        closed = depth == 0 and line.count("{") == line.count("}")
        if closed:
            kept.append(line)
        depth += line.count("{") - line.count("}")
    return "\n".join(kept)


def count_members(body: str) -> int:
    lines = MEMBERS.findall(strip_bodies(body))
    return sum(len(NAME.findall(re.sub(r"<[^<>]*>|\{[^{}]*\}|= [^,;]*", "", line))) for line in lines)


def list_classes(name: str) -> dict[str, int]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return {f"{name}: {found['name']}": count_members(found["body"]) for found in CLASS.finditer(text)}


def test_classes_of_training_and_of_sessions_have_a_dozen_members():
    counts: dict[str, int] = {}
    parts = [f"lissome/train/{part}" for part in ("budget", "loop", "remat", "rewrite", "step")]
    folders = [*parts, "lissome/runtime/session"]
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        if name.endswith((".h", ".cpp")):
            counts |= list_classes(name)
    assert len(counts) > 60 and max(counts.values()) > 8
    assert {name: count for name, count in counts.items() if count > MOST_MEMBERS} == {}


def test_members_are_counted():
    body = """
 public:
  int size() const { return size_; }

 private:
  void grow(int by_);
  int size_ = 0, room_ = 4;  // of the list
  std::vector<std::pair<int, int>> pairs_;
  const Plan& plan_;
  std::array<int, 3> three_{1, 2, 3};
"""
    assert count_members(body) == 5
