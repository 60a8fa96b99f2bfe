# Interpolation, grids, and rearrangements of pixels.

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, apply, call


class Affine(nn.Module):
    """Spatial transformer: parameters of an affine map from the image itself."""

    def __init__(self):
        super().__init__()
        self.locate = nn.Linear(3 * 8 * 8, 6)
        nn.init.normal_(self.locate.weight, std=0.02)
        self.locate.bias.data = torch.tensor([1.0, 0, 0, 0, 1, 0])

    def forward(self, x):
        grid = F.affine_grid(self.locate(x.flatten(1)).view(-1, 2, 3), x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)


class UpsampleLike(nn.Module):
    """Feature pyramid: resize to the size of another tensor."""

    def forward(self, small, large):
        return F.interpolate(small, size=large.shape[-2:], mode="nearest") + large


def resize(**options):
    return apply(lambda x: F.interpolate(x, **options))


def images(batch=2, channels=3, height=6, width=7):
    return call(torch.randn(batch, channels, height, width))


def sample(**options):
    return apply(lambda x, grid: F.grid_sample(x, grid, **options))


def image_and_grid():
    return call(torch.randn(2, 3, 6, 7), torch.rand(2, 5, 4, 2) * 2.4 - 1.2)


CASES = [
    Case("interpolate_nearest", resize(scale_factor=2), images),
    Case("interpolate_nearest_exact", resize(size=(9, 4), mode="nearest-exact"), images),
    Case("interpolate_nearest1d", resize(scale_factor=1.7), lambda: call(torch.randn(2, 3, 8))),
    Case("interpolate_linear", resize(size=13, mode="linear"), lambda: call(torch.randn(2, 3, 8))),
    Case("interpolate_bilinear", resize(scale_factor=(1.5, 2.0), mode="bilinear"), images),
    Case("interpolate_bilinear_corners", resize(size=(11, 12), mode="bilinear", align_corners=True), images),
    Case("interpolate_bilinear_dynamic", resize(scale_factor=2, mode="bilinear"), lambda h, w: images(2, 3, h, w),
         variants=((6, 7), (2, 2), (15, 9)),
         dynamic={"args": ({2: Dim("height", min=2, max=32), 3: Dim("width", min=2, max=32)},)}),
    Case("interpolate_like_dynamic", UpsampleLike, lambda n: call(torch.randn(1, 2, 3, 3), torch.randn(1, 2, n, n + 1)),
         variants=((6,), (2,), (13,)),
         dynamic={"small": None, "large": {2: Dim("side", min=2, max=32), 3: Dim("side", min=2, max=32) + 1}}),
    Case("interpolate_bicubic", resize(scale_factor=2, mode="bicubic"), images),
    Case("interpolate_bilinear_antialias", resize(size=(3, 4), mode="bilinear", antialias=True), images),
    Case("interpolate_bicubic_antialias", resize(size=(3, 4), mode="bicubic", antialias=True), images),
    Case("interpolate_trilinear", resize(scale_factor=2, mode="trilinear"), lambda: call(torch.randn(1, 2, 3, 4, 5))),
    Case("interpolate_area", resize(size=(3, 5), mode="area"), images),
    Case("upsample_module", lambda: nn.Upsample(scale_factor=3, mode="nearest"), images),
    Case("grid_sample_bilinear", sample(align_corners=False), image_and_grid),
    Case("grid_sample_nearest_border", sample(mode="nearest", padding_mode="border", align_corners=True), image_and_grid),
    Case("grid_sample_bicubic_reflection", sample(mode="bicubic", padding_mode="reflection", align_corners=False),
         image_and_grid),
    Case("grid_sample_3d", sample(align_corners=False),
         lambda: call(torch.randn(1, 2, 4, 5, 6), torch.rand(1, 3, 3, 3, 3) * 2 - 1)),
    Case("spatial_transformer", Affine, lambda: images(2, 3, 8, 8), f64_limit=1e-3),
    Case("pixel_shuffle", lambda: nn.PixelShuffle(2), lambda: images(2, 8)),
    Case("pixel_unshuffle", lambda: nn.PixelUnshuffle(3), lambda: images(2, 2, 6, 9)),
    Case("channel_shuffle", lambda: nn.ChannelShuffle(3), lambda: images(2, 6)),
    Case("unfold", lambda: nn.Unfold(3, padding=1, stride=2), images),
    Case("fold", lambda: nn.Fold((6, 7), 2), lambda: call(torch.randn(2, 12, 30))),
]
