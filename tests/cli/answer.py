"""What a command prints with --json, read and checked: docs/command-line.md, "The answer as JSON"."""

from __future__ import annotations

import json
import subprocess
from typing import Any


class Answer(dict[str, Any]):
    """The result as a dict, and the tables by title, each a list of rows by column name."""

    command: str
    version: str
    tables: dict[str, list[dict[str, Any]]]
    old_columns: dict[str, dict[str, str]]  # by title of a table: old names of columns, which repeat the new ones


def refuse_constants(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def read_rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Checks the form of a table and returns its rows."""
    assert list(table) == ["title", "columns", "rows"] and table["title"], table
    names = [column["name"] for column in table["columns"]]
    forms = (["name", "unit"], ["name", "unit", "old_name_of"])
    assert all(list(column) in forms for column in table["columns"]) and all(names), table["columns"]
    assert len(set(names)) == len(names), names
    cells = [cell for row in table["rows"] for cell in row]
    assert all(cell is None or type(cell) in (str, int, float) for cell in cells), table["rows"]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]


def list_old_columns(table: dict[str, Any]) -> dict[str, str]:
    return {column["name"]: column["old_name_of"] for column in table["columns"] if "old_name_of" in column}


def read_answer(done: str | subprocess.CompletedProcess[str]) -> Answer:
    """Reads the output of a command: one object on one line, in the form that every command has."""
    text = done if isinstance(done, str) else done.stdout
    assert text.count("\n") == 1 and text.endswith("\n"), text
    printed = json.loads(text, parse_constant=refuse_constants)
    assert list(printed) == ["lissome", "command", "result", "tables"], list(printed)
    assert isinstance(printed["lissome"], str) and isinstance(printed["command"], str)
    assert isinstance(printed["result"], dict) and isinstance(printed["tables"], list)
    answer = Answer(printed["result"])
    answer.version, answer.command = printed["lissome"], printed["command"]
    answer.tables = {table["title"]: read_rows(table) for table in printed["tables"]}
    answer.old_columns = {table["title"]: old for table in printed["tables"] if (old := list_old_columns(table))}
    assert len(answer.tables) == len(printed["tables"]), "two tables have one title"
    return answer
