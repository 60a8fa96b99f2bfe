"""How ResNet-18's convolutions stand against this machine's limit, measured in the same run.

The floor of a layer is its direct multiplications over the rate of f32 products that `lissome peaks` measures. Winograd
needs fewer multiplications, so a good kernel stays below 1.
"""

import json
import pathlib
import subprocess

# Every convolution of 3x3 and stride 1 multiplies as often: half the side, twice the channels.
PRODUCTS_OF_A_LAYER = 56 * 56 * 64 * 64 * 9
PLAIN_LAYERS = [f"blocks.{block}.conv2" for block in range(8)] + [f"blocks.{block}.conv1" for block in (0, 1, 3, 5, 7)]
STRIDED_LAYERS = 3  # half the multiplications each
PRODUCTS_OF_THE_REST = 112 * 112 * 64 * 3 * 49 + 3 * (28 * 28 * 64 * 128) + 512 * 1000
MOST_OF_LAYERS, MOST_OF_NET = 0.7, 0.85


def ask_json(program: pathlib.Path, *arguments: str) -> dict:
    done = subprocess.run([str(program), *arguments, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def judge_convolutions(program: pathlib.Path, folder: pathlib.Path, net_milliseconds: float, threads: int) -> list[dict]:
    """Claims, as figures.summarize_models makes them."""
    peaks = ask_json(program, "peaks", "--cache", "none")["result"]["peaks"]
    rate = next(row["f32_products"] for row in peaks if row["threads"] == threads)
    model, row = str(folder / "f32.lissome"), str(folder / "row.npz")
    profile = ask_json(program, "profile", model, "--input", row, "--runs", "40", "--threads", str(threads))
    nodes = next(table for table in profile["tables"] if table["title"] == "Nodes")
    columns = [column["name"] for column in nodes["columns"]]
    module, time = columns.index("module"), columns.index("time")
    seconds = sum(node[time] for node in nodes["rows"] if node[module] in PLAIN_LAYERS)
    layers = len(PLAIN_LAYERS) * PRODUCTS_OF_A_LAYER
    net = layers + STRIDED_LAYERS * PRODUCTS_OF_A_LAYER // 2 + PRODUCTS_OF_THE_REST
    detail = f"{rate / 1e9:.0f} billion products a second"
    claims = []
    for what, share, goal in (
        ("ResNet-18 f32: its 13 plain 3x3 convolutions over their floor", seconds * rate / layers, MOST_OF_LAYERS),
        ("ResNet-18 f32: the whole net over its floor", net_milliseconds / 1e3 * rate / net, MOST_OF_NET),
    ):
        claims.append({"what": what, "figure": share, "goal": goal, "below": True, "met": share <= goal, "detail": detail})
    return claims
