"""Inputs of fuzz_program and fuzz_graph from models: program_seeds.py OUTPUT MODEL...

The program text, as `lissome inspect --text` prints it, and the graph of each .pt2, without what names the origin of nodes;
a folder stands for the models below it, and what is large is left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "lissome"
REFUSED = 4
LONGEST_TEXT = 6000
LONGEST_GRAPH = 20_000
DTYPES = {1: "u8", 2: "i8", 3: "i16", 4: "i32", 5: "i64", 6: "f16", 7: "f32", 8: "f64", 12: "bool", 13: "bf16"}
ITEM = {"u8": 1, "i8": 1, "bool": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4}


# What no reader looks at: where nodes come from, how PyTorch's own runtime calls them, how values of the trace lay.
UNREAD = {"custom_obj_values", "device", "is_hop_single_tensor_return", "is_single_tensor_return", "kind", "layout"}
UNREAD |= {"metadata", "opset_version", "requires_grad", "storage_offset", "strides", "treespec_namedtuple_fields"}
UNREAD |= {"verifiers"}


def strip(model: Any, key: str = "") -> Any:
    """Without what no reader looks at: executions take as long as the text is."""
    if isinstance(model, dict):
        return {name: strip(value, name) for name, value in model.items() if name not in UNREAD}
    if key == "module_call_graph":
        model = [row for row in model if row["signature"] is not None]
    return [strip(item) for item in model] if isinstance(model, list) else model


def describe_members(archive: zipfile.ZipFile, config: dict, folder: str) -> dict[str, list]:
    """Dtype, number of elements and fill of each raw member."""
    rows = {}
    for row in config["config"].values():
        if row.get("use_pickle"):
            continue
        dtype = DTYPES.get(row.get("tensor_meta", {}).get("dtype"), "f32")
        size = next(info.file_size for info in archive.infolist() if info.filename.endswith(folder + row["path_name"]))
        rows[row["path_name"]] = [dtype, size // ITEM.get(dtype, 8), 0]
    return rows


def make_graph(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:

        def read(end: str) -> dict:
            return json.loads(archive.read(next(name for name in archive.namelist() if name.endswith(end))))

        model = strip(read("models/model.json"))
        weights, constants = read("model_weights_config.json"), read("model_constants_config.json")
        head = {
            "data": 0,
            "weights": weights,
            "constants": constants,
            "bytes": describe_members(archive, weights, "data/weights/"),
            "constant_bytes": describe_members(archive, constants, "data/constants/"),
        }
    return json.dumps(head, separators=(",", ":")) + "\n" + json.dumps(model, separators=(",", ":"))


def make_text(path: Path) -> str | None:
    """None where lissome refuses the model."""
    done = subprocess.run([PROGRAM, "inspect", "--text", path], capture_output=True, text=True)
    if done.returncode == REFUSED:
        return None
    done.check_returncode()
    lines = [line.partition("  # ")[0] for line in done.stdout.splitlines()]
    return "# data 0\n" + "\n".join(line for line in lines if not line.startswith("call ")) + "\n"


def find(source: Path) -> list[Path]:
    return sorted(source.rglob("*.pt2")) if source.is_dir() else [source]


def main(output: Path, sources: list[Path]) -> None:
    for kind, make, longest in (("program", make_text, LONGEST_TEXT), ("graph", make_graph, LONGEST_GRAPH)):
        folder = output / kind
        folder.mkdir(parents=True, exist_ok=True)
        for path in (path for source in sources for path in find(source)):
            text = make(path)
            if text is not None and len(text) <= longest:
                (folder / (path.stem if path.stem != "model" else path.parent.name)).write_text(text)
        print(f"{len(list(folder.iterdir()))} seeds for fuzz_{kind}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(word) for word in sys.argv[2:]])
