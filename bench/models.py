"""Builds the models of the comparison and exports each to .pt2 and .onnx, with the inputs that all engines get.

    models.py DEMO_FOLDER OUT_FOLDER [--only NAME,...] [--batch N]
    models.py --list

In OUT_FOLDER/NAME (NAME_batch8 for eight rows a call):
  weights.pt             the weights, for who runs the module itself
  model.pt2, model.onnx  static sizes, in eval form; the .onnx where the package onnx is installed
  calibration.npz        rows to quantize and optimize with; the inputs are arrays by name
  held_out.npz           other rows, for timing and for the output error; labels too where there are any
  row.npz                the first call of those
  facts.json             what prepare_peers.py wants to know: heads and width of attention, whether layers are recurrent
Fixed seeds; the Fashion-MNIST net and MiniLM have their real weights, and what the others get is real too: images and
sentences, or a cache that the model itself made of sentences. What is there already is left alone.
"""

import argparse
import importlib.util
import json
import pathlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy
import torch
from torch import nn

import nets

HERE = pathlib.Path(__file__).parent
OPSET = 18
CALIBRATION_ROWS, HELD_OUT_ROWS = 32, 32

Arrays = dict[str, numpy.ndarray]


@dataclass
class Built:
    module: nn.Module
    calibration: Arrays
    held_out: Arrays
    inputs: list[str]  # names, in order; other arrays are labels


def load_images(demo: pathlib.Path) -> tuple[Arrays, Arrays]:
    folder = demo / "fashion_mnist"
    with numpy.load(folder / "validation.npz") as file:
        calibration = {name: file[name][:512] for name in ("images", "labels")}
    with numpy.load(folder / "test.npz") as file:
        held_out = {name: file[name][:512] for name in ("images", "labels")}
    return calibration, held_out


def tile_images(demo: pathlib.Path, side: int) -> tuple[Arrays, Arrays]:
    """Colour images of side x side pixels, laid out of Fashion-MNIST's, one colour a third of them."""
    across = -(-side // 28)
    results = []
    for arrays, rows in zip(load_images(demo), (CALIBRATION_ROWS, HELD_OUT_ROWS)):
        images = arrays["images"][:, 0]
        generator = numpy.random.default_rng(rows)
        drawn = images[generator.integers(0, len(images), (rows, 3, across, across))]
        tiled = drawn.transpose(0, 1, 2, 4, 3, 5).reshape(rows, 3, across * 28, across * 28)[:, :, :side, :side]
        results.append({"images": numpy.ascontiguousarray((tiled - 0.45) / 0.25).astype(numpy.float32)})
    return results[0], results[1]


def load_sentences(demo: pathlib.Path, tokens: int) -> tuple[Arrays, Arrays]:
    """Rows of exactly so many tokens, none padded; shorter ones are cut out of those of 128."""
    results = []
    for file_name, rows in (("sentences.npz", CALIBRATION_ROWS), ("held_out.npz", HELD_OUT_ROWS)):
        with numpy.load(demo / "minilm" / file_name) as file:
            ids = file["input_ids"]
        if tokens != ids.shape[1]:
            body = ids[:, 1:-1]
            body = body[:, : body.shape[1] // (tokens - 2) * (tokens - 2)].reshape(-1, tokens - 2)
            first, last = (numpy.full((len(body), 1), ids[0, at]) for at in (0, -1))
            ids = numpy.concatenate([first, body, last], axis=1)
        results.append({"input_ids": numpy.ascontiguousarray(ids[:rows])})
    return results[0], results[1]


def to_tensors(arrays: Arrays, inputs: list[str]) -> list[torch.Tensor]:
    return [torch.from_numpy(arrays[name]) for name in inputs]


def settle_statistics(module: nn.Module, images: numpy.ndarray) -> nn.Module:
    """Batch norms as after training: drawn factors, and the statistics of real images."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = None
            nn.init.uniform_(part.weight, 0.7, 1.3)
            nn.init.normal_(part.bias, 0, 0.1)
    with torch.no_grad():
        module.train()(torch.from_numpy(images))
    return module


def build_net(demo: pathlib.Path) -> Built:
    from safetensors.torch import load_file

    net = nets.make_module("net")
    net.load_state_dict(load_file(demo / "fashion_mnist" / "weights.safetensors"), strict=False)
    return Built(net, *load_images(demo), ["images"])


def build_mlp(demo: pathlib.Path) -> Built:
    calibration, held_out = load_images(demo)
    net = nets.make_module("mlp")
    with numpy.load(demo / "fashion_mnist" / "validation.npz") as file:
        images, labels = torch.from_numpy(file["images"]), torch.from_numpy(file["labels"]).long()
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(5):
        for rows in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[rows]), labels[rows]).backward()
            optimizer.step()
    return Built(net, calibration, held_out, ["images"])


def build_tagger(demo: pathlib.Path) -> Built:
    return Built(nets.make_module("tagger"), *load_sentences(demo, 32), ["input_ids"])


def build_minilm(demo: pathlib.Path, tokens: int) -> Built:
    sys.path.insert(0, str(HERE.parent / "examples" / "sentences"))
    from sentence_encoder import load_encoder

    both = load_sentences(demo, tokens)
    for arrays in both:
        arrays["attention_mask"] = numpy.ones_like(arrays["input_ids"])
    return Built(load_encoder(), *both, ["input_ids", "attention_mask"])


def build_vit(demo: pathlib.Path) -> Built:
    return Built(nets.make_module("vit"), *tile_images(demo, 224), ["images"])


def build_normed(demo: pathlib.Path, name: str, side: int) -> Built:
    """A net of images with batch norms."""
    both = tile_images(demo, side)
    return Built(settle_statistics(nets.make_module(name), both[0]["images"][:16]), *both, ["images"])


def build_gpt2(demo: pathlib.Path, length: int = 128) -> Built:
    net = nets.make_module("gpt2").eval()
    words, layers = net.words.num_embeddings, len(net.blocks)
    names = [f"caches_{index}" for index in range(2 * layers)]  # what torch.export calls them
    heads = net.blocks[0].attention.heads
    size = net.words.embedding_dim // heads
    both = []
    for arrays, rows in zip(load_sentences(demo, 128), (16, 16)):
        ids = torch.from_numpy(arrays["input_ids"][:rows]) % words
        caches = [torch.zeros(rows, heads, 0, size)] * (2 * layers)
        with torch.inference_mode():
            for at in range(length):
                _, *caches = net(ids[:, at : at + 1], *caches)
        both.append({"token": ids[:, :1].numpy(), **{name: cache.numpy() for name, cache in zip(names, caches)}})
    return Built(net, both[0], both[1], ["token", *names])


@dataclass(frozen=True)
class Model:
    name: str
    title: str
    build: Callable[[pathlib.Path], Built]
    recurrent: bool = False  # traced for .onnx: keeps an LSTM one node, which is what the engines are fast at
    attention: tuple[int, int] | None = None  # heads and width


MODELS = [
    Model("net", "Fashion-MNIST net", build_net),
    Model("mlp", "two-layer MLP", build_mlp),
    Model("tagger", "LSTM tagger, 32 tokens", build_tagger, recurrent=True),
    Model("minilm16", "MiniLM, 16 tokens", lambda demo: build_minilm(demo, 16), attention=(12, 384)),
    Model("minilm", "MiniLM, 128 tokens", lambda demo: build_minilm(demo, 128), attention=(12, 384)),
    Model("vit", "ViT-tiny, 224 x 224", build_vit, attention=(3, 192)),
    Model("resnet18", "ResNet-18, 224 x 224", lambda demo: build_normed(demo, "resnet18", 224)),
    Model("mobilenet", "MobileNetV2, 224 x 224", lambda demo: build_normed(demo, "mobilenet", 224)),
    Model("unet", "U-Net, 128 x 128", lambda demo: build_normed(demo, "unet", 128)),
    Model("gpt2", "GPT-2-like step, cache of 128", build_gpt2, attention=(8, 512)),
]


def folder_name(name: str, batch: int) -> str:
    return name if batch == 1 else f"{name}_batch{batch}"


def build_model(model: Model, demo: pathlib.Path) -> Built:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the same numbers whatever the machine, and no waiting where it is busy
    built = model.build(demo)
    built.module.eval()
    return built


def export_onnx(model: Model, built: Built, example: list[torch.Tensor], path: pathlib.Path) -> None:
    names = {"input_names": built.inputs}
    if model.recurrent:
        torch.onnx.export(built.module, tuple(example), path, dynamo=False, opset_version=OPSET, **names)
    else:
        torch.onnx.export(built.module, tuple(example), path, dynamo=True, opset_version=OPSET, external_data=False,
                          verbose=False, **names)


def export_model(model: Model, demo: pathlib.Path, out: pathlib.Path, batch: int) -> None:
    """Does nothing for what is there; files move into their place when they are whole."""
    folder = out / folder_name(model.name, batch)
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"attention": model.attention, "recurrent": model.recurrent}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    has_onnx = importlib.util.find_spec("onnx") is not None
    wanted = ["weights.pt", "model.pt2"] + (["model.onnx"] if has_onnx else [])
    if all((folder / name).exists() for name in wanted):
        return
    print(f"{folder}: exporting", file=sys.stderr, flush=True)
    built = build_model(model, demo)
    numpy.savez(folder / "calibration.npz", **built.calibration)
    numpy.savez(folder / "held_out.npz", **built.held_out)
    numpy.savez(folder / "row.npz", **{name: built.held_out[name][:batch] for name in built.inputs})
    torch.save(built.module.state_dict(), folder / "weights.pt")
    example = [tensor[:batch].clone() for tensor in to_tensors(built.held_out, built.inputs)]
    with torch.no_grad():
        if has_onnx:
            export_onnx(model, built, example, folder / "new.onnx")
            (folder / "new.onnx").rename(folder / "model.onnx")
        torch.export.save(torch.export.export(built.module, tuple(example)), folder / "new.pt2")
        (folder / "new.pt2").rename(folder / "model.pt2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("demo_folder", type=pathlib.Path, nargs="?")
    parser.add_argument("out_folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--list", action="store_true", help="the names of all models")
    parser.add_argument("--only", default=",".join(model.name for model in MODELS))
    parser.add_argument("--batch", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.list:
        print(*(model.name for model in MODELS))
        return
    for name in arguments.only.split(","):
        [model] = [model for model in MODELS if model.name == name] or [None]
        if model is None:
            raise SystemExit(f"There is no model {name}; there are {', '.join(model.name for model in MODELS)}.")
        export_model(model, arguments.demo_folder, arguments.out_folder, arguments.batch)


if __name__ == "__main__":
    main()
