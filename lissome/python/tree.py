"""How a model's flat inputs and outputs nest in the caller's call.

A plan carries the tree as JSON: {"spec": torch's own tree, "leaves": [name, or {"fixed": value}, ...]}. A fixed leaf
is an argument whose value the export froze: it may be given, the model does not read it.
"""

from __future__ import annotations

import builtins
import json
import sys
from enum import Enum
from types import ModuleType
from typing import Any

from torch.utils import _pytree as pytree

from lissome._lissome import InvalidInputError, UnsupportedError


# What a default dictionary of a model may be made with.
_FACTORIES = ("bool", "dict", "float", "int", "list", "set", "str", "tuple")


def _check_enum(name: Any) -> None:
    """`name` is "module:Class" of an enum; torch would import the module and take any attribute of it."""
    module, _, path = name.partition(":") if isinstance(name, str) else ("", "", "")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = vars(found).get(part) if isinstance(found, ModuleType | type) else None
    if not (isinstance(found, type) and issubclass(found, Enum)):
        raise UnsupportedError(
            f"the model's arguments or results name the enum {name!r}, which no imported module defines\n"
            "      Import the library that defines it before lissome.load"
        )


def _check_spec(spec: Any) -> None:
    """Refuses what makes torch import modules that the file names: its reader of trees trusts its text."""
    waiting = [spec]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if "__enum__" in node:
                _check_enum(node.get("fqn"))
            if "default_factory_module" in node or "default_factory_name" in node:
                factory = (node.get("default_factory_module"), node.get("default_factory_name"))
                if factory[0] != builtins.__name__ or factory[1] not in _FACTORIES:
                    raise UnsupportedError(
                        f"the model's arguments or results hold a default dictionary made with {factory[0]}.{factory[1]}\n"
                        f"      A model file may name these of builtins: {', '.join(_FACTORIES)}"
                    )
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, str) and node.lstrip()[:1] in ("[", "{"):
            # A context is JSON inside of JSON.
            try:
                waiting.append(json.loads(node))
            except ValueError:
                continue


def _read_spec(tree: dict[str, Any]) -> pytree.TreeSpec | None:
    if "spec" not in tree:
        return None
    _check_spec(tree["spec"])
    try:
        return pytree.treespec_loads(json.dumps([1, tree["spec"]]))
    except (NotImplementedError, KeyError, ValueError, TypeError, AssertionError, RecursionError) as error:
        raise UnsupportedError(
            f"the model's arguments or results hold a type that is not known here: {error}\n"
            "      Import the library that defines it, such as transformers, before lissome.load"
        ) from error


def _read_tree(text: str) -> dict[str, Any]:
    try:
        tree = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"how the model's arguments nest is no JSON: {error}") from error
    if not isinstance(tree, dict) or not isinstance(tree.get("leaves", []), list):
        raise InvalidInputError("how the model's arguments nest is no object with a list of leaves")
    return tree


def _is_fixed(leaf: Any) -> bool:
    return isinstance(leaf, dict)


class InputTree:
    """From the arguments of a call to the flat inputs of a plan."""

    def __init__(self, text: str, names: list[str]):
        tree = _read_tree(text)
        self.names = names
        self.leaves: list[Any] = tree.get("leaves") or list(names)
        self.spec = _read_spec(tree)
        self._plain = 0
        if self.spec is not None:
            if self.spec.num_children != 2:
                raise InvalidInputError("how the model's arguments nest is not positional ones and keywords")
            arguments, keywords = self.spec.children()
            self._keys = list(keywords.context or [])
            self._parameters = self._list_parameters(arguments)
            if not self._keys and arguments.num_children == arguments.num_leaves == len(names):
                self._plain = len(names)

    def _list_parameters(self, arguments: pytree.TreeSpec) -> list[str]:
        """The names of positional arguments: the first word of the names of their leaves."""
        parameters, position = [], 0
        for child in arguments.children():
            leaf = self.leaves[position] if position < len(self.leaves) and child.num_leaves else ""
            parameters.append("" if _is_fixed(leaf) else str(leaf).split(".")[0])
            position += child.num_leaves
        return parameters

    def flatten(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
        """The leaves that the plan reads, in its order."""
        if self._plain and len(arguments) == self._plain and not keywords:
            if not any(isinstance(argument, list | tuple | dict) for argument in arguments):
                return list(arguments)
        if self.spec is None:
            return pytree.tree_leaves((arguments, keywords))
        arguments, keywords = self._order(arguments, keywords)
        try:
            leaves = self.spec.flatten_up_to((arguments, keywords))
        except (ValueError, KeyError) as error:
            raise InvalidInputError(
                f"the arguments do not nest as the module's: {error}\n      The model takes {', '.join(self.names)}"
            ) from error
        return [value for value, leaf in zip(leaves, self.leaves, strict=True) if not _is_fixed(leaf)]

    def _order(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments as the export saw them: positional ones given by name move to their places, and the other way."""
        given = dict(keywords)
        positional = list(arguments[: len(self._parameters)])
        for key, value in zip(self._free_keys(given), arguments[len(self._parameters) :], strict=False):
            given[key] = value
        for name in self._parameters[len(positional) :]:
            if name not in given:
                break
            positional.append(given.pop(name))
        for key in self._keys:
            if key not in given and self._is_fixed_key(key):
                given[key] = None
        ordered = {key: given.pop(key) for key in self._keys if key in given}
        return tuple(positional), {**ordered, **{key: value for key, value in given.items() if value is not None}}

    def _free_keys(self, given: dict[str, Any]) -> list[str]:
        return [key for key in self._keys if key not in given]

    def _is_fixed_key(self, key: str) -> bool:
        arguments, keywords = self.spec.children()
        position = arguments.num_leaves
        for name, child in zip(self._keys, keywords.children(), strict=True):
            if name == key:
                return child.is_leaf() and _is_fixed(self.leaves[position])
            position += child.num_leaves
        return False


class OutputTree:
    """From the flat outputs of a plan to what the module returns."""

    def __init__(self, text: str):
        self.spec = _read_spec(_read_tree(text))
        self._single = self.spec is not None and self.spec.is_leaf()

    def unflatten(self, outputs: list[Any]) -> Any:
        if self._single:
            return outputs[0]
        if self.spec is None:
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        return pytree.tree_unflatten(outputs, self.spec)
