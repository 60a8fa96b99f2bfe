"""How arguments nest comes from the model file: reading it imports nothing and calls nothing that the file names."""

from __future__ import annotations

import enum
import json
import sys
from typing import Any

import lissome
import pytest
import torch
from lissome.tree import InputTree, OutputTree
from torch.utils import _pytree as pytree


class Colour(enum.Enum):
    RED = 1


def write_tree(value: object) -> dict:
    _, spec = pytree.tree_flatten(value)
    return {"spec": json.loads(pytree.treespec_dumps(spec))[1]}


def name_factory(module: str, name: str) -> dict:
    tree = write_tree({"a": 1})
    tree["spec"]["type"] = "collections.defaultdict"
    tree["spec"]["context"] = {"default_factory_module": module, "default_factory_name": name, "dict_context": ["a"]}
    return tree


def name_enum(name: str, space: str = "") -> dict:
    tree = write_tree({"a": 1})
    tree["spec"]["context"] = space + json.dumps([{"__enum__": True, "fqn": name, "name": "RED"}])
    return tree


def test_a_default_dictionary_of_a_builtin_type_is_read():
    assert OutputTree(json.dumps(name_factory("builtins", "list"))).unflatten([5]) == {"a": 5}


@pytest.mark.parametrize(("module", "name"), [("os", "system"), ("builtins", "exec"), ("planted_module", "make")])
def test_a_factory_that_the_file_names_is_not_looked_up(tmp_path, monkeypatch, module, name):
    (tmp_path / "planted_module.py").write_text(f"open({str(tmp_path / 'touched')!r}, 'w')\nmake = list\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(lissome.UnsupportedError, match=f"{module}.{name}"):
        OutputTree(json.dumps(name_factory(module, name)))
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("space", ["", " \n"])
def test_an_enum_of_a_module_that_is_not_imported_is_refused(tmp_path, monkeypatch, space):
    (tmp_path / "planted_enum.py").write_text(f"open({str(tmp_path / 'touched')!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("planted_enum:Colour", "os:environ", "sys:modules", "json:JSONDecoder.decode"):
        with pytest.raises(lissome.UnsupportedError, match="enum"):
            OutputTree(json.dumps(name_enum(name, space)))
    assert not (tmp_path / "touched").exists()
    assert "planted_enum" not in sys.modules


def test_an_enum_of_an_imported_module_is_read():
    tree = OutputTree(json.dumps(name_enum(f"{__name__}:Colour")))
    assert tree.unflatten([5]) == {Colour.RED: 5}


def test_a_tree_of_another_number_of_leaves_is_refused():
    arguments = json.dumps(write_tree(((1, 2), {})) | {"leaves": ["x", "y"]})
    assert InputTree(arguments, ["x", "y"]).flatten((1, 2), {}) == [1, 2]
    for names in (["x"], ["x", "y", "z"]):
        with pytest.raises(lissome.InvalidInputError, match=f"names 2 inputs, and the model has {len(names)}"):
            InputTree(arguments, names)
    with pytest.raises(lissome.InvalidInputError, match="names 1 outputs, and the model has 2"):
        OutputTree(json.dumps(write_tree([1])), 2)


@pytest.mark.parametrize("text", ["{", "[]", '{"leaves": 3}', '{"spec": {}}', '{"spec": null}', "[" * 100_000])
def test_a_broken_tree_is_refused(text):
    for read in (lambda: InputTree(text, ["x"]), lambda: OutputTree(text)):
        with pytest.raises((lissome.InvalidInputError, lissome.UnsupportedError)):
            read()


class Scaled(torch.nn.Module):
    """Arguments that are no tensors decide what is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(6, 4)

    def forward(self, x: torch.Tensor, scale: float = 2.0, flag: bool = True) -> torch.Tensor:
        return self.layer(x) * scale if flag else self.layer(x)


def test_arguments_that_the_export_froze_are_taken_as_they_were_alone():
    net, x = Scaled().eval(), torch.randn(3, 6)
    fast = lissome.prepare(net, (x, 0.5))
    torch.testing.assert_close(fast(x, 0.5), net(x, 0.5))
    for wrong in ((x, 3.0), (x, "word"), (x, None), (x, True)):
        with pytest.raises(lissome.Error, match=r"exported for 0\.5"):
            fast(*wrong)
    flagged = lissome.prepare(net, (x,), example_kwargs={"flag": False})
    torch.testing.assert_close(flagged(x, flag=False), net(x, flag=False))
    with pytest.raises(lissome.Error, match="flag is left out.*with False for it; its default is True"):
        flagged(x)
    with pytest.raises(lissome.Error, match="exported for False"):
        flagged(x, flag=True)


@pytest.mark.parametrize(
    ("further", "message"), [((3.0,), "scale is given"), ((torch.zeros(3, 6),), "scale is given"), ((1, 2, 3), "the model takes 3")]
)
def test_arguments_that_the_model_does_not_have_are_refused(further: tuple[Any, ...], message: str):
    net, x = Scaled().eval(), torch.randn(3, 6)
    with pytest.raises(lissome.Error, match=message):
        lissome.prepare(net, (x,))(x, *further)


class Labelled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return {"kind": "scores", "all": (x + 1, None, "text", 3), "last": "end"}


def test_texts_among_the_results_come_back():
    x = torch.randn(2, 3)
    wanted = Labelled()(x)
    seen = lissome.prepare(Labelled(), (x,))(x)
    torch.testing.assert_close(seen["all"][0], wanted["all"][0])
    assert seen["all"][1:] == (None, "text", 3)
    assert {**seen, "all": None} == {"kind": "scores", "all": None, "last": "end"}


@pytest.mark.parametrize("broken", [{"parameters": 3}, {"parameters": [3]}, {"parameters": [["a", 1, 2]]}, {"leaves": {}}])
def test_a_broken_tree_of_arguments_is_refused(broken: dict[str, Any]):
    tree = write_tree(((1,), {})) | {"leaves": ["x"]}
    assert InputTree(json.dumps(tree), ["x"]).flatten((5,), {}) == [5]
    with pytest.raises(lissome.InvalidInputError, match="how the model's arguments nest"):
        InputTree(json.dumps(tree | broken), ["x"])


def test_keywords_without_names_are_refused():
    tree = write_tree(((1,), (2,))) | {"leaves": ["x", "y"]}
    with pytest.raises(lissome.InvalidInputError, match="keywords without names"):
        InputTree(json.dumps(tree), ["x", "y"])


# Texts of a context in which a reader with hooks meets an enum that the dictionary of Python does not hold in the end.
HIDDEN = [
    '[{{"a": {0}, "a": 1}}]',
    '[{{"a": [{0}], "b": 2, "a": "a"}}]',
    ' {{"keys": {0}, "keys": ["a"]}}',
    '[[[{{"x": {{"y": {0}, "y": 0}}}}]]]',
    '[{{"__enum__": true, "fqn": "planted_hidden:A", "name": "B", "fqn": "tests:A", "__enum__": 1, "__enum__": 0}}]',
]


@pytest.mark.parametrize("kind", ["builtins.dict", "collections.OrderedDict", "collections.deque", "torch.Size"])
@pytest.mark.parametrize("text", HIDDEN)
def test_an_enum_behind_a_repeated_key_is_refused(tmp_path, monkeypatch, kind, text):
    (tmp_path / "planted_hidden.py").write_text(f"open({str(tmp_path / 'touched')!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    tree = write_tree({"a": 1})
    tree["spec"]["type"] = kind
    tree["spec"]["context"] = text.format('{"__enum__": true, "fqn": "planted_hidden:A", "name": "B"}')
    for outer in (tree, {"spec": tree["spec"] | {"type": "builtins.tuple", "children_spec": [tree["spec"]]}}):
        with pytest.raises(lissome.Error):
            OutputTree(json.dumps(outer))
    assert not (tmp_path / "touched").exists()
    assert "planted_hidden" not in sys.modules


def test_a_repeated_key_of_the_tree_itself_is_refused():
    text = json.dumps(write_tree([1, 2]))
    with pytest.raises(lissome.InvalidInputError, match="named twice"):
        OutputTree(text[:-1] + ', "leaves": ["a"], "leaves": []}')


@pytest.mark.parametrize("context", ["[" * 5000, 5.5, "5.5", '{"a": 1}', None, "null", '"a"'])
def test_a_broken_context_is_an_error_of_lissome(context):
    inner = write_tree((1, 2))["spec"]
    for kind in ("builtins.dict", "collections.OrderedDict", "collections.deque", "collections.namedtuple"):
        keywords = {"type": kind, "context": context, "children_spec": [inner]}
        spec = {"type": "builtins.tuple", "context": "null", "children_spec": [inner, keywords]}
        with pytest.raises(lissome.Error):
            InputTree(json.dumps({"spec": spec, "leaves": list("abcd")}), list("abcd")).flatten((1, 2), {"a": (3, 4)})
