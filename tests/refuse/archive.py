"""Zip archives written field by field, so that each field can lie. Only what the hostile files need."""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Member:
    """One member; what is None is what an honest writer would put there."""

    name: bytes
    data: bytes
    deflate: bool = False
    flags: int = 0
    method: int | None = None
    crc: int | None = None
    local_name: bytes | None = None
    local_crc: int | None = None
    local_size: int | None = None
    central_size: int | None = None
    central_offset: int | None = None
    central_extra: bytes = b""

    def packed(self) -> bytes:
        if not self.deflate:
            return self.data
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(self.data) + packer.flush()


@dataclass
class Archive:
    members: list[Member] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Archive:
        with zipfile.ZipFile(path) as file:
            return cls([Member(name.encode(), file.read(name)) for name in file.namelist()])

    def find(self, end: str) -> Member:
        found = [member for member in self.members if member.name.decode().endswith(end)]
        assert len(found) == 1, f"{len(found)} members end in {end}"
        return found[0]

    def write(self) -> bytes:
        body, directory = bytearray(), bytearray()  # of bytes each addition would copy all there is
        for member in self.members:
            offset = len(body) if member.central_offset is None else member.central_offset
            packed = member.packed()
            crc = zlib.crc32(member.data) if member.crc is None else member.crc
            method = (8 if member.deflate else 0) if member.method is None else member.method
            size = len(packed) if member.central_size is None else member.central_size
            local_name = member.name if member.local_name is None else member.local_name
            local_size = len(packed) if member.local_size is None else member.local_size
            local_crc = crc if member.local_crc is None else member.local_crc
            body += struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, member.flags, method, 0, 33, local_crc, local_size,
                                len(member.data), len(local_name), 0) + local_name + packed
            directory += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, member.flags, method, 0, 33, crc, size,
                                     len(member.data) if size == len(packed) else size, len(member.name),
                                     len(member.central_extra), 0, 0, 0, 0, offset) + member.name + member.central_extra
        return bytes(body + directory) + self.write_end(len(body), len(directory))

    def write_end(self, offset: int, size: int) -> bytes:
        count = len(self.members)
        end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), size, offset, 0)
        if count < 0xFFFF:
            return end
        end64 = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, offset)
        return end64 + struct.pack("<IIQI", 0x07064B50, 0, offset + size, 1) + end
