"""What a command prints with --json, read and checked: docs/command-line.md, "The answer as JSON"."""

from __future__ import annotations

import json
import subprocess
from typing import Any


class Answer(dict[str, Any]):
    """The result, whose keys are those of the object; its tables by title, each a list of rows by name of column."""

    command: str
    version: str
    tables: dict[str, list[dict[str, Any]]]


def refuse_constants(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def read_rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of one table, after a look at its form."""
    assert list(table) == ["title", "columns", "rows"] and table["title"], table
    names = [column["name"] for column in table["columns"]]
    assert all(list(column) == ["name", "unit"] for column in table["columns"]) and all(names), table["columns"]
    assert len(set(names)) == len(names), names
    cells = [cell for row in table["rows"] for cell in row]
    assert all(cell is None or type(cell) in (str, int, float) for cell in cells), table["rows"]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]


def read_answer(done: str | subprocess.CompletedProcess[str]) -> Answer:
    """Of what a command printed: one object on one line, in the one form that every command has."""
    text = done if isinstance(done, str) else done.stdout
    assert text.count("\n") == 1 and text.endswith("\n"), text
    printed = json.loads(text, parse_constant=refuse_constants)
    assert list(printed) == ["lissome", "command", "result", "tables"], list(printed)
    assert isinstance(printed["lissome"], str) and isinstance(printed["command"], str)
    assert isinstance(printed["result"], dict) and isinstance(printed["tables"], list)
    answer = Answer(printed["result"])
    answer.version, answer.command = printed["lissome"], printed["command"]
    answer.tables = {table["title"]: read_rows(table) for table in printed["tables"]}
    assert len(answer.tables) == len(printed["tables"]), "two tables have one title"
    return answer
