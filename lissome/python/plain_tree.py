"""How values nest, read from the text of torch.export without torch: tuples, lists and dictionaries of leaves."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

_KINDS: dict[str, type] = {
    "builtins.tuple": tuple,
    "builtins.list": list,
    "builtins.dict": dict,
    "collections.OrderedDict": OrderedDict,
}


def read_json(text: str) -> Any:
    """ValueError where it is broken, nests too deeply or names a key twice. Of two values of one key a reader with hooks,
    as torch has, sees both, and a dictionary the last."""

    def refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError(f"a key is named twice in {_quote_start(text)}")
        return found

    try:
        return json.loads(text, object_pairs_hook=refuse_repeated)
    except RecursionError as error:
        raise ValueError(f"{_quote_start(text)} nests too deeply") from error


def _quote_start(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


def list_leaves(value: Any) -> list[Any]:
    """Depth first, as torch flattens: dictionaries in their own order."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in list_leaves(item)]
    if type(value) in (tuple, list):
        return [leaf for item in value for leaf in list_leaves(item)]
    return [value]


@dataclass
class PlainTree:
    """The part of torch's TreeSpec that a call needs. `kind` is a type, None for a leaf; `context` holds the keys of a
    dictionary."""

    kind: Any
    context: list[Any] | None = None
    parts: list[PlainTree] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.num_leaves: int = 1 if self.kind is None else sum(part.num_leaves for part in self.parts)
        self.num_children = len(self.parts)

    def is_leaf(self) -> bool:
        return self.kind is None

    def children(self) -> list[PlainTree]:
        return self.parts

    def flatten_up_to(self, value: Any) -> list[Any]:
        """The leaves of a value that nests like this. ValueError where it does not."""
        if self.kind is None:
            return [value]
        items = self._read_items(value)
        return [leaf for part, item in zip(self.parts, items, strict=True) for leaf in part.flatten_up_to(item)]

    def _read_items(self, value: Any) -> list[Any]:
        if self.context is not None:
            if not isinstance(value, dict):
                raise ValueError(f"a dictionary is expected, not {type(value).__name__}")
            if set(value) != set(self.context):
                raise ValueError(f"the keys {self.context} are expected, not {list(value)}")
            return [value[key] for key in self.context]
        if type(value) is not self.kind:
            raise ValueError(f"a {self.kind.__name__} is expected, not {type(value).__name__}")
        if len(value) != len(self.parts):
            raise ValueError(f"a {self.kind.__name__} of {len(self.parts)} is expected, not of {len(value)}")
        return list(value)

    def unflatten(self, leaves: list[Any]) -> Any:
        if len(leaves) != self.num_leaves:
            raise ValueError(f"{self.num_leaves} values are expected, not {len(leaves)}")
        rest = iter(leaves)
        return self._build(rest)

    def _build(self, rest: Any) -> Any:
        if self.kind is None:
            return next(rest)
        items = [part._build(rest) for part in self.parts]
        return self.kind(items) if self.context is None else self.kind(zip(self.context, items, strict=True))


def read_plain_tree(spec: Any) -> PlainTree | None:
    """None where the spec names a type that only torch and its registry know. ValueError where it is broken."""
    if not isinstance(spec, dict) or not isinstance(spec.get("children_spec"), list):
        raise ValueError("a node of the tree has no list of children")
    name = spec.get("type")
    if name is None:
        return PlainTree(None)
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        return None
    parts = []
    for child in spec["children_spec"]:
        part = read_plain_tree(child)
        if part is None:
            return None
        parts.append(part)
    if not issubclass(kind, dict):
        return PlainTree(kind, None, parts)
    keys = read_json(spec["context"]) if isinstance(spec.get("context"), str) else None
    if not isinstance(keys, list) or len(keys) != len(parts):
        raise ValueError("a dictionary of the tree does not name its keys")
    if not all(isinstance(key, str | int) for key in keys):
        return None  # an enum
    return PlainTree(kind, keys, parts)
