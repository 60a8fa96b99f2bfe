"""Writes valid files of every kind for the fuzzer to start from: make_seeds.py FOLDER."""

from __future__ import annotations

import base64
import gzip
import io
import json
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np

PROGRAM = """\
# program text as print writes it
dim batch: 1..64
input %x: f32[batch, 8]
parameter @weight: f32[4, 8]
%1: f32[batch, 4] = aten::linear(%x, @weight, none)
%2: f32[batch, 4] = aten::relu(%1)
return %2
"""


def write_zip(path: Path, compression: int) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("models/model.json", json.dumps({"a": [1, 2.5, None, True, "text"]}))
        archive.writestr("data/weights/weight_0", bytes(range(64)))


def write_pt2(path: Path) -> None:
    """The skeleton of an exported program: members and configurations, an empty graph."""
    graph = {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}}
    model = {"graph_module": {"graph": graph, "signature": {}}, "opset_version": {"aten": 10}, "range_constraints": {}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/archive_format", "pt2")
        archive.writestr("model/archive_version", "0")
        archive.writestr("model/byteorder", "little")
        archive.writestr("model/models/model.json", json.dumps(model))
        archive.writestr("model/data/weights/model_weights_config.json", json.dumps({"config": {}}))
        archive.writestr("model/data/constants/model_constants_config.json", json.dumps({"config": {}}))


def write_safetensors(path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(16))


def write_streamed_zip(path: Path) -> None:
    """CRC32 and sizes behind the data, as PyTorch writes them."""

    class Stream(io.BytesIO):
        def seekable(self) -> bool:
            return False

    buffer = Stream()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data/0", bytes(range(64)))
        archive.writestr("code", "text " * 9, zipfile.ZIP_DEFLATED)
    path.write_bytes(buffer.getvalue())


def write_idx(folder: Path) -> None:
    images = bytes([0, 0, 8, 3]) + struct.pack(">III", 2, 2, 2) + b"abcdefgh"
    (folder / "images.idx").write_bytes(images)
    (folder / "images.gz").write_bytes(gzip.compress(images))
    (folder / "floats.idx").write_bytes(bytes([0, 0, 13, 2]) + struct.pack(">IIf", 2, 4, 1.0) + bytes(28))


def write_model_members(path: Path) -> None:
    """The members of a model with two weights in one storage, as fuzz_model_file takes them."""
    head = {"format": "lissome", "version": 1, "written_by": "lissome 0.1.0"}
    row = {"name": "w", "dtype": "f32", "sizes": [2], "member": "array/0"}
    rows = {"weights": [row, row | {"name": "v"}], "plan": [row | {"member": "array/1"}]}
    texts = [json.dumps(head).encode(), PROGRAM.encode(), b"{}", b"{}", json.dumps(rows).encode(), bytes(8), bytes(8)]
    path.write_bytes(b"".join(struct.pack("<H", len(text)) + text for text in texts))


# Grey, 8 x 8, as libjpeg-turbo writes it; Python's own library has no encoder.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19i"
    "Z2hnPk1xeXBkeFxlZ2P/wAALCAAIAAgBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUF"
    "BAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVW"
    "V1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi"
    "4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AEg8Hf8ATP8ASv/Z"
)


def write_png(path: Path, color: int, depth: int, pixels: bytes) -> None:
    """2 x 2 pixels, each row behind its filter byte."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 2, 2, depth, color, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(range(12))) if color == 3 else b""
    body = chunk(b"IHDR", header) + palette + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def write_images(folder: Path) -> None:
    write_png(folder / "rgb.png", 2, 8, bytes([0, 1, 2, 3, 4, 5, 6, 1, 7, 8, 9, 1, 1, 1]))
    write_png(folder / "grey16.png", 0, 16, bytes([0, 1, 2, 3, 4, 2, 5, 6, 7, 8]))
    write_png(folder / "palette.png", 3, 2, bytes([0, 0x40, 3, 0x90]))
    (folder / "grey.jpg").write_bytes(JPEG)


def main(folder: Path) -> None:
    for name in ("arrays", "csv", "data", "image", "json", "model_file", "program_text", "pt2", "safetensors", "units", "zip"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    arrays = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array([1, -2], dtype=np.int64)}
    np.savez(folder / "arrays" / "stored.npz", **arrays)
    np.savez_compressed(folder / "arrays" / "deflated.npz", **arrays)
    buffer = io.BytesIO()
    np.save(buffer, np.asfortranarray(arrays["x"].astype(">f8")))
    (folder / "arrays" / "fortran.npy").write_bytes(buffer.getvalue())
    (folder / "json" / "one.json").write_text('{"a": [1, -2.5e3, null, true, "\\u00e9\\n"], "b": {}}')
    (folder / "program_text" / "one.txt").write_text(PROGRAM)
    write_safetensors(folder / "safetensors" / "one.safetensors")
    for index, text in enumerate(("5ms", "10 min", "200MiB", "0.5%", "1e-3", "*.w?")):
        (folder / "units" / str(index)).write_text(text)
    write_zip(folder / "zip" / "stored.zip", zipfile.ZIP_STORED)
    write_zip(folder / "zip" / "deflated.zip", zipfile.ZIP_DEFLATED)
    write_pt2(folder / "pt2" / "one.pt2")
    write_streamed_zip(folder / "zip" / "streamed.zip")
    write_zip(folder / "model_file" / "stored.zip", zipfile.ZIP_STORED)
    write_model_members(folder / "model_file" / "members")
    for source in (folder / "arrays").iterdir():
        (folder / "data" / source.name).write_bytes(source.read_bytes())
    write_idx(folder / "data")
    (folder / "csv" / "words.csv").write_text('a,"b ""c""",y\r\n1,-2e3,cat\r\n\r\n+.5,0,"d\no"\n')
    (folder / "csv" / "numbers.csv").write_text("a,y\n1,2\n3,4\n")
    write_images(folder / "image")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
