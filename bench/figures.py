"""What the measured rounds say: medians, ratios with intervals, geometric means, and which claims hold."""

import math
import statistics

import numpy

RESAMPLES = 2000
PRECISIONS = ("f32", "bf16", "int8")
MOST_PEER_ERROR = 2.0  # times our own: an int8 row above it is shown, not counted
LEAST_OF_A_MODEL = 0.97  # an interval wholly below is a loss
QUICK_MILLISECONDS = 1.0  # of eager: below it a model is a small one
GOALS = {"f32": 1.3, "bf16": 1.1, "int8": 1.25}
FILE_SHARE = 1.02  # of the weights in the type that steps read
SPARE_MIB = 15.0  # of the resident set, above the file and the arena
QUICK_GOALS = {"eager": 3.0, "f32": 1.5, "int8": 1.2}

Rounds = list[list[float]]


def summarize(rounds: Rounds) -> dict[str, float]:
    times = sorted(value for values in rounds for value in values)
    return {"median_ms": statistics.median(times), "lowest_tenth_ms": times[len(times) // 10], "runs": len(times)}


def bootstrap_ratio(slow: Rounds, fast: Rounds) -> tuple[float, float]:
    """The 99 % interval of the ratio of medians: whole rounds are drawn again, both engines' together."""
    generator = numpy.random.default_rng(0)
    medians = numpy.array([(statistics.median(a), statistics.median(b)) for a, b in zip(slow, fast)])
    drawn = numpy.median(medians[generator.integers(0, len(medians), (RESAMPLES, len(medians)))], axis=1)
    ratios = numpy.sort(drawn[:, 0] / drawn[:, 1])
    return float(ratios[RESAMPLES // 200]), float(ratios[-RESAMPLES // 200 - 1])


def relative_error(outputs: numpy.ndarray, reference: numpy.ndarray) -> float:
    return float(numpy.linalg.norm(outputs - reference) / numpy.linalg.norm(reference))


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def find_best_peer(rows: dict[str, dict], precision: str) -> str | None:
    """The peer of this precision with the lowest median; int8 rows that are too far from f32 do not count."""
    peers = [name for name, row in rows.items() if row["precision"] == precision and not row["ours"] and row.get("counts")]
    return min(peers, key=lambda name: rows[name]["median_ms"], default=None)


def judge_rows(rows: dict[str, dict], rounds: dict[str, Rounds]) -> dict[str, dict]:
    """Marks the rows that count and compares ours with the best peer of each precision, and f32 with eager."""
    for row in rows.values():
        own = rows.get(f"lissome_{row['precision']}", {}).get("error")
        too_far = row["precision"] == "int8" and own is not None and row["error"] > MOST_PEER_ERROR * own
        row["counts"] = row["ours"] or (math.isfinite(row["error"]) and not too_far)
    compared = {}
    for precision in PRECISIONS:
        ours, peer = f"lissome_{precision}", find_best_peer(rows, precision)
        if ours in rows and peer is not None:
            compared[precision] = compare(rows, rounds, peer, ours)
    fastest = min((name for name, row in rows.items() if row["ours"]), key=lambda name: rows[name]["median_ms"], default=None)
    if "eager" in rows and fastest:
        compared["eager"] = compare(rows, rounds, "eager", fastest)
    return compared


def compare(rows: dict[str, dict], rounds: dict[str, Rounds], peer: str, ours: str) -> dict:
    ratio = rows[peer]["median_ms"] / rows[ours]["median_ms"]
    return {"peer": peer, "ours": ours, "ratio": ratio, "interval_99": bootstrap_ratio(rounds[peer], rounds[ours])}


def is_quick(result: dict) -> bool:
    return result["rows"].get("eager", {}).get("median_ms", math.inf) < QUICK_MILLISECONDS


def summarize_models(results: list[dict]) -> list[dict]:
    """One line a claim: what, the figure, the goal, whether it is met."""
    lines = []

    def add(what: str, figure: float, goal: float, below: bool = False, detail: str = "") -> None:
        met = figure <= goal if below else figure >= goal
        lines.append({"what": what, "figure": figure, "goal": goal, "below": below, "met": met, "detail": detail})

    for precision in PRECISIONS:
        ratios = [result["compared"][precision]["ratio"] for result in results if precision in result["compared"]]
        if ratios:
            add(f"{precision} against the best peer, {len(ratios)} models", geometric_mean(ratios), GOALS[precision])
    quick = [result for result in results if is_quick(result)]
    for kind, goal in QUICK_GOALS.items():
        ratios = [result["compared"][kind]["ratio"] for result in quick if kind in result["compared"]]
        if ratios:
            what = "eager" if kind == "eager" else f"the best {kind} peer"
            add(f"models under 1 ms in eager, against {what}", geometric_mean(ratios), goal)
    lost = [
        f"{result['name']} {precision}"
        for result in results
        for precision in PRECISIONS
        if result["compared"].get(precision, {}).get("interval_99", (0, 9))[1] < LEAST_OF_A_MODEL
    ]
    add(f"rows whose interval lies wholly below {LEAST_OF_A_MODEL}", len(lost), 0, True, ", ".join(lost))
    lines += judge_starts(results)
    lines += judge_files(results)
    return lines


def judge_files(results: list[dict]) -> list[dict]:
    """Our files hold each weight once, forms that timing chose set apart, and a process holds little beside its file."""
    large, heavy = [], []
    for result in results:
        for row in result["rows"].values():
            if "file_bytes" not in row:
                continue
            name = f"{result['name']} {row['precision']}"
            share = (row["file_bytes"] - row["larger_form_bytes"]) / row["weight_bytes"]
            if share > FILE_SHARE:
                large.append(f"{name} {share:.3f}")
            spare = row.get("peak_mib", 0) - (row["file_bytes"] + row["arena_bytes"]) / 2**20
            if spare > SPARE_MIB:
                heavy.append(f"{name} {spare:.1f} MiB")
    return [
        {"what": what, "figure": len(rows), "goal": 0, "below": True, "met": not rows, "detail": ", ".join(rows)}
        for what, rows in (
            (f"files larger than {FILE_SHARE} of their weights", large),
            (f"rows whose resident peak is above file, arena and {SPARE_MIB:.0f} MiB", heavy),
        )
    ]


def judge_starts(results: list[dict]) -> list[dict]:
    """The first answer of two models, and memory of all: of our fastest precision against every peer's."""
    lines = []
    above = []
    for result in results:
        lean = {name: row for name, row in result["rows"].items() if "peak_mib" in row}
        ours = {name: row for name, row in lean.items() if row["ours"]}
        peers = {name: row for name, row in lean.items() if not row["ours"]}
        if not ours or not peers:
            continue
        for name, row in ours.items():
            same = [peer["peak_mib"] for peer in peers.values() if peer["precision"] == row["precision"]]
            if same and row["peak_mib"] >= min(same):
                above.append(f"{result['name']} {row['precision']}")
        limit = {"net": 0.030, "minilm": 0.150}.get(result["name"])
        if limit is not None:
            slowest = max(row["first_answer_s"] for row in ours.values())
            peer = min(row["first_answer_s"] for row in peers.values())
            lines.append({
                "what": f"{result['title']}: seconds from start to first answer, at worst", "figure": slowest, "goal": limit,
                "below": True, "met": slowest < min(limit, peer), "detail": f"the quickest peer {peer:.3f}",
            })
    lines.append({
        "what": "rows whose memory is not below every peer's of their precision", "figure": len(above), "goal": 0,
        "below": True, "met": not above, "detail": ", ".join(above),
    })
    return lines


def format_table(result: dict) -> str:
    head = f"{'':26}{'':6}{'median':>11}{'low tenth':>11}{'error':>10}{'memory':>10}{'first answer':>14}"
    lines = [f"\n{result['title']}, batch {result['batch']}, {result['threads']} threads", head]
    for name, row in result["rows"].items():
        text = f"{row['title']:26}{row['precision']:6}{row['median_ms']:8.3f} ms{row['lowest_tenth_ms']:8.3f} ms"
        text += f"{row['error']:10.1e}"
        if "peak_mib" in row:
            text += f"{row['peak_mib']:6.0f} MiB{row['first_answer_s']:12.3f} s"
        lines.append(text + ("" if row["counts"] else "  too far from f32: not counted"))
    lines += [f"{row['title']:26}{row['precision']:6} left out: {row['missing']}" for row in result["missing"]]
    for kind, ratio in result["compared"].items():
        low, high = ratio["interval_99"]
        peer = result["rows"][ratio["peer"]]["title"]
        ours = f"lissome {result['rows'][ratio['ours']]['precision']}"
        lines.append(f"  {ours:13} {ratio['ratio']:6.2f}x [{low:.2f}, {high:.2f}] against {peer}")
    return "\n".join(lines)


def format_claims(claims: list[dict]) -> str:
    lines = []
    for claim in claims:
        sign = "at most" if claim["below"] else "at least"
        detail = f" ({claim['detail']})" if claim["detail"] else ""
        verdict = "met" if claim["met"] else "NOT MET"
        lines.append(f"{claim['what']}: {claim['figure']:.4g}, {sign} {claim['goal']}: {verdict}{detail}")
    return "\n".join(lines)
