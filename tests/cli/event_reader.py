"""Reads TensorBoard's event files, as their format is published: framed records of one protocol buffer each."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path


def measure_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_records(path: Path) -> Iterator[bytes]:
    data, place = path.read_bytes(), 0
    while place < len(data):
        header = data[place : place + 8]
        (length,) = struct.unpack("<Q", header)
        event = data[place + 12 : place + 12 + length]
        assert struct.unpack("<I", data[place + 8 : place + 12])[0] == mask(measure_crc32c(header))
        assert struct.unpack("<I", data[place + 12 + length : place + 16 + length])[0] == mask(measure_crc32c(event))
        yield event
        place += 16 + length


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place


def read_message(data: bytes) -> dict[int, list[int | bytes]]:
    """Field number -> its values: varints as numbers, the rest as bytes."""
    fields: dict[int, list[int | bytes]] = {}
    place = 0
    while place < len(data):
        key, place = read_varint(data, place)
        kind = key & 7
        if kind == 0:
            value, place = read_varint(data, place)
        else:
            size, place = read_varint(data, place) if kind == 2 else ({1: 8, 5: 4}[kind], place)
            value, place = data[place : place + size], place + size
        fields.setdefault(key >> 3, []).append(value)
    return fields


def read_scalars(folder: Path) -> dict[str, dict[int, float]]:
    """Tag -> step -> value, of all files of the folder."""
    scalars: dict[str, dict[int, float]] = {}
    for path in sorted(folder.glob("*tfevents*")):
        first, *events = (read_message(event) for event in read_records(path))
        assert first[3] == [b"brain.Event:2"]
        for event in events:
            assert struct.unpack("<d", event[1][0])[0] > 1.6e9  # seconds since 1970
            for value in read_message(event[5][0])[1]:
                fields = read_message(value)
                scalars.setdefault(fields[1][0].decode(), {})[event[2][0]] = struct.unpack("<f", fields[2][0])[0]
    return scalars
