"""Draws the comparison: for each model and precision, how many times as fast as eager PyTorch every engine is.

Plain SVG of its own hand, readable on light and dark pages.
"""

import html
import math
import pathlib

from figures import PRECISIONS

COLORS = {
    "eager": "#8a8f98", "torchscript": "#b58a5a", "inductor": "#d9822b", "autotune": "#e3b341", "ort": "#3f7fd0",
    "ov": "#8559c8", "lissome": "#1a9850",
}
TITLES = {
    "eager": "eager PyTorch", "torchscript": "TorchScript", "inductor": "Inductor", "autotune": "Inductor, max-autotune",
    "ort": "ONNX Runtime", "ov": "OpenVINO", "lissome": "lissome",
}
LEFT, RIGHT, TOP, LINE, GAP, WIDTH = 250, 40, 92, 19, 12, 940


def name_processor() -> str:
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
        return next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown processor"


def family(name: str) -> str:
    return name.split("_")[0]


def draw_text(x: float, y: float, text: str, size: int = 13, anchor: str = "start", weight: str = "normal") -> str:
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" fill="#333">'
            f"{html.escape(text)}</text>")


def draw_mark(x: float, y: float, kind: str, counts: bool, tip: str) -> str:
    style = f'fill="{COLORS[kind]}"' if counts else f'fill="none" stroke="{COLORS[kind]}" stroke-width="1.5"'
    if kind == "lissome":
        points = f"{x:.1f},{y - 7:.1f} {x + 7:.1f},{y:.1f} {x:.1f},{y + 7:.1f} {x - 7:.1f},{y:.1f}"
        return f'<polygon points="{points}" {style}><title>{html.escape(tip)}</title></polygon>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.6" {style}><title>{html.escape(tip)}</title></circle>'


def list_ticks(least: float, most: float) -> list[float]:
    return [tick for tick in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64) if least <= tick <= most]


def draw(results: list[dict]) -> str:
    shown = [result for result in results if "eager" in result["rows"]]
    speeds = [result["rows"]["eager"]["median_ms"] / row["median_ms"] for result in shown for row in result["rows"].values()]
    least, most = min([*speeds, 0.8]) * 0.9, max([*speeds, 2]) * 1.1

    def place(speed: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(speed / least) / math.log(most / least)

    body, y = [], TOP
    for result in shown:
        eager = result["rows"]["eager"]["median_ms"]
        body.append(draw_text(12, y + 14, result["title"], weight="bold"))
        body.append(draw_text(12, y + 31, f"eager {eager:.3g} ms", 11))
        for precision in PRECISIONS:
            rows = {name: row for name, row in result["rows"].items() if row["precision"] == precision}
            middle = y + LINE / 2
            body.append(draw_text(LEFT - 12, middle + 4, precision, 11, "end"))
            body.append(f'<line x1="{LEFT}" y1="{middle}" x2="{WIDTH - RIGHT}" y2="{middle}" stroke="#e4e4e4"/>')
            for name, row in sorted(rows.items(), key=lambda item: item[1]["ours"]):
                speed = eager / row["median_ms"]
                tip = f"{row['title']} {precision}: {row['median_ms']:.3f} ms, {speed:.2f} times eager"
                body.append(draw_mark(place(speed), middle, family(name), row["counts"], tip))
            y += LINE
        y += GAP
    frame = [draw_text(12, 24, "Speed against eager PyTorch, batch 1, two threads", 16, weight="bold"),
             draw_text(12, 44, f"{name_processor()}. Farther right is faster. Hollow: too far from the f32 outputs to count.", 12)]
    x = 12.0
    for kind in dict.fromkeys(family(name) for result in shown for name in result["rows"]):
        frame += [draw_mark(x + 6, 62, kind, True, TITLES[kind]), draw_text(x + 18, 66, TITLES[kind], 12)]
        x += 40 + 6.6 * len(TITLES[kind])
    for tick in list_ticks(least, most):
        at = place(tick)
        frame.append(f'<line x1="{at:.1f}" y1="{TOP - 6}" x2="{at:.1f}" y2="{y - GAP}" stroke="{"#999" if tick == 1 else "#ddd"}"/>')
        frame.append(draw_text(at, y + 6, f"{tick:g}x", 11, "middle"))
    height = y + 18
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">\n'
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>\n' + "\n".join(frame + body) + "\n</svg>\n")
