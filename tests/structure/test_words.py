"""The words, the folders and the length of documents: what reviews would have to say again and again."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_FILES = 60  # of a folder, tests counted
MOST_COLUMNS = 120
# Words of our own for what has a name in the field, and that name.
RETIRED = {
    "fold_columns": "col2im",
    "table_u8": "lut_u8",
    "adam_bytes": "adam_8bit",
    "class_loss": "nll_loss or cross_entropy",
    "max_pool_places": "max_pool_indices",
    "products_f32_amx": "gemm_f32_amx",
    "race_steps": "compare_step_times",
    "detour": "spill",
    "thirds_amx": "bf16x3_amx",
    "ThirdShare": "Bf16x3Share",
    "TeamScope": "ThreadPoolScope",
    "made_again": "recomputed",
    "all_told": "all_predicted",
    "drop_values": "recompute_values",
    "anneal_drops": "anneal_recompute",
}
# Where an old name is read or written for one version more.
OLD_NAMES = {
    "lissome/runtime/plan/plan_io.cpp", "lissome/runtime/plan/plan_io_test.cpp", "lissome/python/training.py",
    "lissome/python/binding_train.cpp",
}


def list_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def test_no_folder_is_crowded():
    counts: dict[str, int] = {}
    for name in list_files():
        folder = str(Path(name).parent)
        counts[folder] = counts.get(folder, 0) + 1
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}


def test_retired_words_are_gone_from_code():
    found = []
    for name in list_files():
        if not name.endswith((".cpp", ".h", ".py", ".pyi", ".cmake")) or name in OLD_NAMES or "tests/" in name:
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        found += [f"{name}: {word}, say {better}" for word, better in RETIRED.items() if word in text]
    assert found == []


def test_lines_of_the_sources_fit_120_columns():
    long = []
    for name in list_files():
        if not name.endswith((".cpp", ".h", ".cu")) or name.endswith("/style.h"):  # a style sheet
            continue
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        long += [f"{name}:{i}" for i, line in enumerate(lines, 1) if len(line) > MOST_COLUMNS]
    assert long == []


def test_the_design_and_the_glossary_are_short():
    assert len((ROOT / "docs" / "design.md").read_text(encoding="utf-8").split()) <= 1500
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^- \*\*(.+?)\*\*", glossary, re.MULTILINE)
    assert 20 <= len(words) <= 40 and len(set(words)) == len(words)


def test_what_contributing_names_is_there():
    """`x` and <family> stand for a name of one's own: then their folder must be there."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:lissome|tests|cmake|docs|tools)/[^`\s]*)`", text)
    assert len(paths) > 20
    missing = []
    for path in paths:
        named = path.replace("<family>", "gemm").replace("<group>", "quantized").replace("<module>", "pass")
        has_placeholder = re.search(r"(^|[/_])x(_|\.|$)", named)
        place = (ROOT / named).parent if has_placeholder else ROOT / named
        if not place.exists():
            missing.append(path)
    assert missing == []


def test_the_recipes_match_their_examples():
    """A recipe's files, with the name of its example in the place of `x`, are there and name it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipes = re.findall(r"^## Adding .*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    examples = {}
    for recipe in recipes:
        if found := re.search(r"^Example: `(\w+)`(?: in the family `(\w+)`)?", recipe, re.MULTILINE):
            name, family = found[1], found[2] or ""
            stem = name.split("_", 1)[-1] if re.search(r"[a-z]_x\.cpp", recipe) and "_" in name else name
            examples[name] = (stem, family, re.findall(r"^\| `(\S+?)`(?:, `(\S+?)`)? \|", recipe, re.MULTILINE))
    assert set(examples) == {"fuse_silu", "split_joined", "topk", "profile"}
    faults = []
    for name, (stem, family, rows) in examples.items():
        for path in filter(None, (path for row in rows for path in row)):
            named = re.sub(r"(?<=[/_])x(?=[_.])", stem, path.replace("<family>", family))
            named = named if "/" in named else f"{rows[0][0].rsplit('/', 1)[0]}/{named}"
            place = ROOT / named
            if not place.exists():
                faults.append(f"{name}: {named} is missing")
            elif place.is_file() and name not in named + place.read_text(encoding="utf-8") and "flag" not in named:
                faults.append(f"{name}: {named} does not name it")
    assert faults == []


def test_a_kernel_is_named_by_its_recipe_alone():
    named = [name for name in list_files() if name.startswith("lissome/") and name.endswith((".h", ".cpp", ".txt"))
             and re.search(r"\btopk\b|\w*_topk\b|\bTopk", (ROOT / name).read_text(encoding="utf-8"))]
    compression = ("lissome/train/loop/", "lissome/cli/train_flags")  # --compress topk, which is no kernel
    others = [name for name in named if "/sort/" not in name and "lissome/program/" not in name and not name.startswith(compression)]
    assert len(named) - len(others) >= 6 and others == []


def test_links_of_the_documents_lead_somewhere():
    broken = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        prose = re.sub(r"```.*?```|^    .*$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", prose):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []
