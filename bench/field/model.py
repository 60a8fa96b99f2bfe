"""What one model of the field is, and the inputs that models of a kind share."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy
from torch import nn

Arrays = dict[str, numpy.ndarray]
Generator = numpy.random.Generator


@dataclass(frozen=True)
class FieldModel:
    """An architecture at a size that people use, with drawn weights.

    `build` makes the module; whoever calls it sets the seed. `draw` makes the inputs of so many rows: arrays by the names
    of the module's arguments, in their order, each with the rows as its first dimension. The module takes any number of
    rows and answers with a tensor, or with a tuple whose first element is judged.
    """

    name: str
    title: str
    kind: str  # what it is for, such as "classifier"
    family: str  # at most two models have the same
    build: Callable[[], nn.Module]
    draw: Callable[[Generator, int], Arrays]
    attention: tuple[int, int] | None = None  # heads and width, for the transformer optimizer of ONNX Runtime
    recurrent: bool = False  # the weights are mostly those of recurrent layers
    dynamic: tuple[str, ...] = ()  # "argument:dimension", exported with a size that may change


def draw_images(side: int, channels: int = 3, name: str = "images") -> Callable[[Generator, int], Arrays]:
    """f32 [rows, channels, side, side]: blobs of all sizes under a little noise, mean about 0 and deviation about 1."""

    def draw(generator: Generator, rows: int) -> Arrays:
        images = 0.2 * generator.standard_normal((rows, channels, side, side))
        for cells in (2, 7, 14):
            coarse = generator.standard_normal((rows, channels, cells, cells))
            at = numpy.arange(side) * cells // side
            images += 0.6 * coarse[:, :, at][:, :, :, at]
        return {name: images.astype(numpy.float32)}

    return draw


def draw_tokens(tokens: int, words: int, name: str = "input_ids") -> Callable[[Generator, int], Arrays]:
    """i64 [rows, tokens], each word as likely as any other."""
    return lambda generator, rows: {name: generator.integers(0, words, (rows, tokens))}


def draw_sound(samples: int, name: str = "sound") -> Callable[[Generator, int], Arrays]:
    """f32 [rows, samples] at 16 kHz: a few tones that swell and fade, with noise."""

    def draw(generator: Generator, rows: int) -> Arrays:
        time = numpy.arange(samples) / 16000
        sound = 0.05 * generator.standard_normal((rows, samples))
        for _ in range(4):
            pitch, phase, pace = (generator.uniform(low, high, (rows, 1)) for low, high in ((80, 3000), (0, 6), (1, 9)))
            sound += 0.3 * numpy.sin(6.2832 * pitch * time + phase) * numpy.sin(pace * time)
        return {name: sound.astype(numpy.float32)}

    return draw


def draw_numbers(*sizes: int, name: str = "features") -> Callable[[Generator, int], Arrays]:
    """f32 [rows, *sizes], normal."""
    return lambda generator, rows: {name: generator.standard_normal((rows, *sizes)).astype(numpy.float32)}
