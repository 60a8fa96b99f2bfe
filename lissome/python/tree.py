"""How a model's flat inputs and outputs nest in the caller's call.

A plan carries the tree as JSON: {"spec": torch's own tree, "leaves": [name, or {"fixed": value}, ...],
"parameters": [[name, default], or [name], ...], "in_order": number}. A fixed leaf is an argument whose value the export froze (it may be
given as it was, the model does not read it), or a text among the results. "parameters" are those of the module's
forward, with the defaults that are plain values, and the first "in_order" of them may be given without their names;
both are missing where the model came from a file.
"""

from __future__ import annotations

import builtins
import inspect
import json
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from types import ModuleType
from typing import Any

from lissome.errors import InvalidInputError, UnsupportedError, list_names
from lissome.plain_tree import PlainTree, list_leaves, read_json, read_plain_tree


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
        elif isinstance(node, str) and node.lstrip()[:1] in ("[", "{", '"'):
            waiting.append(_read_context(node))


def _read_context(text: str) -> Any:
    """A context is JSON inside of JSON. A text that only looks like it is the key of a dictionary, which no reader parses."""
    try:
        json.loads(text)
    except ValueError:
        return None
    return read_json(text)


def _read_spec(tree: dict[str, Any]) -> PlainTree | TorchTree | None:
    if "spec" not in tree:
        return None
    try:
        plain = read_plain_tree(tree["spec"])
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"how the model's arguments or results nest is broken: {error}") from error
    return plain if plain is not None else _read_torch_tree(tree["spec"])


def _read_torch_tree(spec: Any) -> TorchTree:
    """Types that are registered with torch: named tuples, data classes, those of transformers."""
    try:
        _check_spec(spec)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"how the model's arguments or results nest is broken: {error}") from error
    try:
        from torch.utils import _pytree as pytree  # noqa: PLC0415  models without such types need no torch
    except ImportError as error:
        raise UnsupportedError(
            "the model's arguments or results hold types that torch knows, and torch is not installed\n"
            "      Install it: pip install torch"
        ) from error
    try:
        return TorchTree(pytree.treespec_loads(json.dumps([1, spec])))
    except (NotImplementedError, KeyError, ValueError, TypeError, AssertionError, RecursionError) as error:
        raise UnsupportedError(
            f"the model's arguments or results hold a type that is not known here: {error}\n"
            "      Import the library that defines it, such as transformers, before lissome.load"
        ) from error


def _read_tree(text: str) -> dict[str, Any]:
    try:
        tree = read_json(text) if text else {}
    except ValueError as error:
        raise InvalidInputError(f"the description of how the model's arguments nest is not JSON: {error}") from error
    if not isinstance(tree, dict) or not all(isinstance(tree.get(key, []), list) for key in ("leaves", "parameters")):
        raise InvalidInputError("the description of how the model's arguments nest is not an object with lists of leaves and parameters")
    return tree


def _is_fixed(leaf: Any) -> bool:
    return isinstance(leaf, dict)


_ABSENT = object()  # in the place of a fixed argument that is not given
_PLAIN = (bool, int, float, str, type(None))


def _is_same(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _check_fixed(value: Any, fixed: Any) -> None:
    """Refuses another value than the exported one; kinds that the text has no words for are let through."""
    if value is _ABSENT or type(fixed) not in _PLAIN or type(value) not in _PLAIN:
        return
    if not _is_same(value, fixed):
        raise InvalidInputError(
            f"an argument is {value!r}, and the model was exported for {fixed!r} in its place alone\n"
            f"      Give {fixed!r}, or export the module again with {value!r}"
        )


def add_parameters(text: str, forward: Callable[..., Any]) -> str:
    """The tree of a call with the parameters of the module's forward."""
    parameters = []
    in_order = 0
    for parameter in inspect.signature(forward).parameters.values():
        if parameter.kind == parameter.VAR_POSITIONAL:
            return text  # what comes after it has no place in order
        if parameter.kind != parameter.VAR_KEYWORD:
            in_order += parameter.kind != parameter.KEYWORD_ONLY
            is_plain = type(parameter.default) in _PLAIN
            parameters.append([parameter.name, parameter.default] if is_plain else [parameter.name])
    return json.dumps(_read_tree(text) | {"parameters": parameters, "in_order": in_order})


class _Parameters:
    """What is known of the parameters of the module's forward."""

    def __init__(self, rows: Any, in_order: Any):
        for row in rows:
            if not (isinstance(row, list) and len(row) in (1, 2) and isinstance(row[0], str)):
                raise InvalidInputError(f"how the model's arguments nest has a parameter {row!r}, which is no name and default")
        if type(in_order) is not int:
            raise InvalidInputError(f"how many of the model's arguments have an order is {in_order!r}, which is no number")
        self.names: list[str] = [row[0] for row in rows]
        self.in_order: list[str] = self.names[: max(in_order, 0)]
        self.defaults: dict[str, Any] = {row[0]: row[1] for row in rows if len(row) == 2}

    def check_left_out(self, name: str, fixed: Any) -> None:
        """Refuses a call without an argument that the export froze, unless its default is what was frozen."""
        default = self.defaults.get(name, _ABSENT) if self.names else None
        if default is not _ABSENT and _is_same(default, fixed):
            return
        known = f"; its default is {default!r}" if self.names and default is not _ABSENT else ""
        raise InvalidInputError(
            f"the argument {name} is left out, and the model was exported with {fixed!r} for it{known}\n"
            f"      Give {fixed!r} for it, or export the module again without it"
        )

    def check_not_exported(self, name: str, value: Any) -> None:
        """Refuses a value for an argument that the export was made without, unless it is the default."""
        if self.names and name not in self.names:
            raise InvalidInputError(f"the module has no argument {name}\n      It takes {list_names(self.names)}")
        default = self.defaults.get(name, _ABSENT) if self.names else None
        if default is not _ABSENT and type(value) in _PLAIN and _is_same(value, default):
            return
        known = f", whose default is {default!r}" if self.names and default is not _ABSENT else ""
        raise InvalidInputError(
            f"the argument {name} is given, and the model was exported without it{known}\n"
            f"      Leave {name} out, or export the module again with it"
        )


class TorchTree:
    """torch's tree with the interface of PlainTree."""

    def __init__(self, spec: Any):
        self._spec = spec
        self.num_leaves: int = spec.num_leaves
        self.num_children: int = spec.num_children
        self.context: Any = spec.context

    def is_leaf(self) -> bool:
        return bool(self._spec.is_leaf())

    def children(self) -> list[TorchTree]:
        return [TorchTree(child) for child in self._spec.children()]

    def flatten_up_to(self, value: Any) -> list[Any]:
        try:
            return list(self._spec.flatten_up_to(value))
        except (AttributeError, TypeError) as error:
            raise ValueError(str(error)) from error

    def unflatten(self, leaves: list[Any]) -> Any:
        try:
            return self._spec.unflatten(leaves)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"how the model's values nest is none of Python's containers: {error}") from error


class InputTree:
    """From the arguments of a call to the flat inputs of a plan."""

    def __init__(self, text: str, names: list[str]):
        tree = _read_tree(text)
        self.names = names
        self.leaves: list[Any] = tree.get("leaves") or list(names)
        self.spec = _read_spec(tree)
        rows = tree.get("parameters", [])
        self._signature = _Parameters(rows, tree.get("in_order", len(rows)))
        self._plain = 0
        if self.spec is not None:
            names_read = sum(not _is_fixed(leaf) for leaf in self.leaves)
            if self.spec.num_leaves != len(self.leaves) or names_read != len(names):
                raise InvalidInputError(
                    f"how the model's arguments nest names {names_read} inputs, and the model has {len(names)}"
                )
            if self.spec.num_children != 2:
                raise InvalidInputError("how the model's arguments nest is not positional ones and keywords")
            arguments, keywords = self.spec.children()
            self._keys = keywords.context or []
            if not isinstance(self._keys, list) or len(self._keys) != keywords.num_children:
                raise InvalidInputError("how the model's arguments nest has keywords without names")
            self._parameters = self._list_parameters(arguments)
            self._fixed = self._find_fixed()
            if not self._keys and arguments.num_children == arguments.num_leaves == len(names):
                self._plain = len(names)

    def _list_parameters(self, arguments: PlainTree | TorchTree) -> list[str]:
        """The names of positional arguments: the first word of the names of their leaves where forward is not known."""
        if len(self._signature.names) >= arguments.num_children:
            return self._signature.names[: arguments.num_children]
        parameters: list[str] = []
        position = 0
        for child in arguments.children():
            leaf = self.leaves[position] if position < len(self.leaves) and child.num_leaves else ""
            known = str(leaf).split(".")[0] if not _is_fixed(leaf) else ""
            parameters.append(known or f"number {len(parameters) + 1}")
            position += child.num_leaves
        return parameters

    def _find_fixed(self) -> dict[str, Any]:
        """The frozen values of arguments that are one leaf, by name."""
        assert self.spec is not None
        arguments, keywords = self.spec.children()
        children: Sequence[PlainTree | TorchTree] = [*arguments.children(), *keywords.children()]
        fixed, position = {}, 0
        for name, child in zip([*self._parameters, *self._keys], children, strict=True):
            if child.is_leaf() and _is_fixed(self.leaves[position]):
                fixed[name] = self.leaves[position].get("fixed")
            position += child.num_leaves
        return fixed

    def flatten(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
        """The leaves that the plan reads, in its order."""
        if self._plain and len(arguments) == self._plain and not keywords:
            if not any(isinstance(argument, list | tuple | dict) for argument in arguments):
                return list(arguments)
        if self.spec is None:
            return list_leaves((arguments, keywords))
        arguments, keywords = self._order(arguments, keywords)
        try:
            leaves = self.spec.flatten_up_to((arguments, keywords))
        except (ValueError, KeyError) as error:
            raise InvalidInputError(
                f"{self._explain_nesting(arguments, keywords) or f'the arguments do not nest as exported: {error}'}\n"
                f"      The model takes {list_names(self.names)}"
            ) from error
        for value, leaf in zip(leaves, self.leaves, strict=True):
            if _is_fixed(leaf):
                _check_fixed(value, leaf.get("fixed"))
        return [value for value, leaf in zip(leaves, self.leaves, strict=True) if not _is_fixed(leaf)]

    def _explain_nesting(self, positional: tuple[Any, ...], keywords: dict[str, Any]) -> str:
        """The first argument that is missing, or nests in another way than the export's."""
        assert self.spec is not None
        children = [child for part in self.spec.children() for child in part.children()]
        given = dict(zip(self._parameters, positional, strict=False)) | keywords
        for name, child in zip([*self._parameters, *self._keys], children, strict=True):
            if name not in given:
                return f"the argument {name} is missing"
            try:
                child.flatten_up_to(given[name])
            except (ValueError, KeyError) as error:
                return f"the argument {name} does not nest as exported: {error}"
        return ""

    def _list_keyword_only(self) -> str:
        names = self._signature.names[len(self._signature.in_order) :]
        return f"\n      By name: {list_names(names)}" if names else ""

    def _order(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments as the export saw them: positional ones given by name move to their positions, and keywords given in
        order to their names."""
        given = dict(keywords)
        positional = list(arguments[: len(self._parameters)])
        further = arguments[len(self._parameters) :]
        rest = self._signature.in_order[len(self._parameters) :] if self._signature.names else self._keys
        free = [name for name in rest if name not in given]
        if len(further) > len(free):
            raise InvalidInputError(
                f"{len(arguments)} arguments are given in order; the model takes {len(self._parameters) + len(free)} so"
                f" ({list_names([*self._parameters, *free])}){self._list_keyword_only()}"
            )
        given |= dict(zip(free, further, strict=False))
        for name in self._parameters[len(positional) :]:
            if name not in given:
                if name not in self._fixed:
                    break
                self._signature.check_left_out(name, self._fixed[name])
            positional.append(given.pop(name, _ABSENT))
        ordered = {}
        for key in self._keys:
            if key in given:
                ordered[key] = given.pop(key)
            elif key in self._fixed:
                self._signature.check_left_out(key, self._fixed[key])
                ordered[key] = _ABSENT
        for name, value in given.items():
            if name in self._parameters[: len(arguments)]:
                raise InvalidInputError(f"the argument {name} is given twice: in order and by its name")
            if name not in self._parameters:  # else one before it is missing, which flatten() reports
                self._signature.check_not_exported(name, value)
        return tuple(positional), ordered


class OutputTree:
    """From the flat outputs of a plan to what the module returns."""

    def __init__(self, text: str, outputs: int | None = None):
        tree = _read_tree(text)
        self.spec = _read_spec(tree)
        self._fixed = [(i, leaf.get("fixed")) for i, leaf in enumerate(tree.get("leaves", [])) if _is_fixed(leaf)]
        if self.spec is not None and outputs is not None and self.spec.num_leaves != outputs:
            raise InvalidInputError(
                f"how the model's results nest names {self.spec.num_leaves} outputs, and the model has {outputs}"
            )
        self._single = self.spec is not None and self.spec.is_leaf()

    def unflatten(self, outputs: list[Any]) -> Any:
        for place, value in self._fixed:
            if place < len(outputs):
                outputs[place] = value
        if self._single:
            return outputs[0]
        if self.spec is None:
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        return self.spec.unflatten(outputs)
