"""The arithmetic of the comparison with other engines, on rounds whose answer is known."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import figures
import picture


def make_rounds(milliseconds: float, seed: int) -> figures.Rounds:
    generator = np.random.default_rng(seed)
    return [list(milliseconds * generator.uniform(0.99, 1.01, 20)) for _ in range(20)]


def make_result(times: dict[str, float], errors: dict[str, float]) -> dict:
    rows, rounds = {}, {}
    for seed, (name, milliseconds) in enumerate(times.items()):
        precision = name.split("_")[1] if "_" in name else "f32"
        rounds[name] = make_rounds(milliseconds, seed)
        facts = {"title": name, "precision": precision, "ours": name.startswith("lissome"), "error": errors.get(name, 0.0)}
        rows[name] = facts | figures.summarize(rounds[name])
    compared = figures.judge_rows(rows, rounds)
    result = {"name": "net", "title": "net", "batch": 1, "threads": 2, "rows": rows, "compared": compared, "missing": []}
    return result


TIMES = {"eager": 8.0, "ort_f32": 3.0, "ov_f32": 4.0, "lissome_f32": 2.0, "ort_int8": 2.0, "ov_int8": 0.5, "lissome_int8": 1.0}


def test_the_fastest_peer_that_counts():
    result = make_result(TIMES, {"ort_int8": 0.019, "ov_int8": 0.021, "lissome_int8": 0.01})
    assert result["compared"]["f32"]["peer"] == "ort_f32"
    assert result["compared"]["int8"]["peer"] == "ort_int8", "an error of more than twice ours does not count"
    assert not result["rows"]["ov_int8"]["counts"] and result["rows"]["ort_int8"]["counts"]
    assert "ov_int8" in figures.format_table(result) and "not counted" in figures.format_table(result)
    near = make_result(TIMES, {"ort_int8": 0.019, "ov_int8": 0.019, "lissome_int8": 0.01})
    assert near["compared"]["int8"]["peer"] == "ov_int8"


def test_outputs_that_are_not_finite_do_not_count():
    assert make_result(TIMES, {"ort_f32": float("nan")})["compared"]["f32"]["peer"] == "ov_f32"


def test_ratio_and_interval():
    ratio = make_result(TIMES, {})["compared"]["f32"]
    low, high = ratio["interval_99"]
    assert low < ratio["ratio"] < high
    assert ratio["ratio"] == pytest.approx(1.5, rel=0.01) and high - low < 0.03
    assert make_result(TIMES, {})["compared"]["eager"]["ratio"] == pytest.approx(8, rel=0.02), "by our fastest"


def test_claims_are_geometric_means():
    slow = dict.fromkeys(TIMES, 1.0) | {"lissome_f32": 2.0}
    claims = figures.summarize_models([make_result(TIMES, {}), make_result(slow, {})])
    by_name = {claim["what"]: claim for claim in claims}
    f32 = by_name["f32 against the best peer, 2 models"]
    assert f32["figure"] == pytest.approx((1.5 * 0.5) ** 0.5, rel=0.02) and not f32["met"]
    lost = by_name["rows whose interval lies wholly below 0.97"]
    assert lost["figure"] == 2 and not lost["met"], "the slow model's f32, and int8 against a peer of half the time"


def test_files_hold_each_weight_once():
    result = make_result(TIMES, {})
    facts = {"file_bytes": 101 << 20, "weight_bytes": 100 << 20, "larger_form_bytes": 0, "arena_bytes": 1 << 20}
    for row in result["rows"].values():
        row |= (facts | {"peak_mib": 116.9}) if row["ours"] else {}
    assert all(claim["met"] for claim in figures.judge_files([result]))
    result["rows"]["lissome_f32"] |= {"file_bytes": 103 << 20, "larger_form_bytes": 2 << 20}
    assert all(claim["met"] for claim in figures.judge_files([result])), "what timing chose is set apart"
    result["rows"]["lissome_f32"]["larger_form_bytes"] = 0
    result["rows"]["lissome_int8"]["peak_mib"] = 117.1
    large, heavy = figures.judge_files([result])
    assert not large["met"] and large["detail"] == "net f32 1.030"
    assert not heavy["met"] and heavy["figure"] == 1 and "net int8 15.1 MiB" in heavy["detail"]


def test_memory_is_held_against_the_same_precision():
    result = make_result(TIMES, {})
    for name, row in result["rows"].items():
        row |= {"peak_mib": 10.0 if row["ours"] else 50.0, "first_answer_s": 0.01 if row["ours"] else 0.4}
    assert all(claim["met"] for claim in figures.judge_starts([result]))
    result["rows"]["lissome_f32"] |= {"peak_mib": 60.0, "first_answer_s": 0.02}
    claims = figures.judge_starts([result])
    assert [claim["met"] for claim in claims] == [True, False] and claims[1]["detail"] == "net f32"
    result["rows"]["lissome_f32"]["first_answer_s"] = 0.031
    assert not figures.judge_starts([result])[0]["met"]


def test_picture_shows_every_row():
    result = make_result(TIMES, {})
    tree = ElementTree.fromstring(picture.draw([result]))
    tips = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("times eager" in tip for tip in tips) == len(TIMES)
