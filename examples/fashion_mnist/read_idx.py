"""Reads the files that Fashion-MNIST comes in."""

import gzip
import pathlib

import numpy


def read_idx(path: pathlib.Path) -> numpy.ndarray:
    """Bytes u8, of the sizes that the file names."""
    data = gzip.decompress(path.read_bytes())
    sizes = numpy.frombuffer(data, ">i4", count=data[3], offset=4)
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * data[3]).reshape(sizes)
