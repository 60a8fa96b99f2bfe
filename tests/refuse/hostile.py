"""Hostile and broken `.pt2` files, each made from a good export by one change; every row names the rule it breaks."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass

from archive import Archive, Member

# What loading would have to run: a pickle that writes a file called "ran" into the current folder.
PAYLOAD = b"\x80\x02cos\nsystem\nX\x09\x00\x00\x00touch ran\x85R."


@dataclass(frozen=True)
class Row:
    name: str
    build: Callable[[Archive], bytes]
    words: tuple[str, ...]  # of the error


ROWS: list[Row] = []


def row(*words: str) -> Callable[[Callable[[Archive], bytes | None]], None]:
    """Registers a change to a good archive; what it returns, or the archive written anew, is the file."""

    def register(change: Callable[[Archive], bytes | None]) -> None:
        def build(archive: Archive) -> bytes:
            made = change(archive)
            return archive.write() if made is None else made

        ROWS.append(Row(change.__name__, build, words))

    return register


def edit_json(archive: Archive, end: str, change: Callable[[dict], None]) -> None:
    member = archive.find(end)
    document = json.loads(member.data)
    change(document)
    member.data = json.dumps(document).encode()


def edit_graph(archive: Archive, change: Callable[[dict], None]) -> None:
    edit_json(archive, "models/model.json", lambda document: change(document["graph_module"]["graph"]))


def edit_weight(archive: Archive, change: Callable[[dict], None]) -> None:
    """The entry of fc.weight, f32[4, 6]."""
    edit_json(archive, "model_weights_config.json", lambda document: change(document["config"]["fc.weight"]))


def edit_meta(archive: Archive, **fields: object) -> None:
    edit_weight(archive, lambda entry: entry["tensor_meta"].update(fields))


def integers(*numbers: int) -> list[dict]:
    return [{"as_int": number} for number in numbers]


# ---- zip ----------------------------------------------------------------------------------------------------------


@row("twice")
def duplicate_names(archive: Archive) -> None:
    archive.members.append(archive.find("archive_version"))


@row("name")
def local_name_differs(archive: Archive) -> None:
    member = archive.find("weight_0")
    member.local_name = member.name[:-1] + b"9"


@row("crc")
def local_crc_differs(archive: Archive) -> None:
    archive.find("weight_0").local_crc = 1


@row("size")
def local_size_differs(archive: Archive) -> None:
    archive.find("weight_0").local_size = 3


@row()
def members_overlap(archive: Archive) -> None:
    first, second = archive.members[0], archive.find("archive_version")
    second.name, second.data = first.name[:-1] + b"x", first.data
    second.central_offset, second.local_name = 0, first.name


@row()
def member_outside_the_file(archive: Archive) -> None:
    archive.find("archive_version").central_offset = 1 << 30


@row()
def member_reaches_behind_the_end(archive: Archive) -> None:
    archive.find("weight_0").central_size = 1 << 30


@row("encrypted")
def encrypted(archive: Archive) -> None:
    archive.find("weight_0").flags = 1


@row("flag")
def unknown_flag(archive: Archive) -> None:
    archive.find("weight_0").flags = 1 << 5


@row("method")
def unknown_method(archive: Archive) -> None:
    archive.find("weight_0").method = 12


def rename(archive: Archive, name: bytes) -> None:
    archive.find("archive_version").name = name


@row("name")
def absolute_name(archive: Archive) -> None:
    rename(archive, b"/tmp/evil")


@row("name")
def name_climbs_up(archive: Archive) -> None:
    rename(archive, b"model/../../evil")


@row("name")
def name_with_backslash(archive: Archive) -> None:
    rename(archive, b"model\\evil")


@row("name")
def name_with_nul(archive: Archive) -> None:
    rename(archive, b"model/evil\0.json")


@row("UTF-8")
def name_not_utf8(archive: Archive) -> None:
    rename(archive, b"model/\xff\xfe")


@row("100000")
def too_many_members(archive: Archive) -> None:
    archive.members += [Member(b"model/extra/%d" % i, b"") for i in range(100_001)]


@row("weight_0")
def inconsistent_zip64(archive: Archive) -> None:
    member = archive.find("weight_0")
    member.central_size = 0xFFFFFFFF
    member.central_extra = struct.pack("<HHQQ", 1, 16, 5, 7)


@row("Zip64")
def zip64_field_of_half_a_number(archive: Archive) -> None:
    member = archive.find("weight_0")
    member.central_size = 0xFFFFFFFF
    member.central_extra = struct.pack("<HHI", 1, 4, 96)


@row("tensor", "fc.weight", "CRC32")
def wrong_crc_of_a_tensor(archive: Archive) -> None:
    archive.find("weight_0").crc = 0x12345678


@row("model.json", "CRC32")
def wrong_crc_of_the_graph(archive: Archive) -> None:
    archive.find("models/model.json").crc = 0x12345678


@row("fc.weight", "stored")
def deflated_tensor(archive: Archive) -> None:
    archive.find("weight_0").deflate = True


@row("100 times")
def text_bomb(archive: Archive) -> None:
    member = archive.find("models/model.json")
    member.data = b" " * (64 << 20) + member.data
    member.deflate = True


@row()
def truncated_at_the_end(archive: Archive) -> bytes:
    return archive.write()[:-1]


@row()
def truncated_in_the_middle(archive: Archive) -> bytes:
    whole = archive.write()
    return whole[: len(whole) // 2]


@row()
def truncated_directory(archive: Archive) -> bytes:
    return archive.write()[:-60]


@row()
def bytes_behind_the_archive(archive: Archive) -> bytes:
    return archive.write() + b"behind"


@row()
def bytes_before_the_archive(archive: Archive) -> bytes:
    return b"PK\x03\x04" + archive.write()


@row("folder")
def two_folders(archive: Archive) -> None:
    archive.members.append(Member(b"other/file", b"x"))


# ---- marks --------------------------------------------------------------------------------------------------------


@row("archive_format")
def other_format(archive: Archive) -> None:
    archive.find("archive_format").data = b"pt3"


@row("archive_version")
def other_version(archive: Archive) -> None:
    archive.find("archive_version").data = b"1"


@row("byteorder", "little")
def big_endian(archive: Archive) -> None:
    archive.find("byteorder").data = b"big"


@row("schema version", "9")
def other_schema(archive: Archive) -> None:
    edit_json(archive, "models/model.json", lambda document: document["schema_version"].update(major=9))


@row("2 exported programs", "one, two")
def two_models_none_called_model(archive: Archive) -> None:
    member = archive.find("models/model.json")
    member.name = member.name.replace(b"model.json", b"one.json")
    archive.members.append(Member(member.name.replace(b"one.json", b"two.json"), member.data))


# ---- tensors ------------------------------------------------------------------------------------------------------


@row("fc.weight", "negative")
def negative_size(archive: Archive) -> None:
    edit_meta(archive, sizes=integers(-4, 6))


@row("fc.weight", "overflow")
def sizes_overflow(archive: Archive) -> None:
    edit_meta(archive, sizes=integers(1 << 40, 1 << 40))


@row("63 bits")
def size_beyond_63_bits(archive: Archive) -> None:
    edit_meta(archive, sizes=integers((1 << 64) - 1, 6))


@row("fc.weight", "overflow")
def strides_overflow(archive: Archive) -> None:
    edit_meta(archive, strides=integers(1 << 62, 1 << 62))


@row("fc.weight", "negative")
def negative_stride(archive: Archive) -> None:
    edit_meta(archive, strides=integers(-6, 1))


@row("fc.weight", "negative")
def negative_offset(archive: Archive) -> None:
    edit_meta(archive, storage_offset={"as_int": -1})


@row("fc.weight", "reach")
def offset_beyond_the_storage(archive: Archive) -> None:
    edit_meta(archive, storage_offset={"as_int": 20})


@row("fc.weight", "overflow")
def offset_overflows(archive: Archive) -> None:
    edit_meta(archive, storage_offset={"as_int": (1 << 63) - 1})


@row("fc.weight", "reach")
def strides_beyond_the_storage(archive: Archive) -> None:
    edit_meta(archive, strides=integers(6, 2))


@row("fc.weight", "reach")
def storage_too_short(archive: Archive) -> None:
    archive.find("weight_0").data = archive.find("weight_0").data[:-4]


@row("fc.weight", "storage")
def storage_too_long(archive: Archive) -> None:
    archive.find("weight_0").data += bytes(8)


@row("fc.weight", "whole number")
def storage_of_half_an_element(archive: Archive) -> None:
    archive.find("weight_0").data += bytes(2)


@row("fc.weight", "reach")
def storage_empty(archive: Archive) -> None:
    archive.find("weight_0").data = b""


@row("element type")
def unknown_dtype(archive: Archive) -> None:
    edit_meta(archive, dtype=99)


@row("fc.weight", "layout")
def sparse_layout(archive: Archive) -> None:
    edit_meta(archive, layout=1)


@row("fc.weight", "symbolic")
def symbolic_size(archive: Archive) -> None:
    edit_meta(archive, sizes=[{"as_expr": {"expr_str": "Symbol('s0')"}}, {"as_int": 6}])


@row("fc.weight", "strides")
def sizes_without_strides(archive: Archive) -> None:
    edit_meta(archive, strides=integers(6))


@row("fc.weight", "dimensions")
def too_many_dimensions(archive: Archive) -> None:
    edit_meta(archive, sizes=integers(*[1] * 100), strides=integers(*[1] * 100))


@row("fc.weight")
def tensor_without_an_entry(archive: Archive) -> None:
    edit_json(archive, "model_weights_config.json", lambda document: document["config"].pop("fc.weight"))


@row("fc.weight", "missing")
def tensor_without_a_member(archive: Archive) -> None:
    archive.members.remove(archive.find("weight_0"))


@row("fc.weight", "missing")
def tensor_from_outside(archive: Archive) -> None:
    edit_weight(archive, lambda entry: entry.update(path_name="../../../../../../etc/passwd"))


@row("fc.weight", "pickle")
def pickled_tensor(archive: Archive) -> None:
    edit_weight(archive, lambda entry: entry.update(use_pickle=True))
    archive.find("weight_0").data = PAYLOAD


# ---- graph --------------------------------------------------------------------------------------------------------


@row("no_such_op")
def unknown_op(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0].update(target="torch.ops.aten.no_such_op.default"))


@row("fc", "hostile_model.py")
def unknown_op_names_module_and_line(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0].update(target="torch.ops.aten.no_such_op.default"))


@row("not on the list of ops")
def op_that_reads_files(archive: Archive) -> None:
    def change(graph: dict) -> None:
        graph["nodes"][0].update(target="torch.ops.aten.from_file.default", inputs=[
            {"name": "filename", "arg": {"as_string": "ran"}, "kind": 1},
            {"name": "shared", "arg": {"as_bool": True}, "kind": 1},
            {"name": "size", "arg": {"as_int": 4}, "kind": 1}])

    edit_graph(archive, change)


@row("aten::from_file.out is not on the list of ops", "fc", "hostile_model.py")
def op_that_reads_files_into_an_argument(archive: Archive) -> None:
    def change(graph: dict) -> None:
        graph["nodes"][0].update(target="torch.ops.aten.from_file.out", inputs=[
            {"name": "filename", "arg": {"as_string": "ran"}, "kind": 1},
            {"name": "shared", "arg": {"as_bool": True}, "kind": 1},
            {"name": "size", "arg": {"as_int": 4}, "kind": 1},
            {"name": "out", "arg": graph["inputs"][-1], "kind": 1}])

    edit_graph(archive, change)


@row("aten::max_pool2d_with_indices_backward is not on the list of ops")
def op_that_trusts_indices(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0].update(
        target="torch.ops.aten.max_pool2d_with_indices_backward.default"))


@row("aten::set_.source_Tensor is not on the list of ops")
def op_that_changes_storage(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0].update(target="torch.ops.aten.set_.source_Tensor", inputs=[
        {"name": "self", "arg": graph["inputs"][-1], "kind": 1},
        {"name": "source", "arg": graph["inputs"][-1], "kind": 1}]))


@row("os.system")
def target_is_python(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0].update(target="os.system", inputs=[
        {"name": "", "arg": {"as_string": "touch ran"}, "kind": 1}]))


@row("before")
def value_used_before_it_is_made(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"].reverse())


@row("before")
def output_that_nobody_makes(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["outputs"][0]["as_tensor"].update(name="nothing"))


@row("twice")
def value_made_twice(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"].append(graph["nodes"][-1]))


@row("no argument")
def unknown_argument(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0]["inputs"][0].update(name="nonsense"))


@row("missing")
def missing_argument(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0]["inputs"].pop(0))


@row("twice")
def argument_given_twice(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0]["inputs"].append(graph["nodes"][0]["inputs"][0]))


@row("weight")
def argument_of_another_kind(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0]["inputs"][1].update(arg={"as_string": "text"}))


@row("kind")
def unknown_kind_of_argument(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0]["inputs"][1].update(arg={"as_code": "text"}))


@row("custom object", "Evil")
def custom_object(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0]["inputs"][1].update(
        arg={"as_custom_obj": {"name": "o", "class_fqn": "__torch__.Evil"}}))


@row("results")
def too_many_results(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0]["outputs"].append({"as_tensor": {"name": "more"}}))


@row("higher-order", "evil")
def unknown_higher_order_op(archive: Archive) -> None:
    edit_graph(archive, lambda graph: graph["nodes"][0].update(target="torch.ops.higher_order.evil"))


@row("inputs")
def signature_of_another_graph(archive: Archive) -> None:
    edit_json(archive, "models/model.json",
              lambda document: document["graph_module"]["signature"]["input_specs"].pop())


@row("state", "nothing")
def writes_state_that_is_not_there(archive: Archive) -> None:
    def change(document: dict) -> None:
        signature, graph = document["graph_module"]["signature"], document["graph_module"]["graph"]
        name = graph["outputs"][0]["as_tensor"]["name"]
        signature["output_specs"].append({"buffer_mutation": {"arg": {"name": name}, "buffer_name": "nothing"}})
        graph["outputs"].append(graph["outputs"][0])

    edit_json(archive, "models/model.json", change)


@row("dimension")
def dimension_that_is_code(archive: Archive) -> None:
    text = "__import__('os').system('touch ran')"
    edit_graph(archive, lambda graph: graph["tensor_values"]["x"]["sizes"].__setitem__(
        0, {"as_expr": {"expr_str": text}}))


@row("nested")
def dimension_nested_deeply(archive: Archive) -> None:
    text = "Add(" * 2_000 + "Integer(1)" + ")" * 2_000
    edit_graph(archive, lambda graph: graph["tensor_values"]["x"]["sizes"].__setitem__(
        0, {"as_expr": {"expr_str": text}}))


@row("empty")
def range_without_sizes(archive: Archive) -> None:
    def change(document: dict) -> None:
        document["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0] = {
            "as_expr": {"expr_str": "Symbol('s0', integer=True)"}}
        document["range_constraints"] = {"s0": {"min_val": 9, "max_val": 2}}

    edit_json(archive, "models/model.json", change)


# ---- JSON ---------------------------------------------------------------------------------------------------------


@row("model.json", "nested")
def json_nested_a_million_times(archive: Archive) -> None:
    archive.find("models/model.json").data = b"[" * 1_000_000 + b"]" * 1_000_000


@row("nested")
def graphs_nested_too_deeply(archive: Archive) -> None:
    def change(document: dict) -> None:
        graph = document["graph_module"]["graph"]
        inner = json.loads(json.dumps(graph))
        for _ in range(60):
            outer = json.loads(json.dumps(graph))
            outer["nodes"][0] = {"target": "torch.ops.higher_order.invoke_subgraph", "outputs": [], "metadata": {},
                                 "inputs": [{"name": "", "arg": {"as_graph": {"name": "g", "graph": inner}}}]}
            inner = outer
        document["graph_module"]["graph"] = inner

    edit_json(archive, "models/model.json", change)


@row("model.json", "twice")
def json_key_twice(archive: Archive) -> None:
    archive.find("models/model.json").data = b'{"graph_module": {}, "graph_module": {}}'


@row("model.json")
def json_broken(archive: Archive) -> None:
    member = archive.find("models/model.json")
    member.data = member.data[:-2]


@row("model.json")
def json_not_utf8(archive: Archive) -> None:
    archive.find("models/model.json").data = b'{"\xff": 1}'


@row()
def json_is_a_list(archive: Archive) -> None:
    archive.find("models/model.json").data = b"[]"


@row("missing", "schema_version")
def json_is_empty(archive: Archive) -> None:
    archive.find("models/model.json").data = b"{}"
