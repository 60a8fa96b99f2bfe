#include <ATen/core/ivalue.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "lissome/program.h"
#include "tests/expect_error.h"

namespace lissome {
namespace {

using Weights = std::vector<std::pair<std::string, at::Tensor>>;

void check(const std::string& text, const Weights& weights = {}) { check_types(parse_program(text, weights)); }

TEST_CASE("dimensions that an operand does not have are refused, whichever op names them") {
  const std::string sound = "1", broken[] = {"100000", "2", "-3"};
  for (const std::string call : {
           "aten::transpose.int(%x, 0, DIM)",
           "aten::movedim.int(%x, DIM, 0)",
           "aten::softmax.int(%x, DIM)",
           "aten::amax(%x, [DIM])",
           "aten::cumsum(%x, DIM)",
           "aten::squeeze.dim(%x, DIM)",
           "aten::flip(%x, [DIM])",
           "aten::index_select(%x, DIM, %i)",
           "aten::argmax(%x, DIM)",
           "aten::roll(%x, [1], [DIM])",
           "aten::cat([%x, %x], DIM)",
           "aten::slice.Tensor(%x, DIM, 0, 2)",
           "aten::select.int(%x, DIM, 0)",
           "aten::mean.dim(%x, [DIM])",
           "aten::glu(%x, DIM)",
           "aten::gather(%x, DIM, %j)",
       }) {
    CAPTURE(call);
    const auto write = [&](const std::string& dim) {
      std::string filled = call;
      filled.replace(filled.find("DIM"), 3, dim);
      return "input %x: f32[4, 8]\ninput %i: i64[2]\ninput %j: i64[4, 8]\n%a = " + filled + "\nreturn %a\n";
    };
    CHECK_NOTHROW(check(write(sound)));
    for (const std::string& dim : broken) EXPECT_ERROR(invalid_input, check(write(dim)), "ange");
  }
}

TEST_CASE("results are what the ops make of the operands") {
  const auto with_result = [](const std::string& type, const std::string& call) {
    return "dim n\ninput %x: f32[n, 8]\nparameter @w: f32[3, 8]\nparameter @k: f32[6, 2, 3, 3]\n%a: " + type + " = " +
           call + "\nreturn %a\n";
  };
  const Weights weights = {{"w", at::ones({3, 8})}, {"k", at::ones({6, 2, 3, 3})}};
  const auto check_pair = [&](const std::string& call, const std::string& sound,
                              const std::initializer_list<const char*> broken) {
    CAPTURE(call);
    CHECK_NOTHROW(check(with_result(sound, call), weights));
    for (const char* type : broken) {
      CAPTURE(type);
      EXPECT_ERROR(invalid_input, check(with_result(type, call), weights), "the file says");
    }
  };
  check_pair("aten::relu(%x)", "f32[n, 8]", {"f32[]", "f32[8, n]", "f32[n, 8, 1]", "i64[n, 8]", "f32[n, 9]"});
  check_pair("aten::linear(%x, @w)", "f32[n, 3]", {"f32[]", "f32[n, 8]", "f32[3]", "bf16[n, 3]"});
  check_pair("aten::flatten.using_ints(%x)", "f32[8*n]", {"f32[n]", "f32[n, 8]"});
  check_pair("aten::eq.Tensor(%x, %x)", "bool[n, 8]", {"f32[n, 8]", "bool[8]"});
  check_pair("lissome::quantize(%x, 0.1, 3)", "u8[n, 8]", {"f32[n, 8]", "u8[8]"});
}

TEST_CASE("convolutions and layers whose weights do not fit are refused before they are packed") {
  const auto convolve = [](const std::string& groups) {
    return "input %x: f32[1, 4, 8, 8]\nparameter @k: f32[6, 2, 3, 3]\n%a = aten::conv2d(%x, @k, none, [1, 1], [0, 0], "
           "[1, "
           "1], " +
           groups + ")\nreturn %a\n";
  };
  const Weights kernel = {{"k", at::ones({6, 2, 3, 3})}};
  CHECK_NOTHROW(
      check("input %x: f32[1, 4, 8, 8]\nparameter @k: f32[6, 2, 3, 3]\n%a: f32[1, 6, 6, 6] = aten::conv2d(%x, "
            "@k, none, [1, 1], [0, 0], [1, 1], 2)\nreturn %a\n",
            kernel));
  for (const char* groups : {"0", "-2", "1", "3", "7"}) {
    std::string text = convolve(groups);
    text.replace(text.find("%a ="), 4, "%a: f32[1, 6, 6, 6] =");
    EXPECT_ERROR(invalid_input, check(text, kernel), "groups");
  }
  const std::string transposed =
      "input %x: u8[1, 1, 8, 8]\nparameter @w: i8[1, 4000000, 1, 1]\nparameter @s: f32[1]\n%y: f32[1, 4000000, 8, 8] = "
      "lissome::conv_transposed_int8(%x, 0.1, 0, @w, @s, none, \"none\")\nreturn %y\n";
  EXPECT_ERROR(invalid_input,
               check(transposed, {{"w", at::zeros({1, 4000000, 1, 1}, at::kChar)}, {"s", at::ones({1})}}),
               "1 scales for 4000000 outputs");
}

TEST_CASE("windows of int8 layers are looked at where tensors are too large to be called with zeros") {
  const auto convolve = [](const std::string& window) {
    return "input %x: u8[1, 32, 380, 380]\nparameter @w: i8[32, 32, 3, 3]\nparameter @s: f32[32]\n"
           "%y: f32[1, 32, 380, 380] = lissome::conv_int8(%x, 0.1, 3, @w, @s, none, " +
           window + ", \"none\", none)\nreturn %y\n";
  };
  const Weights weights = {{"w", at::zeros({32, 32, 3, 3}, at::kChar)}, {"s", at::ones({32})}};
  CHECK_NOTHROW(check(convolve("[1, 1], [1, 1], [1, 1], 1"), weights));
  for (const char* window : {"[], [1, 1], [1, 1], 1", "[0, 1], [1, 1], [1, 1], 1", "[1, 1, 1], [1, 1], [1, 1], 1"})
    EXPECT_ERROR(invalid_input, check(convolve(window), weights), "'stride'");
  EXPECT_ERROR(invalid_input, check(convolve("[1, 1], [1, -1], [1, 1], 1"), weights), "'padding'");
  EXPECT_ERROR(invalid_input, check(convolve("[1, 1], [1, 1], [], 1"), weights), "'dilation'");
  for (const char* groups : {"0", "-1", "3", "4294967296"})
    EXPECT_ERROR(invalid_input, check(convolve("[1, 1], [1, 1], [1, 1], " + std::string(groups)), weights), "groups");
  const auto pool = [](const char* kernel) {
    return "input %x: u8[1, 32, 380, 380]\n%y: u8[1, 32, 380, 380] = lissome::avg_pool2d_u8(%x, 0.1, 3, " +
           std::string(kernel) + ", [1, 1], [1, 1], false, true, none, 0.1, 3)\nreturn %y\n";
  };
  CHECK_NOTHROW(check(pool("[3, 3]")));
  for (const char* kernel : {"[]", "[0]", "[1, 2, 3]"})
    EXPECT_ERROR(invalid_input, check(pool(kernel)), "'kernel_size'");
}

TEST_CASE("what would be made or done too often is refused before it is") {
  const std::string start = "input %x: f32[4, 0]\n%a: list = aten::chunk(%x, ", end = ", 1)\nreturn %a\n";
  CHECK_NOTHROW(check(start + "3" + end));
  EXPECT_ERROR(invalid_input, check(start + "1099511627776" + end), "1099511627776 tensors in a list");
  EXPECT_ERROR(invalid_input, check("input %x: f32[1]\n%a = aten::combinations(%x, 65536)\nreturn %a\n"), "members");
}

TEST_CASE("words and groups are looked at before ops are called without elements") {
  const std::string input = "input %x: f32[1, 6, 3]\n";
  EXPECT_ERROR(invalid_input, check(input + "%a: f32[1, 6, 3] = aten::softmax.int(%x, 1, 127)\nreturn %a\n"), "dtype");
  const auto norm = [&](const char* groups) {
    return input + "%a, %m, %r = aten::native_group_norm(%x, none, none, 1, 6, 3, " + groups + ", 1e-05)\nreturn %a\n";
  };
  CHECK_NOTHROW(check(norm("2")));
  for (const char* groups : {"0", "-1", "4"})
    EXPECT_ERROR(invalid_input, check(norm(groups)), "6 channels do not make");
}

TEST_CASE("ops that name a device are called without elements too") {
  const auto zeros = [](const char* size) {
    return std::string("input %x: f32[2]\n%a: f32[") + size +
           "] = aten::zeros([3], dtype=f32, device=cpu)\nreturn %a\n";
  };
  CHECK_NOTHROW(check(zeros("3")));
  EXPECT_ERROR(invalid_input, check(zeros("4")), "the file says f32[4]");
}

TEST_CASE("numbers that nodes compute of sizes are followed") {
  const auto with_view = [](const std::string& sizes, const std::string& head = "dim n\ninput %x: f32[n, 16]\n") {
    return head + "%s: int = aten::sym_size.int(%x, 0)\n%a: f32[n, 2, 8] = aten::view(%x, " + sizes + ")\nreturn %a\n";
  };
  CHECK_NOTHROW(check(with_view("[%s, -1, 8]")));
  for (const char* sizes : {"[%s, -1, 4]", "[-1, 8, 2]", "[%s, 8, 2]", "[2, %s, 8]"})
    EXPECT_ERROR(invalid_input, check(with_view(sizes)), "the file says f32[n, 2, 8]");
  // Equal for the sizes alone that the model takes.
  const std::string sevens =
      "dim n\ninput %x: f32[n, 3]\n%s: int = aten::sym_size.int(%x, 0)\n"
      "%q: int = lissome::sym_floordiv(%s, 7)\n%p: int = lissome::sym_mul(%q, 7)\n";
  CHECK_NOTHROW(check(sevens + "%a: f32[n, 3] = aten::slice.Tensor(%x, 0, 0, %p)\nreturn %a\n"));
  EXPECT_ERROR(invalid_input, check(sevens + "%a: f32[n, 3] = aten::slice.Tensor(%x, 0, 0, %q)\nreturn %a\n"),
               "the file says f32[n, 3]");
}

TEST_CASE("ops are looked at with sizes that the model takes") {
  // As torch.export writes a model whose code fixed one length of those that it should take.
  const auto fixed = [](const char* asked, const char* stated) {
    return std::string("dim n\nrequire \"") + asked + "\"\ninput %x: f32[2, n]\n%a: f32[2, " + stated +
           "] = aten::slice.Tensor(%x, 1, 0, 9223372036854775807, 2)\nreturn %a\n";
  };
  CHECK_NOTHROW(check(fixed("1 + (n - 1) // 2 == 311", "311")));
  EXPECT_ERROR(invalid_input, check(fixed("1 + (n - 1) // 2 == 311", "310")), "the file says f32[2, 310]");
  // No size is found: what follows from sizes stays open, dtypes and ranks do not.
  CHECK_NOTHROW(check(fixed("n == 2 * n + 1", "311")));
  EXPECT_ERROR(invalid_input, check(fixed("n == 2 * n + 1", "311, 1")), "the file says f32[2, 311, 1]");
}

TEST_CASE("elements of lists are what the op makes") {
  const auto with_chunk = [](const std::string& chunks, const std::string& index) {
    return "input %x: f32[4, 16]\n%l: list = aten::chunk(%x, " + chunks +
           ", dim=1)\n%a: f32[4, 8] = lissome::getitem(%l, " + index + ")\nreturn %a\n";
  };
  for (const char* index : {"0", "1", "-1"}) CHECK_NOTHROW(check(with_chunk("2", index)));
  EXPECT_ERROR(invalid_input, check(with_chunk("4", "0")), "the file says f32[4, 8]");
  for (const char* index : {"2", "-3"}) EXPECT_ERROR(invalid_input, check(with_chunk("2", index)), "of a list of 2");
}

TEST_CASE("layers without a form for tensors without elements follow their formulas") {
  const std::string head =
      "dim n\ninput %x: f32[n, 4, 12, 12]\ninput %q: f32[n, 2, 5, 8]\ninput %v: f32[n, 2, 7, 6]\n"
      "input %k: f32[n, 2, 7, 8]\nparameter @w: f32[6, 4, 3, 3]\nparameter @u: f32[4, 5, 3, 3]\n"
      "parameter @g: f32[12]\n";
  const Weights weights = {{"w", at::ones({6, 4, 3, 3})}, {"u", at::ones({4, 5, 3, 3})}, {"g", at::ones({12})}};
  const auto check_pair = [&](const std::string& call, const std::string& sound, const std::string& broken) {
    CAPTURE(call);
    CHECK_NOTHROW(check(head + "%a: " + sound + " = " + call + "\nreturn %a\n", weights));
    EXPECT_ERROR(invalid_input, check(head + "%a: " + broken + " = " + call + "\nreturn %a\n", weights),
                 "the file says");
  };
  check_pair("aten::conv2d(%x, @w, none, [2, 2], [1, 1])", "f32[n, 6, 6, 6]", "f32[n, 6, 5, 7]");
  check_pair("aten::conv2d(%x, @w, none, [1], [0], [2])", "f32[n, 6, 8, 8]", "f32[n, 6, 8, 9]");
  check_pair("aten::conv_transpose2d.input(%x, @u, none, [2, 2], [1, 1], [1, 0])", "f32[n, 5, 24, 23]",
             "f32[n, 5, 23, 24]");
  check_pair("aten::layer_norm(%x, [12], @g)", "f32[n, 4, 12, 12]", "f32[n, 12, 4, 12]");
  check_pair("aten::scaled_dot_product_attention(%q, %k, %v)", "f32[n, 2, 5, 6]", "f32[n, 2, 5, 8]");
  check_pair("aten::adaptive_avg_pool2d(%x, [2, 1])", "f32[n, 4, 2, 1]", "f32[n, 4, 1, 2]");
}

TEST_CASE("ops whose results depend on data, and sizes that nobody knows, are taken at the program's word") {
  CHECK_NOTHROW(check("input %x: f32[4, 8]\n%a: i64[u0, 2] = aten::nonzero(%x)\nreturn %a\n"));
  // What holds between them is not known either, but ranks and dtypes are.
  const std::string found = "input %x: f32[4, 8]\n%i: i64[u0, 2] = aten::nonzero(%x)\n";
  CHECK_NOTHROW(check(found + "%a: i64[3] = aten::select.int(%i, 1, 0)\nreturn %a\n"));
  CHECK_NOTHROW(check(found + "%a: i64[u1, 7] = aten::view(%i, [-1, 7])\nreturn %a\n"));
  CHECK_NOTHROW(check(found + "%a: i64[u0//24, 2] = aten::slice.Tensor(%i, 0, 0, 1)\n"
                              "%b: i64[u0//24, 2] = aten::squeeze(%a)\nreturn %b\n"));
  EXPECT_ERROR(invalid_input, check(found + "%a: i64[4] = aten::neg(%i)\nreturn %a\n"), "the file says i64[4]");
  EXPECT_ERROR(invalid_input, check(found + "%a: f32[u0, 2] = aten::neg(%i)\nreturn %a\n"), "the file says f32");
  CHECK_NOTHROW(check("input %x: f32[...]\n%a: f32[3] = aten::relu(%x)\nreturn %a\n"));
}

}  // namespace
}  // namespace lissome
