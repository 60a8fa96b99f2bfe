"""The gate for programs, from each kind of file: an op that is not on the list, a program that does not fit its step, a
value that a kernel would take at its word. Each hostile file is the twin of one that runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from plan_files import check_refused, make_plan, program_of, run, run_plan, write_file, write_plan

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
NOT_LISTED = "is not on the list of ops that a model file may call"

# A node of each class of ops that is denied, as program text over %x: f32[4] and %i: i64[4].
DENIED = {
    "reads a file": '%y: f32[4] = aten::from_file("ran", true, 4)',
    "reads a file into an argument": '%y: f32[4] = aten::from_file.out("ran", true, 4, out=%x)',
    "prints": '%y: f32[4] = aten::relu(%x)\naten::_print("hello")',
    "resizes": "%y: f32[4] = aten::resize_(%x, [4096])",
    "re-points storage": "%y: f32[4] = aten::set_.source_Tensor(%x, %x)",
    "changes strides": "%y: f32[4] = aten::as_strided_(%x, [4], [1])",
    "writes into an argument of another size": "%y: f32[4] = aten::add.out(%x, %x, out=%x)",
    "is a gradient that trusts indices":
        "%y: f32[4] = aten::embedding_dense_backward(%x, %i, 4, -1, false)",
    "leaves out checks": "%y = aten::_sparse_coo_tensor_unsafe(%i, %x, [4])",
    "is nested": "%y = aten::_nested_view_from_buffer(%x, %i, %i, %i)",
    "is another device's": "%y: f32[4] = aten::pin_memory(%x)",
    "is an optimizer's": "%y: f32[4] = aten::relu(%x)\naten::_foreach_add_.Scalar([%x], 1)",
    "is a test of PyTorch's": "%y = aten::_test_check_tensor(%x)",
}


def test_the_twins_run(program: Path, data: Path) -> None:
    result = run_plan(program, make_plan(program_of("%y: f32[4] = aten::relu(%x)")), data)
    assert result.returncode == 0, result.stderr
    model = write_file(data.parent / "p.lissome", {"program.txt": program_of("%y: f32[4] = aten::relu(%x)")})
    result = run(program, "inspect", model, folder=data.parent)
    assert result.returncode == 0, result.stderr


def test_no_text_of_a_file_moves_the_cursor(program: Path, data: Path) -> None:
    hostile = "\x1b]0;title\x07\x1b[2Jgone"
    plan = make_plan(program_of("%y: f32[4] = aten::relu(%x)"),
                     machine={"processor": hostile, "features": hostile, "threads": 1})
    result = run_plan(program, plan, data)
    assert result.returncode == 0 and "gone" in result.stderr, result.stderr
    plan["values"][2]["name"], plan["outputs"][0]["value"] = hostile, 7
    plan["values"][2]["storage"] = "arena"
    broken = run_plan(program, plan, data)
    assert broken.returncode == 4 and "gone" in broken.stderr, broken.stderr
    plan = make_plan(program_of("%y: f32[4] = aten::relu(%x)"),
                     machine={"processor": hostile, "features": hostile, "threads": 1})
    plan["steps"][0]["origins"][0][0] = hostile
    model = write_plan(data.parent / "model.lissome", plan)
    shown = run(program, "inspect", model, folder=data.parent)
    audited = run(program, "audit", model, "--expect", "dtype=int8", folder=data.parent)
    assert "gone" in shown.stdout and "gone" in audited.stdout, shown.stderr + audited.stderr
    for text in (result.stdout, result.stderr, broken.stderr, shown.stdout, audited.stdout):
        assert not any(ord(letter) < 32 and letter != "\n" for letter in text), repr(text)


@pytest.mark.parametrize("name", DENIED)
def test_a_finished_model_calls_no_denied_op(name: str, program: Path, data: Path) -> None:
    op = re.findall(r"aten::[\w.]+", DENIED[name])[-1]
    check_refused(run_plan(program, make_plan(program_of(DENIED[name])), data), op, NOT_LISTED)
    assert not (data.parent / "ran").exists()


def test_a_saved_program_calls_no_denied_op(program: Path, data: Path) -> None:
    """All of them, and inside of a body too, with the module path and line of the node."""
    for name, node in DENIED.items():
        op = re.findall(r"aten::[\w.]+", node)[-1]
        model = write_file(data.parent / "p.lissome", {"program.txt": program_of(node)})
        check_refused(run(program, "inspect", model, folder=data.parent), op, NOT_LISTED)
        assert not (data.parent / "ran").exists(), name
    body = ('%y: f32[4] = lissome::region("grad=0", %x) {\n  input %x: f32[4]\n'
            '  %z: f32[4] = aten::from_file("ran", true, 4)\n  return %z\n}')
    model = write_file(data.parent / "p.lissome", {"program.txt": program_of(body)})
    check_refused(run(program, "inspect", model, folder=data.parent), "aten::from_file", NOT_LISTED)


X = "input %x: f32[4]\n"
XI = X + "input %i: i64[4]\n"
# Programs and plans that do not fit together: the message, the program, and what the plan says otherwise.
MISFITS = {
    "a literal": ("returns a literal or a list", XI + "return 3\n", {}),
    "a list": ("returns a literal or a list", XI + "%y: f32[4] = aten::relu(%x)\nreturn [%y, %y]\n", {}),
    "a list for a tensor": ("the plan says", XI + "%y: list = aten::unbind.int(%x)\nreturn %y\n", {}),
    "a number for a tensor": ("the plan says", XI + "%y: int = aten::sym_size.int(%x, 0)\nreturn %y\n", {}),
    "another dtype": ("the plan says", XI + "%y: f64[4] = aten::to.dtype(%x, f64)\nreturn %y\n", {}),
    "other sizes": ("the plan says", XI + "%y: f32[8] = aten::cat([%x, %x])\nreturn %y\n", {}),
    "a weight that the plan lacks": ("has no tensor in the file",
                                     "parameter @w: f32[1099511627776]\n" + XI +
                                     "%y: f32[4] = aten::relu(%x)\nreturn %y\n", {}),
    "an operand too few": ("operands", X + "%y: f32[4] = aten::relu(%x)\nreturn %y\n", {}),
    "two results for one": ("results", XI + "%y: f32[4] = aten::relu(%x)\nreturn %y, %y\n", {}),
    "an absent operand": ("operand", XI + "%y: f32[4] = aten::relu(%x)\nreturn %y\n", {"operands": [0, -1]}),
    "a write of its own": ("writes state", XI + "%y: f32[4] = aten::relu(%x)\n%x <- %y\nreturn %y\n", {}),
    "counts of a scan": ("number of values", XI +
                         "%y: f32[4] = lissome::scan(-1, 1, false, %x) {\n  input %a: f32[...]\n"
                         "  %b: f32[...] = aten::relu(%a)\n  return %b\n}\nreturn %y\n", {}),
    "mode of a region": ("its mode", XI + '%y: f32[4] = lissome::region("vmap=error;0,0;0", %x) {\n'
                         "  input %a: f32[4]\n  %b: f32[4] = aten::relu(%a)\n  return %b\n}\nreturn %y\n", {}),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_program_fits_its_step(name: str, program: Path, data: Path) -> None:
    words, text, changes = MISFITS[name]
    plan = make_plan(text)
    plan["steps"][0].update(changes)
    check_refused(run_plan(program, plan, data), words)


# Values that a kernel of ATen's would take at its word: a call that runs, and one that must be refused.
VALUES = {
    "offsets of a bag": (
        "%o: i64[2] = aten::slice.Tensor(%i, 0, {}, {})\n"
        "%t: f32[4, 1] = aten::unsqueeze(%x, 1)\n"
        "%y: f32[2, 1], %a, %b, %c = aten::embedding_bag(%t, %i, %o)", ("0", "2"), ("1", "3")),
    "segments": ('%y: f32[4] = aten::segment_reduce(%x, "sum", offsets=%i, unsafe={})', ("false",), ("true",)),
    "a scale of resampling": (
        "%t: f32[1, 1, 4] = aten::view(%x, [1, 1, 4])\n%y: f32[1, 1, 8] = aten::upsample_nearest1d(%t, [8], {})",
        ("2.0",), ("1e-300",)),
    "a dimension of a transform": (
        "%y: c64[3] = aten::_fft_r2c(%x, [{}], 0, true)", ("0",), ("2147483647",)),
    "a dtype": ("%y: f32[4] = aten::to.dtype(%x, {})", ("6",), ("2147483647",)),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_checked_before_the_call(name: str, program: Path, data: Path) -> None:
    text, good, bad = VALUES[name]
    for words, code in ((good, 0), (bad, 4)):
        body = program_of(text.format(*words))
        plan = make_plan(body)
        plan["values"][2] = {"name": "y", "storage": "held"}
        result = run_plan(program, plan, data)
        assert result.returncode == code, (words, result.stderr)


def test_no_reader_goes_round_the_gate() -> None:
    """Whoever makes a program out of text or of a file, apart from tests, asks for its judgement."""
    readers = []
    for path in sorted((ROOT / "lissome").rglob("*.cpp")):
        if path.name.endswith("_test.cpp"):
            continue
        text = path.read_text()
        if re.search(r"\b(parse_program|parse_complete_program|parse_program_with|(?<!const )GraphReader graph|import_recorded)\(", text):
            readers.append(path.relative_to(ROOT / "lissome").as_posix())
            if path.name not in ("import_recorded.cpp", "differentiate.cpp"):  # in memory: a model that was judged
                assert re.search(r"\b(judge_program|parse_judged_program)\(", text), path
    assert readers == ["program/import/import_module.cpp", "program/import/import_pt2.cpp",
                       "program/import/import_recorded.cpp", "program/interpret/differentiate.cpp",
                       "program/text/parse.cpp", "program/text/save.cpp", "reference/judged_steps.cpp"]


def test_every_op_of_the_table_is_there() -> None:
    """The table holds what the tool proposes, sorted, each once."""
    result = subprocess.run([sys.executable, ROOT / "tools" / "list_allowed_ops.py", "--check"], capture_output=True,
                            text=True, check=False)
    assert result.returncode == 0, result.stderr


# ---- ops of a user's own --------------------------------------------------------------------------------------------
OWN = "%y: f32[4] = gate_own::twice(%x)"
OWN_PLUS = "%y: f32[4] = gate_own::twice.plus(%x, 1.0)"


def test_allow_op_on_the_command_line(program: Path, data: Path) -> None:
    library = BUILD / "tests" / "own_ops.so"
    plan = make_plan(program_of(OWN))
    check_refused(run_plan(program, plan, data), "gate_own::twice", "--op-library")
    check_refused(run_plan(program, plan, data, "--allow-op", "gate_own::twice"), "gate_own::twice", "--op-library")
    check_refused(run_plan(program, plan, data, "--op-library", library), "gate_own::twice", NOT_LISTED)
    both = ("--op-library", library, "--allow-op", "gate_own::twice")
    result = run_plan(program, plan, data, *both, "--json")
    assert result.returncode == 0, result.stderr
    # Exactly this one: neither its overload nor anything of PyTorch's.
    check_refused(run_plan(program, make_plan(program_of(OWN_PLUS)), data, *both), "gate_own::twice.plus", NOT_LISTED)
    denied = make_plan(program_of(DENIED["reads a file"]))
    check_refused(run_plan(program, denied, data, *both), "aten::from_file", NOT_LISTED)
    model = write_file(data.parent / "p.lissome", {"program.txt": program_of(OWN)})
    check_refused(run(program, "inspect", model, "--op-library", library, folder=data.parent), NOT_LISTED)
    assert run(program, "inspect", model, *both, folder=data.parent).returncode == 0


def test_ops_of_pytorch_cannot_be_allowed(program: Path, data: Path) -> None:
    plan = make_plan(program_of(DENIED["reads a file"]))
    for name in ("aten::from_file", "aten::from_file.out", "aten::*", "gate_own"):
        result = run_plan(program, plan, data, "--allow-op", name)
        assert result.returncode == 2 and name in result.stderr, result.stderr
    result = run_plan(program, plan, data, "--op-library", "absent.so")
    assert result.returncode == 2 and "absent.so" in result.stderr
    library = data.parent / "text.so"
    library.write_text("no library")
    result = run_plan(program, plan, data, "--op-library", library)
    check_refused(result, "text.so", "could not be loaded")


def run_python(code: str, *words: object) -> str:
    """In a process of its own: what is allowed stays allowed."""
    result = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


PYTHON = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy, torch, lissome
plan, program, library, from_file = sys.argv[2:]

def refused(path):
    try:
        lissome.load(path)
    except lissome.UnsupportedError as error:
        return str(error)
    raise AssertionError(path + " was loaded")

torch.ops.load_library(library)
assert "gate_own::twice is not on the list" in refused(plan)
assert "gate_own::twice is not on the list" in refused(program)
for name in ("aten::from_file", "gate_own"):
    try:
        lissome.allow_op(name)
        raise AssertionError(name + " was allowed")
    except lissome.UsageError:
        pass
lissome.allow_op("gate_own::twice")
x, i = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.arange(4)
for path in (plan, program):
    assert torch.equal(lissome.load(path)(x, i), 2 * x), path
assert "aten::from_file is not on the list" in refused(from_file)
"""


def test_allow_op_in_python(data: Path) -> None:
    folder = data.parent
    plan = write_plan(folder / "plan.lissome", make_plan(program_of(OWN)))
    saved = write_file(folder / "program.lissome", {"program.txt": program_of(OWN)})
    reads = write_plan(folder / "reads.lissome", make_plan(program_of(DENIED["reads a file"])))
    run_python(PYTHON, ROOT / "build" / "python", plan, saved, BUILD / "tests" / "own_ops.so", reads)


C = """
import ctypes, sys
runtime, library, plan, reads = sys.argv[1:]
c = ctypes.CDLL(runtime)
c.lissome_last_error.restype = ctypes.c_char_p
OK, USAGE, UNSUPPORTED = 0, 1, 3

def load(path):
    session = ctypes.c_void_p()
    status = c.lissome_session_load(path.encode(), 1, ctypes.byref(session))
    return status, c.lissome_last_error().decode()

status, text = load(plan)
assert status == UNSUPPORTED and "gate_own::twice" in text, text
assert c.lissome_load_op_library(library.encode()) == OK, c.lissome_last_error()
assert c.lissome_load_op_library(b"absent.so") == USAGE
assert c.lissome_allow_op(b"aten::from_file") == USAGE
assert c.lissome_allow_op(None) == USAGE
status, text = load(plan)
assert status == UNSUPPORTED and "is not on the list" in text, text
assert c.lissome_allow_op(b"gate_own::twice") == OK
assert load(plan)[0] == OK
status, text = load(reads)
assert status == UNSUPPORTED and "aten::from_file is not on the list" in text, text
"""


def test_allow_op_in_c(data: Path) -> None:
    plan = write_plan(data.parent / "plan.lissome", make_plan(program_of(OWN)))
    reads = write_plan(data.parent / "reads.lissome", make_plan(program_of(DENIED["reads a file"])))
    run_python(C, BUILD / "lib" / "liblissome_runtime.so", BUILD / "tests" / "own_ops.so", plan, reads)


# ---- the ops themselves ---------------------------------------------------------------------------------------------
def test_a_sample_of_ops_leaves_no_memory_unset() -> None:
    """The whole list is compared by hand (docs/safety.md)."""
    command = [sys.executable, Path(__file__).parent / "compare_unset.py", "--trials", "12", "--only",
               "ctc|grid_sampler|margin_loss|embedding_bag|^aten::empty|^aten::new_empty|^aten::max_pool|^aten::std"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr


def test_no_op_reads_beside_an_expanded_operand() -> None:
    """The whole list is compared by hand (docs/safety.md)."""
    command = [sys.executable, Path(__file__).parent / "compare_strides.py", "--samples", "2", "--only",
               r"bag|ctc|flash|weight_norm|_int_mm|(lstm|gru|rnn_tanh|rnn_relu)\.data|pack|segment|mkldnn|_norm|pool|loss"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr[-2000:]
    calls = int(result.stdout.split(" calls compared")[0].split()[-1])
    assert calls > 500, result.stdout


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_sample_of_attacks(device: str) -> None:
    """A few ops of the list under hostile arguments; the whole list is attacked by hand (docs/safety.md)."""
    command = [sys.executable, Path(__file__).parent / "attack_ops.py", "--seed", "5", "--ops", "40", "--trials", "30"]
    if device == "meta":
        command.append("--meta")
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "values were checked before the call" in result.stdout, result.stdout


def make_chain(length: int) -> dict:
    """Steps of libtorch that each may give a part of what the step before gave, or of one more value."""
    text = program_of("%y: f32[4] = aten::relu(%x)", "input %x: f32[4]\ninput %i: f32[4]\n")
    plan = make_plan(text)
    plan["inputs"] = [{"name": "x", "value": 0}]
    plan["values"] = [{"name": "x", "storage": "input", "dtype": "f32", "sizes": [4]}]
    plan["steps"] = []
    held = 0
    for i in range(length):
        other = len(plan["values"])
        for storage in ("arena", "held"):
            plan["values"].append({"name": f"{storage}{i}", "storage": storage, "dtype": "f32", "sizes": [4]})
        plan["steps"].append({"kernel": "copy", "operands": [0], "results": [other]})
        origins = [["y", "aten::relu", "", "", "", ""]]
        plan["steps"].append({"kernel": "reference", "operands": [held, other], "results": [other + 1],
                              "program": text, "origins": origins, "keeps_operands": True})
        held = other + 1
    plan["outputs"] = [{"name": "y", "value": held}]
    return plan


def test_long_chains_of_aliases_take_no_memory_of_their_square(program: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.ones(4, np.float32))
    plan = make_chain(6000)
    model = write_plan(tmp_path / "model.lissome", plan)
    words = ["prlimit", "--as=2000000000", str(program), "run", str(model), "--input", "x.npz"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
