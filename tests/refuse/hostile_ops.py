"""Hostile `.pt2` graphs: in a good export, one node calls an op that no model file may call."""

from __future__ import annotations

from hostile import ROWS, Row, edit_graph

from archive import Archive

X = "X"  # stands for the operand of the node that is replaced

# By class: target, and arguments by name.
DENIED = {
    "files": [
        ("aten.from_file.default", {"filename": "ran", "shared": True, "size": 8}),
        ("aten.from_file.out", {"filename": "ran", "shared": True, "size": 8, "out": X}),
    ],
    "points_elsewhere": [
        ("aten.set_.source_Tensor", {"self": X, "source": X}),
        ("aten.set_data.default", {"self": X, "new_data": X}),
        ("inductor._reinterpret_tensor.default",
         {"self": X, "size": [2, 4], "stride": [4, 1], "offset_increment": 1 << 20}),
        ("inductor._alloc_from_pool.default",
         {"self": X, "offset_bytes": 1 << 20, "dtype": "f32", "size": [2, 4], "stride": [4, 1]}),
    ],
    "resizes": [
        ("aten._resize_output_.default", {"self": X, "size": [1 << 20], "device": "cpu"}),
        ("aten.sparse_resize_.default", {"self": X, "size": [1 << 20], "sparse_dim": 1, "dense_dim": 0}),
    ],
    "trusts_indices": [
        ("aten.max_pool2d_with_indices_backward.default",
         {"grad_output": X, "self": X, "kernel_size": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1],
          "ceil_mode": False, "indices": X}),
        ("aten.adaptive_max_pool2d_backward.default", {"grad_output": X, "self": X, "indices": X}),
        ("aten.fractional_max_pool2d_backward.default",
         {"grad_output": X, "self": X, "kernel_size": [2, 2], "output_size": [1, 1], "indices": X}),
        ("aten._embedding_bag_per_sample_weights_backward.default",
         {"grad": X, "weight": X, "indices": X, "offsets": X, "offset2bag": X, "mode": 0}),
    ],
    "unsafe": [
        ("aten.segment_reduce.default", {"data": X, "reduce": "sum", "lengths": X, "unsafe": True}),
        ("aten._sparse_csr_tensor_unsafe.default",
         {"crow_indices": X, "col_indices": X, "values": X, "size": [2, 4]}),
        ("aten._sparse_coo_tensor_unsafe.default", {"indices": X, "values": X, "size": [2, 4]}),
        ("aten._sparse_compressed_tensor_unsafe.default",
         {"compressed_indices": X, "plain_indices": X, "values": X, "size": [2, 4]}),
        ("aten._nested_view_from_buffer.default",
         {"self": X, "nested_size": X, "nested_strides": X, "offsets": X}),
    ],
    "raw_quantized": [
        ("aten._make_per_tensor_quantized_tensor.default", {"self": X, "scale": 0.1, "zero_point": 0}),
        ("aten.fbgemm_pack_gemm_matrix_fp16.default", {"input": X}),
        ("quantized.embedding_bag_byte_rowwise_offsets.default", {"weight": X, "indices": X}),
    ],
    "devices": [
        ("aten._pin_memory.default", {"self": X}),
        ("aten._cudnn_init_dropout_state.default", {"dropout": 0.5, "train": True, "dropout_seed": 0}),
    ],
    "processes": [("_c10d_functional.all_reduce.default", {"input": X, "reduce_op": "sum", "group_name": "0"})],
    "internals": [
        ("aten._test_check_tensor.default", {"self": X}),
        ("aten.to_mkldnn.default", {"self": X}),
    ],
    "unknown": [("evil.run.default", {"self": X})],
}


def write_argument(value: object, operand: str) -> dict:
    if value == X:
        return {"as_tensor": {"name": operand}}
    if value == "f32":
        return {"as_scalar_type": 7}
    if value == "cpu":
        return {"as_device": {"type": "cpu", "index": None}}
    names = {bool: "as_bool", int: "as_int", float: "as_float", str: "as_string", list: "as_ints"}
    return {names[type(value)]: value}


def make_row(group: str, target: str, arguments: dict[str, object]) -> Row:
    def build(archive: Archive) -> bytes:
        def change(graph: dict) -> None:
            node = next(node for node in graph["nodes"] if node["target"] == "torch.ops.aten.relu.default")
            operand = node["inputs"][0]["arg"]["as_tensor"]["name"]
            node["target"] = f"torch.ops.{target}"
            node["inputs"] = [{"name": name, "arg": write_argument(value, operand), "kind": 1}
                              for name, value in arguments.items()]

        edit_graph(archive, change)
        return archive.write()

    namespace, name, _ = target.split(".")
    return Row(f"op_{target}"[:60], build, (f"{namespace}::{name}",))


ROWS += [make_row(group, target, arguments) for group, rows in DENIED.items() for target, arguments in rows]
