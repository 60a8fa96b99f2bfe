"""Networks for images whose pieces look at each other: by attention, or in the mixer by products over all patches.

All but the mixer are built by `transformers` from the published sizes, with drawn weights.
"""

from collections.abc import Callable

import torch
import transformers
from torch import nn
from transformers.models.levit.modeling_levit import LevitClassificationLayer, MLPLayerWithBN

from field.model import FieldModel, draw_images

CLASSES = 1000


class Logits(nn.Module):
    """A network of `transformers` that takes images -> its logits."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.network(images).logits


class Detections(Logits):
    """images -> scores of the classes f32 [N, 100, 92] and boxes f32 [N, 100, 4]."""

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.network(images)
        return found.logits, found.pred_boxes


class MixerMlp(nn.Sequential):
    def __init__(self, width: int, hidden: int):
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class MixerBlock(nn.Module):
    """x [N, patches, width] -> the same: first across patches, then across channels."""

    def __init__(self, patches: int, width: int, hidden_patches: int, hidden_width: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across_patches = MixerMlp(patches, hidden_patches)
        self.across_channels = MixerMlp(width, hidden_width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.across_patches(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.across_channels(self.norm2(x))


class MlpMixer(nn.Module):
    """Mixer-S/16 (Tolstikhin et al., 2021): images f32 [N, 3, 224, 224] -> logits f32 [N, 1000]."""

    def __init__(self, image: int = 224, patch: int = 16, width: int = 512, layers: int = 8):
        super().__init__()
        self.embed = nn.Conv2d(3, width, patch, patch)
        patches = (image // patch) ** 2
        self.blocks = nn.Sequential(*(MixerBlock(patches, width, width // 2, 4 * width) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.embed(images).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


def draw_zeros(module: nn.Module) -> nn.Module:
    """`module`, where what starts as all zeros (biases, positions, tokens) is small and normal, as if trained: else
    runtimes could drop it, and tokens without a position would be equal."""
    with torch.no_grad():
        for parameter in module.parameters():
            if not parameter.any():
                nn.init.normal_(parameter, 0, 0.02)
    return module


def build_deit_small() -> nn.Module:
    """DeiT-S without the distillation token, which is a plain ViT (Touvron et al., 2020)."""
    config = transformers.ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536, num_labels=CLASSES)
    return Logits(draw_zeros(transformers.ViTForImageClassification(config)))


def build_swin_tiny() -> nn.Module:
    """Swin-T (Liu et al., 2021), whose sizes are the defaults."""
    config = transformers.SwinConfig(num_labels=CLASSES)
    return Logits(draw_zeros(transformers.SwinForImageClassification(config)))


def build_mobilevit_small() -> nn.Module:
    """MobileViT-S (Mehta and Rastegari, 2021), whose sizes are the defaults."""
    config = transformers.MobileViTConfig(num_labels=CLASSES)
    return Logits(draw_zeros(transformers.MobileViTForImageClassification(config)))


def fold_norms(levit: nn.Module) -> None:
    """Drawn products with a bias in place of products and batch norms, as the authors fold them before they deploy.

    Left to follow drawn weights, those norms enlarge each rounding threefold after each attention. With a factor above
    0.8, the attention of the later layers would sharpen until the answer hung on the last bit.
    """
    for part in levit.modules():
        if isinstance(part, MLPLayerWithBN):
            part.linear = nn.Linear(part.linear.in_features, part.linear.out_features)
            nn.init.normal_(part.linear.weight, 0, 0.8 * part.linear.in_features**-0.5)
        if isinstance(part, (MLPLayerWithBN, LevitClassificationLayer)):
            part.batch_norm = nn.Identity()


def build_levit() -> nn.Module:
    """LeViT-128S (Graham et al., 2021), without the second head that only training needs."""
    config = transformers.LevitConfig(num_attention_heads=(4, 6, 8), depths=(2, 3, 4), num_labels=CLASSES)
    levit = transformers.LevitForImageClassification(config)
    fold_norms(levit)
    return Logits(draw_zeros(levit))


def build_yolos_tiny() -> nn.Module:
    """YOLOS-Ti (Fang et al., 2021): a ViT with 100 tokens for what it detects, of the 91 classes of COCO or nothing."""
    config = transformers.YolosConfig(
        hidden_size=192, num_attention_heads=3, intermediate_size=768, image_size=(256, 256),
        use_mid_position_embeddings=False, num_labels=91, initializer_range=0.06,
    )
    return Detections(draw_zeros(transformers.YolosForObjectDetection(config)))


def build_segformer_b0() -> nn.Module:
    """SegFormer-B0 (Xie et al., 2021), whose sizes are the defaults: the classes of ADE20K at a quarter of the side."""
    config = transformers.SegformerConfig(num_labels=150)
    return Logits(draw_zeros(transformers.SegformerForSemanticSegmentation(config)))


# Where heads and width differ by stage, the optimizer of ONNX Runtime is asked to find them: 0.
def describe(name: str, title: str, kind: str, family: str, build: Callable[[], nn.Module], side: int,
             attention: tuple[int, int] | None = (0, 0)) -> FieldModel:
    return FieldModel(name, f"{title}, {side} x {side}", kind, family, build, draw_images(side), attention)


MODELS = [
    describe("deit_small", "DeiT-S", "classifier", "vit", build_deit_small, 224, (6, 384)),
    describe("swin_tiny", "Swin-T", "classifier", "swin", build_swin_tiny, 224),
    describe("mobilevit_small", "MobileViT-S", "classifier", "mobilevit", build_mobilevit_small, 256),
    describe("mlp_mixer", "Mixer-S/16", "classifier", "mixer", MlpMixer, 224, None),
    describe("levit", "LeViT-128S", "classifier", "levit", build_levit, 224),
    describe("yolos_tiny", "YOLOS-Ti", "detector", "yolos", build_yolos_tiny, 256, (3, 192)),
    describe("segformer_b0", "SegFormer-B0", "segmenter", "segformer", build_segformer_b0, 256),
]
