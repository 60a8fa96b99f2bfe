"""How a model's flat inputs and outputs nest in the caller's call.

A plan carries the tree as JSON: {"spec": torch's own tree, "leaves": [name, or {"fixed": value}, ...]}. A fixed leaf
is an argument whose value the export froze: it may be given, the model does not read it.
"""

from __future__ import annotations

import json
from typing import Any

from torch.utils import _pytree as pytree

from lissome._lissome import InvalidInputError, UnsupportedError


def _read_spec(tree: dict[str, Any]) -> pytree.TreeSpec | None:
    if "spec" not in tree:
        return None
    try:
        return pytree.treespec_loads(json.dumps([1, tree["spec"]]))
    except (NotImplementedError, KeyError, ValueError) as error:
        raise UnsupportedError(
            f"the model's arguments or results hold a type that is not known here: {error}\n"
            "      Import the library that defines it, such as transformers, before lissome.load"
        ) from error


def _is_fixed(leaf: Any) -> bool:
    return isinstance(leaf, dict)


class InputTree:
    """From the arguments of a call to the flat inputs of a plan."""

    def __init__(self, text: str, names: list[str]):
        tree = json.loads(text) if text else {}
        self.names = names
        self.leaves: list[Any] = tree.get("leaves") or list(names)
        self.spec = _read_spec(tree)
        self._plain = 0
        if self.spec is not None:
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
        tree = json.loads(text) if text else {}
        self.spec = _read_spec(tree)
        self._single = self.spec is not None and self.spec.is_leaf()

    def unflatten(self, outputs: list[Any]) -> Any:
        if self._single:
            return outputs[0]
        if self.spec is None:
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        return pytree.tree_unflatten(outputs, self.spec)
