"""All models of the field, and which of them are held out.

A third is held out by its name: a held-out model is never profiled or audited, and only its ratio to the peers and its
error are looked at, so that the figures say what a model gains that nobody tuned for.
"""

import hashlib
import importlib
import pathlib

from field.model import FieldModel


def collect() -> list[FieldModel]:
    """The models of each file in families/, by its list MODELS."""
    folder = pathlib.Path(__file__).parent / "families"
    modules = [importlib.import_module(f"field.families.{path.stem}") for path in sorted(folder.glob("*.py"))]
    return [model for module in modules for model in module.MODELS]


def find(name: str) -> FieldModel:
    models = {model.name: model for model in collect()}
    if name not in models:
        raise SystemExit(f"There is no model {name} in the field; there are {', '.join(models)}.")
    return models[name]


def is_held_out(name: str) -> bool:
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0
