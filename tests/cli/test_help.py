"""Help and refusals of numbers say what is allowed, not what the machine's types hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

Lissome = Callable[..., Any]
COMMANDS = "run bench profile audit inspect prepare optimize train budget peaks".split()
# A flag of one name has one type, one default and one text in all commands, but for these, which mean another thing in some.
# Commands of one set agree; those in no set agree, too.
MEANINGS: dict[str, list[set[str]]] = {
    "--batch": [{"train", "budget"}],  # samples of a step, of which there is no fewest
    "--precision": [{"train", "budget"}, {"prepare"}],  # of training, of a model, in place of what may be tried
    "--memory": [{"train", "budget"}, {"run", "bench"}, {"optimize"}],  # a bound on training, on a session, a goal
    "--threads": [{"optimize"}, {"prepare", "train", "budget"}, {"peaks"}],  # what 0 stands for
    "--effort": [{"prepare"}],  # the default alone: what prepares does not search, unless it is asked to
    "--input": [{"run"}],  # required, and given again for each of many inputs
    "--output": [{"run"}],  # arrays, in place of a model
}
SAME_TYPE = set(MEANINGS) - {"--input"}
FLAG = re.compile(r"^  ((?:-\w,)?--[\w,-]+|[A-Z]+)((?: [A-Z]+)?(?: \.\.\.)?)(?: REQUIRED)?(?: {2,}|\n +)(\S.*)$", re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_no_limits_of_the_machine(lissome: Lissome, command: str):
    done = lissome(command, "--help")
    assert done.returncode == 0 and "--" in done.stdout
    assert not re.search(r"\d{10,}|e\+\d{3}|INT|FLOAT", done.stdout), done.stdout


def read_help(lissome: Lissome, command: str) -> dict[str, tuple[str, str]]:
    """Of each long flag the word for its type, and the text with the default."""
    flags = {}
    for names, kind, text in FLAG.findall(lissome(command, "--help").stdout):
        for name in names.split(","):
            if name.startswith("--"):
                flags[name] = (kind.strip(), text)
    return flags


def test_a_flag_is_the_same_in_every_command(lissome: Lissome):
    flags = {command: read_help(lissome, command) for command in COMMANDS}
    for command, own in flags.items():
        printed = lissome(command, "--help").stdout
        assert set(re.findall(r"(?<=[\s,])--[\w-]+(?=[ ,].* {2}|,)", printed)) >= set(own) >= {"--help", "--json"}, command
        assert len(own) == len(re.findall(r"^  (?:-\w,)?--", printed, re.MULTILINE)) + printed.count(",--val "), command
    for name in sorted(set().union(*flags.values())):
        having = {command for command in COMMANDS if name in flags[command]}
        groups = MEANINGS.get(name, [])
        for group in [*groups, having.difference(*groups)]:
            seen = {flags[command][name] for command in group}
            assert len(seen) <= 1, (name, group, seen)
        if name in SAME_TYPE:
            assert len({flags[command][name][0] for command in having}) == 1, name
    for name, groups in MEANINGS.items():  # no exception that is none
        texts = [{flags[command][name][1] for command in group} for group in groups]
        rest = {flags[command][name][1] for command in COMMANDS if name in flags[command]} - set().union(*texts)
        assert len(rest) + len(texts) >= 2 and all(texts), name


def test_no_command_hides_a_flag_of_every_command(lissome: Lissome):
    common = set(re.findall(r"--[a-z-]+", lissome("--help").stdout.partition("Every command takes")[2].partition("\n\n")[0]))
    assert common >= {"--json", "--cache", "--isa"}
    for command in COMMANDS:
        assert not (common - {"--json"}) & set(read_help(lissome, command)), command


def test_help_of_data_names_every_kind(lissome: Lissome):
    for command in ("optimize", "train", "budget"):
        text = read_help(lissome, command)["--data"][1]
        assert all(kind in text for kind in (".npz", ".npy", ".safetensors", ".csv", "IDX", "FOLDER:train", "images")), text
    for command in ("run", "bench", "profile", "audit", "prepare"):
        text = read_help(lissome, command)["--input"][1]
        assert all(kind in text for kind in (".npz", ".npy", ".safetensors")), text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "m.pt2", "--data", "d.npz", "-o", "o", "--clip", "nan"), "nan was given; 0 or more is allowed"),
        (("train", "m.pt2", "--data", "d.npz", "-o", "o", "--clip", "-1"), "-1 was given; 0 or more is allowed"),
        (("train", "m.pt2", "--data", "d.npz", "-o", "o", "--epochs", "0"), "0 was given; 1 or more is allowed"),
        (("bench", "m.pt2", "--threads", "5000"), "5000 was given; 0 to 1024 is allowed"),
        (("bench", "m.pt2", "--runs", "many"), "many was given; 1 or more is allowed"),
        (("bench", "m.pt2", "--runs", "9" * 30), "was given; 1 or more is allowed"),
    ],
)
def test_a_number_out_of_range_is_reported_with_what_is_allowed(lissome: Lissome, words: tuple[str, ...], message: str):
    done = lissome(*words)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert words[-2] in done.stderr
