"""Transforms of images against PyTorch's formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as functional

Transform = Callable[..., np.ndarray]

MEAN = np.array([0.485, 0.456, 0.406]).reshape(3, 1, 1)
DEVIATION = np.array([0.229, 0.224, 0.225]).reshape(3, 1, 1)


def make_bytes(samples: int = 4, channels: int = 3, height: int = 23, width: int = 31) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, (samples, channels, height, width), dtype=np.uint8)


def make_floats(*sizes: int) -> np.ndarray:
    return np.random.default_rng(8).standard_normal(sizes, dtype=np.float32)


def resize(images: np.ndarray, height: int, width: int) -> np.ndarray:
    tensor = torch.from_numpy(images.astype(np.float64))
    return functional.interpolate(tensor, (height, width), mode="bilinear", antialias=True).numpy()


def test_bytes_become_floats_and_imagenet_normalizes(transform: Transform):
    images = make_bytes()
    seen = transform(images, "to_float,normalize")
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen, (images / 255 - MEAN) / DEVIATION, atol=2e-6)


def test_normalize_by_given_constants(transform: Transform):
    images = make_floats(3, 2, 5, 5)
    seen = transform(images, "normalize:mean=0.5/-1:deviation=2/0.25")
    mean, deviation = np.array([0.5, -1]).reshape(2, 1, 1), np.array([2, 0.25]).reshape(2, 1, 1)
    np.testing.assert_allclose(seen, (images - mean) / deviation, atol=2e-6)
    one = transform(images[:, 0], "normalize:mean=0.5:deviation=2")
    np.testing.assert_allclose(one, (images[:, 0] - 0.5) / 2, atol=2e-6)


@pytest.mark.parametrize("sizes", [(11, 8), (23, 31), (50, 70), (7, 90), (1, 1), (224, 5)])
@pytest.mark.parametrize("kind", ["bytes", "floats"])
def test_resize_is_interpolate_with_antialias(transform: Transform, sizes: tuple[int, int], kind: str):
    height, width = sizes
    if kind == "floats":
        images = make_floats(2, 3, 23, 31)
        np.testing.assert_allclose(transform(images, f"resize:{height}x{width}"), resize(images, *sizes), atol=3e-6)
        return
    images = make_bytes(2)
    seen = transform(images, f"resize:{height}x{width},to_float")
    np.testing.assert_allclose(seen, resize(images, *sizes) / 255, atol=2e-6)
    rounded = transform(images, f"resize:{height}x{width}")
    assert rounded.dtype == np.uint8
    # Rounding once: half a step, and what f32 adds where a value lies at the middle.
    assert np.abs(rounded - resize(images, *sizes)).max() <= 0.5 + 1e-4


@pytest.mark.parametrize("degrees", [0, 7.5, -31, 90, 180, -123.4])
def test_rotate_is_a_sampled_grid(transform: Transform, degrees: float):
    images = make_floats(2, 3, 24, 24)
    seen = transform(images, f"rotate:degrees={degrees}/{degrees}")
    angle = torch.deg2rad(torch.tensor(degrees, dtype=torch.float64))
    turn = torch.tensor([[angle.cos(), -angle.sin(), 0], [angle.sin(), angle.cos(), 0]], dtype=torch.float64)
    grid = functional.affine_grid(turn.expand(2, 2, 3), [2, 3, 24, 24], align_corners=False)
    wanted = functional.grid_sample(torch.from_numpy(images.astype(np.float64)), grid, align_corners=False).numpy()
    # A pixel of the rim lies in or out by rounding where the angle is right: compare inside of it then.
    inside = (slice(None), slice(None), slice(1, -1), slice(1, -1)) if degrees % 90 == 0 else ...
    np.testing.assert_allclose(seen[inside], wanted[inside], atol=2e-5)
    if degrees == 90:
        turned = np.rot90(images, 1, axes=(2, 3))
        np.testing.assert_allclose(seen[inside], turned[inside], atol=2e-5)


def test_rotate_of_images_that_are_not_square(transform: Transform):
    images = make_floats(1, 1, 11, 17)
    seen = transform(images, "rotate:degrees=180/180")
    np.testing.assert_allclose(seen[0, 0, 1:-1, 1:-1], images[0, 0, ::-1, ::-1][1:-1, 1:-1], atol=2e-5)


def test_flip_and_center_crop_move_pixels_alone(transform: Transform):
    images = make_bytes()
    np.testing.assert_array_equal(transform(images, "flip"), images[..., ::-1])
    np.testing.assert_array_equal(transform(images, "flip,flip"), images)
    np.testing.assert_array_equal(transform(images, "center_crop:11x12"), images[:, :, 6:17, 10:22])
    np.testing.assert_array_equal(transform(images, "flip,center_crop:11"), images[:, :, 6:17, 10:21][..., ::-1])


def find_crop(image: np.ndarray, padded: np.ndarray) -> tuple[int, int] | None:
    height, width = image.shape[-2:]
    for top in range(padded.shape[-2] - height + 1):
        for left in range(padded.shape[-1] - width + 1):
            if np.array_equal(image, padded[:, top : top + height, left : left + width]):
                return top, left
    return None


def test_random_crop_takes_every_place_alike(transform: Transform):
    images = np.repeat(make_bytes(1, 3, 8, 8) // 2 + 100, 2000, axis=0)
    seen = transform(images, "random_crop:7x8:padding=1")
    padded = np.pad(images[0], ((0, 0), (1, 1), (1, 1)))
    places = [find_crop(image, padded) for image in seen]
    counts = {place: places.count(place) for place in set(places)}
    assert set(counts) == {(top, left) for top in range(4) for left in range(3)}
    expected = 2000 / 12
    # Chi squared with 11 degrees of freedom: beyond 31 once in a thousand seeds, and the seed is fixed.
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 31


def test_padding_is_zero_where_it_stands_in_the_list(transform: Transform):
    images = make_bytes(16, 3, 8, 8)
    before = transform(images, "random_crop:8x8:padding=4,to_float,normalize")
    after = transform(images, "to_float,normalize,random_crop:8x8:padding=4")
    scaled = (images / 255 - MEAN) / DEVIATION
    for sample in range(16):
        zero = np.pad(images[sample], ((0, 0), (4, 4), (4, 4)))
        place = find_crop(np.round((before[sample] * DEVIATION + MEAN) * 255).astype(np.uint8), zero)
        assert place is not None
        rows, columns = slice(place[0], place[0] + 8), slice(place[1], place[1] + 8)
        wanted = np.pad(scaled[sample], ((0, 0), (4, 4), (4, 4)))[:, rows, columns]
        np.testing.assert_allclose(after[sample], wanted, atol=2e-6)


def test_erase_clears_one_rectangle_of_the_wanted_share(transform: Transform):
    images = make_bytes(300, 3, 20, 30) // 2 + 100
    seen = transform(images, "erase")
    erased = 0
    for before, after in zip(images, seen, strict=True):
        rows, columns = np.nonzero((after == 0).all(axis=0))
        if len(rows) == 0:
            np.testing.assert_array_equal(before, after)
            continue
        erased += 1
        height, width = rows.max() - rows.min() + 1, columns.max() - columns.min() + 1
        assert len(rows) == height * width
        # Sides are rounded: half a pixel each.
        assert (height - 0.5) * (width - 0.5) <= 0.33 * 600 and (height + 0.5) * (width + 0.5) >= 0.02 * 600
        assert (height - 0.5) / (width + 0.5) <= 3.3 and (height + 0.5) / (width - 0.5) >= 0.3
        kept = np.ones((20, 30), dtype=bool)
        kept[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] = False
        np.testing.assert_array_equal(before[:, kept], after[:, kept])
    assert erased > 290
    set_to = transform(images, "to_float,erase:value=7,flip")
    assert set(np.unique(set_to[set_to > 1])) == {7}


def test_random_apply_has_its_probability_and_draws_for_itself(transform: Transform):
    images = np.repeat(make_bytes(1, 1, 4, 4), 4000, axis=0)
    seen = transform(images, "random_apply:0.25(flip)")
    flipped = (seen == images[..., ::-1]).all(axis=(1, 2, 3)).sum()
    assert abs(flipped - 1000) < 5 * np.sqrt(4000 * 0.25 * 0.75)
    np.testing.assert_array_equal(transform(images, "random_apply:1(flip,random_apply:1(flip))"), images)
    np.testing.assert_array_equal(transform(images, "random_apply:0(flip)"), images)


def test_draws_depend_on_seed_epoch_and_sample_alone(transform: Transform):
    images = make_bytes(40, 3, 16, 16)
    text = "random_crop:12x12,random_apply:0.5(flip),rotate:10,to_float,normalize,random_apply:0.5(erase)"
    whole = transform(images, text, seed=3, epoch=2)
    np.testing.assert_array_equal(transform(images[:25], text, seed=3, epoch=2), whole[:25])
    assert not np.array_equal(transform(images, text, seed=4, epoch=2), whole)
    assert not np.array_equal(transform(images, text, seed=3, epoch=3), whole)


def test_a_long_list_is_its_parts_one_after_the_other(transform: Transform):
    """Moves that only change where is read give what doing each for itself gives."""
    images = make_bytes(3, 3, 24, 20)
    parts = ["flip", "resize:18x22", "center_crop:16x16", "flip", "rotate:degrees=20/20", "resize:9x12", "to_float", "flip"]
    whole = transform(images, ",".join(parts))
    one_by_one = images.astype(np.float32)
    for part in parts:
        one_by_one = one_by_one / 255 if part == "to_float" else transform(one_by_one, part)
    np.testing.assert_allclose(whole, one_by_one, atol=2e-6)
