// The gate: which ops a program from a file may call.
#include "lissome/program/check/gate.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <torch/library.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "lissome/allow_op.h"
#include "lissome/base.h"
#include "lissome/program.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

TORCH_LIBRARY(gate_test, library) {
  library.def("own(Tensor x) -> Tensor", [](const at::Tensor& x) { return at::mul(x, 2); });
}

namespace lissome {
namespace {

std::string refuse(const char* name, bool is_rewritten = false) { return refuse_op(Op::find(name), is_rewritten); }

TEST_CASE("pure functions, known writes and ops of ours pass") {
  for (const char* name : {"aten::linear", "aten::add.Tensor", "aten::index.Tensor", "aten::to.dtype_layout",
                           "aten::embedding_bag.padding_idx", "aten::_assert_tensor_metadata", "aten::add_.Tensor",
                           "aten::index_put_", "aten::copy_", "aten::batch_norm", "aten::sym_size.int",
                           "aten::affine_grid_generator", "aten::bernoulli_.float", "lissome::sym_add",
                           "lissome::linear_act", "mkldnn::_linear_pointwise", "onednn::qconv_pointwise"}) {
    CAPTURE(name);
    CHECK(refuse(name).empty());
  }
}

TEST_CASE("each class of denied ops is refused") {
  for (const char* name : {"aten::from_file",
                           "aten::from_file.out",
                           "aten::_print",
                           "aten::record_stream",
                           "aten::set_data",
                           "aten::set_.source_Tensor",
                           "aten::resize_",
                           "aten::as_strided_",
                           "aten::sparse_resize_",
                           "aten::add.out",
                           "aten::max_pool2d_with_indices_backward",
                           "aten::embedding_dense_backward",
                           "aten::_embedding_bag_backward",
                           "aten::_sparse_csr_tensor_unsafe",
                           "aten::_sparse_coo_tensor_unsafe",
                           "aten::_nested_view_from_buffer",
                           "aten::_cudnn_rnn",
                           "aten::pin_memory",
                           "aten::to_mkldnn",
                           "aten::mkldnn_rnn_layer",
                           "aten::_foobar",
                           "aten::fbgemm_pack_quantized_matrix",
                           "aten::quantized_lstm.input",
                           "aten::rand.generator",
                           "aten::_index_put_impl_",
                           "aten::_fused_sgd_",
                           "quantized::linear",
                           "onednn::qlinear_prepack_fp8"}) {
    CAPTURE(name);
    if (Op::try_find(name) == nullptr) continue;  // of another release
    CHECK(refuse(name).find("not on the list of ops that a model file may call") != std::string::npos);
  }
}

TEST_CASE("an import reads forms that it rewrites, and no others") {
  for (const char* name : {"aten::add.out", "aten::resize_", "aten::as_strided_"}) {
    CAPTURE(name);
    CHECK(refuse(name, true).empty());
    CHECK_FALSE(refuse(name, false).empty());
  }
  for (const char* name : {"aten::from_file.out", "aten::set_.source_Tensor", "aten::_print"}) {
    CAPTURE(name);
    CHECK_FALSE(refuse(name, true).empty());
  }
}

TEST_CASE("a program is judged with its bodies, and the error names op, module and line") {
  Program body;
  Node& inner = body.add_node(Op::find("aten::from_file"), {"/etc/passwd", true, 16},
                              {{ValueKind::tensor, Dtype::f32, false, {}}});
  inner.origin = std::make_shared<const Origin>(Origin{"net.py:12", "", "net.load", "Load"});
  Program program;
  Node region{Op::control(Control::region), {"grad=0"}, {}, {}, nullptr};
  region.bodies.push_back(std::make_shared<const Program>(std::move(body)));
  program.nodes.push_back(std::move(region));
  EXPECT_ERROR(unsupported, judge_program(program),
               "aten::from_file of net.load (net.py:12) is not on the list of ops that a model file may call");
}

TEST_CASE("a write puts a tensor in the place of one like it") {
  const auto write = [](const char* types) {
    return parse_program("input %x: " + std::string(types) + "\nbuffer @s: f32[3]\n%y: f32[3] = aten::relu(@s)\n" +
                         "@s <- %x\nreturn %y\n");
  };
  CHECK_NOTHROW(judge_program(write("f32[3]")));
  CHECK_NOTHROW(judge_program(write("f32[n]")));
  EXPECT_ERROR(invalid_input, judge_program(write("f32[4]")), "stores [4] in [3]");
  EXPECT_ERROR(invalid_input, judge_program(write("f32[1, 3]")), "stores [1, 3] in [3]");
  EXPECT_ERROR(invalid_input, judge_program(write("i64[3]")), "stores i64 in f32");
}

TEST_CASE("a write to a tensor whose elements share memory is refused, by the gate and by the run") {
  Program program =
      parse_program("input %x: f32[3]\nbuffer @s: f32[3]\n%y: f32[3] = aten::relu(@s)\n@s <- %x\nreturn %y\n");
  CHECK_NOTHROW(judge_program(program));
  program.weights.at(0).tensor = at::zeros({1}).expand({3});
  EXPECT_ERROR(invalid_input, judge_program(program), "the write to %s", "share memory");
  InterpretOptions options;
  options.write_state = true;
  EXPECT_ERROR(invalid_input, interpret(program, {at::ones({3})}, options), "share memory", "clone");
}

TEST_CASE("a value of no known type that is written is looked at when it is there") {
  const Program program =
      parse_program("input %x: f32[2]\nbuffer @b: f32[2]\n%n = lissome::sym_add(1, 2)\n@b <- %n\nreturn %x\n");
  InterpretOptions options;
  options.write_state = true;
  EXPECT_ERROR(invalid_input, interpret(program, {at::zeros({2})}, options), "%n stands in a write to state",
               "is no tensor");
}

// What the gate adds to importing a model: LISSOME_MODEL=model.pt2 test_program -ns -tc='what the gate takes'
TEST_CASE("what the gate takes" * doctest::skip()) {
  const Program program = import_pt2(std::getenv("LISSOME_MODEL"));
  std::vector<double> seconds;
  for (int i = 0; i < 51; ++i) {
    const auto start = std::chrono::steady_clock::now();
    judge_program(program);
    check_types(program);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + 25, seconds.end());
  MESSAGE(program.nodes.size(), " nodes: the gates take ", format_duration(seconds[25]));
  CHECK(seconds[25] < 2e-3);
}

TEST_CASE("an op that may leave out its checks is taken where it is told not to") {
  const auto reduce = [](const char* unsafe) {
    return parse_program(
        "input %x: f32[4]\ninput %n: i64[2]\n%y = aten::segment_reduce(%x, \"sum\", lengths=%n, unsafe=" +
        std::string(unsafe) + ")\nreturn %y\n");
  };
  CHECK_NOTHROW(judge_program(reduce("false")));
  EXPECT_ERROR(unsupported, judge_program(reduce("true")), "aten::segment_reduce with unsafe=true is not on the list");
}

TEST_CASE("only names of the user's own ops can be allowed") {
  for (const char* name : {"", "aten", "aten::from_file", "aten::from_file.out", "prims::device_put", "c10d::send",
                           "mylib::", "::op", "mylib::op.", "mylib::*", "mylib::a::b", "lissome::add"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(allow_op(name), Error);
  }
  allow_op("gate_test::one.out");
  allow_op("gate_test::two.default");
  CHECK(is_op_allowed("gate_test::one.out"));
  CHECK(is_op_allowed("gate_test::two"));
  CHECK_FALSE(is_op_allowed("gate_test::one"));
  CHECK_FALSE(is_op_allowed("gate_test::two.Tensor"));
}

TEST_CASE("a saved program with an op of the user's own loads once it is allowed") {
  const TemporaryFolder folder;
  const std::string path = folder.file("own.lissome");
  save_program(parse_program("input %x: f32[2]\n%y: f32[2] = gate_test::own(%x)\nreturn %y\n"), path);
  EXPECT_ERROR(unsupported, load_program(path), "gate_test::own", "--allow-op");
  allow_op("gate_test::own");
  CHECK(load_program(path).nodes.size() == 1);
}

}  // namespace
}  // namespace lissome
