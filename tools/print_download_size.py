"""Prints the names and sizes of the files that pip is about to fetch, from pip's report on stdin."""

import json
import pathlib
import sys
import urllib.parse
import urllib.request


def find_size(url: str) -> int | None:
    """Bytes behind the address, or None where the server does not say."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        return pathlib.Path(urllib.parse.unquote(parts.path)).stat().st_size
    try:
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=30) as response:
            return int(response.headers.get("Content-Length") or 0) or None
    except OSError:
        return None


total = 0
for entry in json.load(sys.stdin)["install"]:
    address = entry["download_info"]["url"]
    name = urllib.parse.unquote(address.rsplit("/", 1)[-1])
    size = find_size(address)
    total += size or 0
    print(f"setup:   {name}: {'size not told by the index' if size is None else f'{size / 1e6:.1f} MB'}")
print(f"setup:   together {total / 1e6:.0f} MB")
