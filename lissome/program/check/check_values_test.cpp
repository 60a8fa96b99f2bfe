// What is refused right before a call because the kernel would take it at its word: each check with a call that runs
// and one that differs in one value.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/_ctc_loss.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lissome/program.h"
#include "tests/expect_error.h"

namespace lissome {
namespace {

using Inputs = std::vector<c10::IValue>;

at::Tensor integers(std::vector<int64_t> numbers) { return at::tensor(numbers, at::kLong); }

Inputs run(const std::string& text, Inputs inputs) { return interpret(parse_program(text), std::move(inputs)); }

// `text` calls one op over its inputs.
void check_pair(const std::string& text, const Inputs& good, const Inputs& bad, const std::string& words) {
  CAPTURE(text);
  CHECK_NOTHROW(run(text, good));
  EXPECT_ERROR(invalid_input, run(text, bad), words);
}

TEST_CASE("indices and offsets of bags") {
  const std::string text =
      "input %w: f32[4, 2]\ninput %i: i64[3]\ninput %o: i64[2]\n"
      "%y: f32[2, 2], %a, %b, %c = aten::embedding_bag(%w, %i, %o)\nreturn %y\n";
  const at::Tensor table = at::ones({4, 2});
  check_pair(text, {table, integers({0, 3, 1}), integers({0, 2})}, {table, integers({0, 4, 1}), integers({0, 2})},
             "'indices' holds 4");
  check_pair(text, {table, integers({0, 3, 1}), integers({0, 3})}, {table, integers({0, 3, 1}), integers({0, 1 << 30})},
             "'offsets' holds");
  const std::string wide =
      "input %w: f32[4, 2]\ninput %i: i64[...]\ninput %o: i64[...]\n"
      "%y, %a, %b, %c = aten::embedding_bag(%w, %i, %o)\nreturn %y\n";
  check_pair(wide, {table, integers({0, 3, 1}), integers({0, 2})},
             {table, integers({0, 3, 1}).view({1, 3}), at::zeros({2, 0}, at::kLong)}, "one dimension of indices");
  check_pair(wide, {table, integers({0, 3, 1}), integers({0, 2})}, {table, integers({0, 3, 1}), integers({})},
             "at least one");
  const std::string closed =
      "input %w: f32[4, 2]\ninput %i: i64[3]\ninput %o: i64[...]\n"
      "%y, %a, %b, %c = aten::embedding_bag(%w, %i, %o, false, 2, false, none, true)\nreturn %y\n";
  for (const auto& offsets : {std::vector<int64_t>{0}, {0, 2}})
    check_pair(closed, {table, integers({0, 3, 1}), integers({0, 1, 3})},
               {table, integers({0, 3, 1}), at::tensor(offsets, at::kLong)}, "must be the number of indices");
}

TEST_CASE("labels and lengths of CTC") {
  const std::string text =
      "input %p: f32[5, 2, 4]\ninput %t: i64[2, 3]\ninput %n: i64[2]\ninput %m: i64[2]\n"
      "%y: f32[] = aten::ctc_loss.Tensor(%p, %t, %n, %m)\nreturn %y\n";
  const at::Tensor scores = at::rand({5, 2, 4}).log(), labels = integers({1, 2, 3, 3, 2, -100}).view({2, 3});
  const at::Tensor steps = integers({5, 5}), counts = integers({3, 2});
  check_pair(text, {scores, labels, steps, counts}, {scores, labels, steps, integers({3, 3})}, "'targets' holds -100");
  check_pair(text, {scores, labels, steps, counts}, {scores, labels, integers({5, 6}), counts}, "6 long, of 5");
  check_pair(text, {scores, labels, steps, counts}, {scores, labels, steps, integers({3, 4})}, "4 long, of 3");
}

TEST_CASE("lengths and batch sizes of packed sequences") {
  const std::string pack =
      "input %x: f32[4, 2, 3]\ninput %n: i64[2]\n"
      "%y, %b: i64[...] = aten::_pack_padded_sequence(%x, %n, false)\nreturn %y\n";
  check_pair(pack, {at::ones({4, 2, 3}), integers({4, 2})}, {at::ones({4, 2, 3}), integers({5, 2})}, "'lengths'");
  const std::string unpack =
      "input %x: f32[6, 3]\ninput %b: i64[4]\n"
      "%y, %n = aten::_pad_packed_sequence(%x, %b, false, 0.0, 4)\nreturn %y\n";
  check_pair(unpack, {at::ones({6, 3}), integers({2, 2, 1, 1})}, {at::ones({6, 3}), integers({2, 2, 2, 1})},
             "batch_sizes");
}

TEST_CASE("gates of recurrent layers, cells and packed sequences") {
  struct Form {
    std::string name;
    int64_t gates;
  };
  for (const Form& form : {Form{"lstm", 4}, Form{"gru", 3}, Form{"rnn_tanh", 1}, Form{"rnn_relu", 1}}) {
    const bool two = form.gates == 4;
    const auto declare = [](const std::string& data) {
      return data + "input %h: f32[l, b, 5]\ninput %w: f32[r, 6]\ninput %u: f32[r, 5]\ninput %c: f32[r]\n";
    };
    const std::string states = two ? "[%h, %h]" : "%h", results = two ? "%y, %n, %m" : "%y, %n";
    const std::string settings = ", [%w, %u, %c, %c], true, 1, 0.0, false, false";
    const auto weights = [](int64_t rows) {
      return Inputs{at::ones({rows, 6}), at::ones({rows, 5}), at::ones({rows})};
    };
    const auto call = [&](Inputs data, const at::Tensor& state, int64_t rows) {
      data.emplace_back(state);
      for (c10::IValue& weight : weights(rows)) data.push_back(std::move(weight));
      return data;
    };
    const int64_t right = form.gates * 5, wrong = form.gates == 1 ? 4 : form.gates + 1;
    const Inputs steps = {at::ones({3, 2, 6})}, packed = {at::ones({3, 6}), integers({2, 1})}, row = {at::ones({2, 6})};
    const at::Tensor state = at::ones({1, 2, 5}), cell_state = at::ones({2, 5});
    check_pair(declare("input %x: f32[t, 2, 6]\n") + results + " = aten::" + form.name + ".input(%x, " + states +
                   settings + ", false)\nreturn %y\n",
               call(steps, state, right), call(steps, state, wrong), "input weights must be");
    check_pair(declare("input %x: f32[t, 6]\ninput %s: i64[2]\n") + results + " = aten::" + form.name +
                   ".data(%x, %s, " + states + settings + ")\nreturn %y\n",
               call(packed, state, right), call(packed, state, wrong), "input weights must be");
    check_pair(
        "input %x: f32[2, 6]\ninput %h: f32[2, 5]\ninput %w: f32[r, 6]\ninput %u: f32[r, 5]\n"
        "input %c: f32[r]\n" +
            std::string(two ? "%y, %n" : "%y") + " = aten::" + form.name + "_cell(%x, " + states +
            ", %w, %u, %c, %c)\nreturn %y\n",
        call(row, cell_state, right), call(row, cell_state, wrong), "input weights must be");
  }
}

TEST_CASE("segments") {
  const std::string text =
      "input %x: f32[4]\ninput %n: i64[2]\n%y = aten::segment_reduce(%x, \"sum\", lengths=%n)\nreturn %y\n";
  check_pair(text, {at::ones({4}), integers({1, 3})}, {at::ones({4}), integers({-1, 5})}, "'lengths'");
  EXPECT_ERROR(invalid_input,
               run("input %x: f32[4]\ninput %n: i64[2]\n"
                   "%y = aten::segment_reduce(%x, \"sum\", lengths=%n, unsafe=true)\nreturn %y\n",
                   {at::ones({4}), integers({1, 3})}),
               "unsafe=true");
}

TEST_CASE("sparse indices are looked at when they are used") {
  // The tensor shares its indices: a write in place behind the constructor's check.
  const std::string text =
      "input %i: i64[1, 2]\ninput %v: f32[2]\ninput %to: i64[1, 2]\n"
      "%s = aten::sparse_coo_tensor.indices_size(%i, %v, [4])\n"
      "%j: i64[1, 2] = aten::copy_(%i, %to)\n%y: f32[4] = aten::_to_dense(%s)\nreturn %y\n";
  const at::Tensor values = at::ones({2});
  check_pair(text, {integers({0, 1}).view({1, 2}), values, integers({2, 3}).view({1, 2})},
             {integers({0, 1}).view({1, 2}), values, integers({2, int64_t{1} << 40}).view({1, 2})}, "sparse tensor");
}

TEST_CASE("samples of a binomial distribution have counts") {
  const std::string text = "input %n: f32[2]\ninput %p: f32[2]\n%y: f32[2] = aten::binomial(%n, %p)\nreturn %y\n";
  check_pair(text, {at::tensor({5.0f, 40.0f}), at::tensor({0.5f, 0.25f})},
             {at::tensor({5.0f, NAN}), at::tensor({0.5f, 0.25f})}, "hold NaN");
}

TEST_CASE("transposed convolutions leave no wide gaps") {
  const auto convolve = [](at::ScalarType dtype, int64_t size, int64_t kernel, int64_t stride, int64_t dilation) {
    const std::string any = dtype == at::kFloat ? "f32[...]" : "bf16[...]";
    const std::string operands = "input %x: " + any + "\ninput %w: " + any + "\n";
    const Inputs inputs = {at::ones({2, 16, size, size}, dtype), at::ones({16, 3, kernel, kernel}, dtype)};
    const std::string numbers = ", none, [" + std::to_string(stride) + ", " + std::to_string(stride) + "]";
    const std::string dilations = "[" + std::to_string(dilation) + ", " + std::to_string(dilation) + "]";
    run(operands + "%y = aten::conv_transpose2d.input(%x, %w" + numbers + ", [1, 1], [0, 0], 1, " + dilations +
            ")\nreturn %y\n",
        inputs);
    run(operands + "%y = aten::convolution(%x, %w" + numbers + ", [1, 1], " + dilations +
            ", true, [0, 0], 1)\nreturn %y\n",
        inputs);
  };
  CHECK_NOTHROW(convolve(at::kBFloat16, 4, 2, 2, 1));
  CHECK_NOTHROW(convolve(at::kBFloat16, 4, 3, 32, 1));
  CHECK_NOTHROW(convolve(at::kBFloat16, 1, 2, 1, 2));
  CHECK_NOTHROW(convolve(at::kFloat, 1, 2, 1, 30));
  CHECK_NOTHROW(convolve(at::kFloat, 2, 64, 64, 1));
  EXPECT_ERROR(invalid_input, convolve(at::kFloat, 4, 3, 33, 1), "leave gaps");
  EXPECT_ERROR(invalid_input, convolve(at::kBFloat16, 1, 2, 1, 5), "wider than its input");
}

TEST_CASE("distances of pairs are those of rows") {
  const auto run_distances = [](const char* norm, const at::Tensor& rows) {
    return run("input %x: f32[...]\n%y = aten::_pdist_forward(%x, " + std::string(norm) + ")\nreturn %y\n", {rows});
  };
  CHECK_NOTHROW(run_distances("2.0", at::ones({4, 3})));
  EXPECT_ERROR(invalid_input, run_distances("2.0", at::ones({4, 3, 2})), "[rows, columns]");
  EXPECT_ERROR(invalid_input, run_distances("2.0", at::ones({4})), "[rows, columns]");
  EXPECT_ERROR(invalid_input, run_distances("nan", at::ones({4, 3})), "at least 0");
  EXPECT_ERROR(invalid_input, run_distances("-1.0", at::ones({4, 3})), "at least 0");
}

TEST_CASE("a pure copy takes dense tensors, a masked softmax rows that hold something") {
  const std::string copy = "input %x: f32[2, 2]\ninput %z: f32[2, 2]\n";
  const Inputs inputs = {at::ones({2, 2}), at::ones({2, 2})};
  CHECK_NOTHROW(run(copy + "%y = aten::copy(%x, %z)\nreturn %y\n", inputs));
  for (const char* op : {"to_sparse_csr", "to_sparse_csc", "to_sparse"}) {
    CAPTURE(op);
    EXPECT_ERROR(
        invalid_input,
        run(copy + "%s = aten::" + op + "(%x)\n%y = aten::copy(%s, %s)\n%d = aten::_to_dense(%y)\nreturn %d\n", inputs),
        "dense tensors");
  }
  const auto run_softmax = [&](int64_t columns) {
    return run(
        "dim n in 0..9\ninput %x: f32[2, n]\ninput %m: bool[2, n]\n%y = aten::_masked_softmax(%x, %m)\nreturn %y\n",
        {at::ones({2, columns}), at::zeros({2, columns}, at::kBool)});
  };
  CHECK_NOTHROW(run_softmax(3));
  EXPECT_ERROR(invalid_input, run_softmax(0), "are empty");
}

TEST_CASE("scales of resampling, samples of pools, dimensions of transforms") {
  const auto resample = [](const std::string& scale) {
    return "input %x: f32[1, 1, 4]\n%y = aten::upsample_nearest1d(%x, [8], " + scale + ")\nreturn %y\n";
  };
  CHECK_NOTHROW(run(resample("2.0"), {at::ones({1, 1, 4})}));
  EXPECT_ERROR(invalid_input, run(resample("1e-300"), {at::ones({1, 1, 4})}), "a scale is");
  const std::string pool =
      "input %x: f32[1, 1, 4, 4]\ninput %r: f32[1, 1, 2]\n"
      "%y, %i = aten::fractional_max_pool2d(%x, [2, 2], [2, 2], %r)\nreturn %y\n";
  check_pair(pool, {at::ones({1, 1, 4, 4}), at::tensor({0.5F, 0.5F}).view({1, 1, 2})},
             {at::ones({1, 1, 4, 4}), at::tensor({1e10F, 0.5F}).view({1, 1, 2})}, "the samples hold");
  const auto transform = [](const std::string& dimension) {
    return "input %x: f32[4]\n%y = aten::_fft_r2c(%x, [" + dimension + "], 0, true)\nreturn %y\n";
  };
  CHECK_NOTHROW(run(transform("0"), {at::ones({4})}));
  EXPECT_ERROR(invalid_input, run(transform("7"), {at::ones({4})}), "dimension 7");
}

TEST_CASE("channels of batch norms and sizes of attention") {
  const std::string norm =
      "input %x: f32[2, 3]\ninput %w: f32[n]\n"
      "%y, %a, %b = aten::native_batch_norm(%x, %w, none, none, none, true, 0.1, 1e-5)\nreturn %y\n";
  check_pair(norm, {at::ones({2, 3}), at::ones({3})}, {at::ones({2, 3}), at::ones({1})}, "3 channels");
  const std::string attention =
      "input %q: f32[1, 2, 4, 8]\ninput %k: f32[1, 2, n, 8]\ninput %v: f32[1, 2, m, 8]\n"
      "%y, %l = aten::_scaled_dot_product_flash_attention_for_cpu(%q, %k, %v)\nreturn %y\n";
  const at::Tensor four = at::ones({1, 2, 4, 8});
  check_pair(attention, {four, four, four}, {four, four, at::ones({1, 2, 1, 8})}, "do not fit together");
}

TEST_CASE("blocks of two pivots") {
  const std::string text =
      "input %a: f32[3, 3]\ninput %p: i32[3]\ninput %b: f32[3, 1]\n"
      "%y = aten::linalg_ldl_solve(%a, %p, %b)\nreturn %y\n";
  const auto call = [](int a, int b, int c) {
    return Inputs{at::eye(3), at::tensor({a, b, c}, at::kInt), at::ones({3, 1})};
  };
  check_pair(text, call(1, -2, -2), call(-1, 2, 3), "a run of negative numbers of length 1");
  check_pair(text, call(-1, -1, 3), call(-1, -2, -3), "of length 3");
}

TEST_CASE("operands whose elements share memory are copied where a kernel takes them for dense, and not written to") {
  // Behind the one element that the tensor has lies another number.
  const at::Tensor one = at::tensor({1.0F, 7.0F}).narrow(0, 0, 1);
  const auto equals = [](const Inputs& outputs, double number) {
    return outputs.at(0).toTensor().eq(number).all().item<bool>();
  };
  const std::string attention =
      "input %q: f32[1, 1, 8, 8]\ninput %v: f32[1, 1, 8, 8]\n"
      "%y, %l = aten::_scaled_dot_product_flash_attention_for_cpu(%q, %q, %v)\nreturn %y\n";
  CHECK(equals(run(attention, {at::ones({1, 1, 8, 8}), one.view({1, 1, 1, 1}).expand({1, 1, 8, 8})}), 1));
  const std::string norm =
      "input %v: f32[4, 4]\ninput %g: f32[4, 1]\n%y, %n = aten::_weight_norm_interface(%v, %g)\nreturn %y\n";
  CHECK(equals(run(norm, {one.view({1, 1}).expand({4, 4}), at::ones({4, 1})}), 0.5));
  CHECK(equals(run(norm, {at::ones({4, 4}), one.view({1, 1}).expand({4, 1})}), 0.5));
  const std::string product = "input %a: i8[32, 32]\ninput %b: i8[32, 32]\n%y = aten::_int_mm(%a, %b)\nreturn %y\n";
  const at::Tensor byte = one.to(at::kChar);
  CHECK(equals(run(product, {byte.view({1, 1}).expand({32, 32}), at::ones({32, 32}, at::kChar)}), 32));
  const std::string bag =
      "input %w: f32[4, 2]\ninput %i: i64[6]\ninput %o: i64[1]\n"
      "%y, %a, %b, %c = aten::_embedding_bag_forward_only(%w, %i, %o)\nreturn %y\n";
  CHECK(equals(run(bag, {at::ones({4, 2}), integers({1, 1 << 30}).narrow(0, 0, 1).expand({6}), integers({0})}), 6));
  const CheckedCall draw(Op::find("aten::rrelu_with_noise"));
  Inputs call = {at::ones({4, 4}), at::ones({4, 4}), 0.1, 0.3, true, c10::IValue()};
  CHECK_NOTHROW(draw(call));
  call = {at::ones({4, 4}), one.view({1, 1}).expand({4, 4}), 0.1, 0.3, true, c10::IValue()};
  EXPECT_ERROR(invalid_input, draw(call), "'noise' is written to");
}

TEST_CASE("pivots") {
  const std::string text =
      "input %a: f32[2, 2]\ninput %p: i32[2]\ninput %b: f32[2, 1]\n"
      "%y = aten::linalg_lu_solve(%a, %p, %b)\nreturn %y\n";
  const auto pivots = [](int a, int b) { return at::tensor({a, b}, at::kInt); };
  check_pair(text, {at::ones({2, 2}).triu(), pivots(1, 2), at::ones({2, 1})},
             {at::ones({2, 2}).triu(), pivots(1, 1 << 30), at::ones({2, 1})}, "'pivots' holds");
}

TEST_CASE("memory that an op leaves unset is zero-filled") {
  for (const char* call :
       {"aten::empty.memory_format([4096])", "aten::empty_strided([4096], [1])", "aten::empty_permuted([4096], [0])",
        "aten::empty_like(%x)", "aten::resize(%z, [4096])", "aten::resize_as(%z, %x)", "aten::new_empty(%x, [4096])",
        "aten::new_empty_strided(%x, [4096], [1])"}) {
    CAPTURE(call);
    for (int trial = 0; trial < 4; ++trial) {
      at::ones({4096});  // what the allocator gives next
      const auto outputs = run("input %x: f32[4096]\n%z = aten::zeros([2])\n%e = " + std::string(call) +
                                   "\n%y = aten::ne.Scalar(%e, 0)\n%a = aten::any(%y)\nreturn %a\n",
                               {at::ones({4096})});
      CHECK_FALSE(outputs.at(0).toTensor().item<bool>());
    }
  }
}

TEST_CASE("what a CTC loss leaves unset of its second result is zero-filled, and its gradient stays") {
  const std::string text =
      "input %p: f32[6, 2, 4]\n%t = aten::ones([2, 3], dtype=i64)\n"
      "%l, %a = aten::_ctc_loss(%p, %t, [6, 4], [3, 1])\n%s: f32[] = aten::sum(%l)\nreturn %s, %a\n";
  const at::Tensor scores = at::randn({6, 2, 4}).log_softmax(2).requires_grad_();
  const auto outputs = interpret(parse_program(text), {scores}, {.gradients = true});
  const at::Tensor alpha = outputs.at(1).toTensor().detach();
  CHECK(alpha.sizes() == at::IntArrayRef{2, 6, 7});
  CHECK(alpha[1].narrow(0, 4, 2).eq(0).all().item<bool>());
  CHECK(alpha[1].narrow(1, 3, 4).eq(0).all().item<bool>());
  CHECK_FALSE(alpha[1].narrow(0, 0, 4).narrow(1, 0, 3).eq(0).any().item<bool>());
  outputs.at(0).toTensor().backward();
  const at::Tensor gradient = scores.grad().clone();
  const at::Tensor again = scores.detach().clone().requires_grad_();
  std::get<0>(at::_ctc_loss(again, at::ones({2, 3}, at::kLong), {6, 4}, {3, 1})).sum().backward();
  CHECK(gradient.equal(again.grad()));
}

TEST_CASE("numbers that stand for a mode") {
  const std::string loss = "input %x: f16[0]\ninput %y: f32[]\n%l = aten::soft_margin_loss(%x, %y, MODE)\nreturn %l\n";
  const std::string sample =
      "input %x: f32[1, 1, 2, 2]\ninput %y: f32[1, 2, 2, 2]\n%l = aten::grid_sampler(%x, %y, MODE, 0, false)\n"
      "return %l\n";
  const auto with = [](std::string text, const std::string& mode) { return text.replace(text.find("MODE"), 4, mode); };
  const std::vector<c10::IValue> pair = {at::empty({0}, at::kHalf), at::ones({})},
                                 image = {at::ones({1, 1, 2, 2}), at::zeros({1, 2, 2, 2})};
  CHECK_NOTHROW(run(with(loss, "2"), pair));
  EXPECT_ERROR(invalid_input, run(with(loss, "2147483648"), pair), "'reduction' is 2147483648, allowed are 0 to 2");
  CHECK_NOTHROW(run(with(sample, "1"), image));
  EXPECT_ERROR(invalid_input, run(with(sample, "3"), image), "'interpolation_mode' is 3");
}

TEST_CASE("powers of matrices") {
  const std::string text = "input %x: f32[2, 2]\n%y = aten::linalg_matrix_power(%x, ";
  CHECK_NOTHROW(run(text + "-3)\nreturn %y\n", {at::eye(2)}));
  EXPECT_ERROR(invalid_input, run(text + "-9223372036854775808)\nreturn %y\n", {at::eye(2)}),
               "no positive counterpart");
}

TEST_CASE("the range of what is drawn holds a number") {
  const std::string text = "input %x: f16[2]\n%y = aten::random.from(%x, ";
  CHECK_NOTHROW(run(text + "3, 5)\nreturn %y\n", {at::ones({2}, at::kHalf)}));
  EXPECT_ERROR(invalid_input, run(text + "9223372036854775807, none)\nreturn %y\n", {at::ones({2}, at::kHalf)}),
               "do not exist");
}

TEST_CASE("degrees of polynomials") {
  const std::string text =
      "input %x: f64[2]\ninput %n: f64[2]\n%y = aten::special_hermite_polynomial_h(%x, %n)\nreturn %y\n";
  const auto numbers = [](double a, double b) { return at::tensor({a, b}, at::kDouble); };
  check_pair(text, {numbers(0.5, 1), numbers(3, 4096)}, {numbers(0.5, 1), numbers(3, 1e12)}, "'n' must lie within");
  check_pair(text, {numbers(0.5, 1), numbers(3, -1)}, {numbers(0.5, 1), numbers(3, std::nan(""))}, "'n' must lie");
}

TEST_CASE("the smallest integer has no positive counterpart, and complex numbers have no multiple") {
  const std::string text = "input %x: i16[...]\n%a: i16[...] = aten::lcm(%x, %x)\nreturn %a\n";
  check_pair(text, {at::tensor({-7, 3}, at::kShort)}, {at::tensor({-32768, 3}, at::kShort)}, "smallest integer");
  const std::string complex = "input %x: c128[2]\n%a = aten::lcm(%x, %x)\nreturn %a\n";
  EXPECT_ERROR(unsupported, run(complex, {at::zeros({2}, at::kComplexDouble)}), "lcm");
}

TEST_CASE("lists of more tensors than fit") {
  const Inputs wide = {at::zeros({1, 1}).expand({1, 1 << 20})}, narrow = {at::rand({1, 6})};
  for (const char* call : {"aten::unbind.int(%x, 1)", "aten::unbind_copy.int(%x, -1)", "aten::split.Tensor(%x, 3, 1)",
                           "aten::split_copy.Tensor(%x, 2, 1)", "aten::unsafe_split.Tensor(%x, 1, 1)"}) {
    check_pair("input %x: f32[...]\n%l = " + std::string(call) + "\nreturn %l\n", narrow, wide,
               "tensors in a list, allowed are 65536");
  }
  for (const std::string call : {"aten::tensor_split.sections(%y, ", "aten::vsplit.int(%y, "}) {
    const std::string start = "input %x: f32[...]\n%y = aten::slice.Tensor(%x, 0, 0, 0)\n%l = " + call;
    const Inputs rows = {at::rand({1, 6})};
    CHECK_NOTHROW(run(start + "2)\nreturn %l\n", rows));
    EXPECT_ERROR(invalid_input, run(start + "1099511627776)\nreturn %l\n", rows), "1099511627776 tensors in a list");
  }
  const auto combine = [](const std::string& members) {
    return run("input %x: f32[1]\n%l = aten::combinations(%x, " + members + ")\nreturn %l\n", {at::rand({1})});
  };
  CHECK_NOTHROW(combine("5"));
  for (const char* members : {"65", "65536", "1099511627776"}) {
    EXPECT_ERROR(invalid_input, combine(members), "members, allowed are 64");
  }
  const std::string choose = "input %x: f32[...]\n%l = aten::combinations(%x, 9)\nreturn %l\n";
  CHECK_NOTHROW(run(choose, {at::rand({6})}));
  EXPECT_ERROR(invalid_input, run(choose, {at::rand({7})}), "from a grid of");
  CHECK_NOTHROW(run("input %x: f32[...]\n%l = aten::chunk(%x, 1099511627776, 1)\nreturn %l\n", narrow));
  EXPECT_ERROR(invalid_input, run("input %x: f32[...]\n%l = aten::chunk(%x, 70000, 1)\nreturn %l\n", wide), "70000");
  for (const std::string op : {"aten::chunk", "aten::unsafe_chunk"}) {
    const std::string call = "input %x: f32[...]\n%l = " + op + "(%x, 1099511627776, 1)\nreturn %l\n";
    EXPECT_ERROR(invalid_input, run(call, {at::zeros({2, 0})}), "1099511627776 tensors in a list");
  }
}

TEST_CASE("repeats whose sum wraps around, or is none") {
  const std::string of_rows = "aten::repeat_interleave.self_Tensor(%y, %x, 0)",
                    alone = "aten::repeat_interleave.Tensor(%x)";
  for (const std::string& call : {of_rows, alone}) {
    for (const at::ScalarType dtype : {at::kLong, at::kInt}) {
      const std::string text = std::string("input %x: ") + (dtype == at::kLong ? "i64" : "i32") +
                               "[4]\n%y = aten::slice.Tensor(%x, 0, 0, 4)\n%a = " + call + "\nreturn %a\n";
      CHECK_NOTHROW(run(text, {at::tensor({2, 0, 1, 3}, dtype)}));
      EXPECT_ERROR(invalid_input, run(text, {at::tensor({2, -1, 1, 3}, dtype)}), "negative");
    }
    const std::string text = "input %x: i64[4]\n%y = aten::slice.Tensor(%x, 0, 0, 4)\n%a = " + call + "\nreturn %a\n";
    const int64_t quarter = int64_t{1} << 62;
    EXPECT_ERROR(invalid_input, run(text, {at::full({4}, quarter, at::kLong)}), "repeats add up to");
    EXPECT_ERROR(invalid_input, run(text, {at::tensor({quarter, quarter, quarter, quarter - 1})}), "repeats add up to");
  }
}

TEST_CASE("numbers from which zeta would add terms for ever") {
  const Inputs near = {at::tensor({2.5, -4000.5, -1e9, -INFINITY, NAN}, at::kDouble)};
  const Inputs far = {at::tensor({2.5, -4000.5, -1e9, -INFINITY, -1e9 - 0.5}, at::kDouble)};
  for (const char* call : {"aten::polygamma(2, %x)", "aten::polygamma_(%x, 2)", "aten::special_polygamma(2, %x)",
                           "aten::special_zeta(%x, %x)", "aten::special_zeta.self_scalar(3, %x)"}) {
    check_pair("input %x: f64[5]\n%a: f64[5] = " + std::string(call) + "\nreturn %a\n", near, far, "below -4096");
  }
  CHECK_NOTHROW(run("input %x: f64[5]\n%a: f64[5] = aten::polygamma(1, %x)\nreturn %a\n", far));
  const auto add = [](const std::string& q) {
    return "input %x: f64[5]\n%a: f64[5] = aten::special_zeta.other_scalar(%x, " + q + ")\nreturn %a\n";
  };
  CHECK_NOTHROW(run(add("-5000"), near));
  EXPECT_ERROR(invalid_input, run(add("-5000.5"), near), "'q' is -5000.5: zeta");
}

TEST_CASE("bytes are not taken for bool") {
  const auto text = [](const char* dtype) {
    return "input %x: u8[4]\n%y = aten::view.dtype(%x, " + std::string(dtype) + ")\nreturn %y\n";
  };
  CHECK_NOTHROW(run(text("i8"), {at::ones({4}, at::kByte)}));
  EXPECT_ERROR(invalid_input, run(text("bool"), {at::ones({4}, at::kByte)}), "not taken for bool");
}

TEST_CASE("dtypes, devices and tensors that hold nothing") {
  EXPECT_ERROR(invalid_input, run("input %x: f32[2]\n%y = aten::to.dtype(%x, 99)\nreturn %y\n", {at::ones({2})}),
               "no dtype");
  EXPECT_ERROR(invalid_input,
               run("input %x: f32[2]\n%y = aten::to.device(%x, meta, f32)\nreturn %y\n", {at::ones({2})}),
               "allowed are cpu and cuda");
  EXPECT_ERROR(invalid_input, run("input %x: f32[2]\n%y = aten::add.Tensor(%x, none)\nreturn %y\n", {at::ones({2})}),
               "'other' is absent");
  EXPECT_ERROR(
      invalid_input,
      run("%x = aten::empty.memory_format([1073741824, 1073741824, 0])\n%y = aten::cumsum(%x, 0)\nreturn %y\n", {}),
      "2^32");
}

TEST_CASE("weights packed for oneDNN go to the op that they were packed for") {
  const std::string text =
      "input %x: f32[3, 8]\ninput %w: f32[4, n]\n%p = mkldnn::_reorder_linear_weight(%w)\n"
      "%y = mkldnn::_linear_pointwise(%x, %p, none, \"relu\", [], none)\nreturn %y\n";
  check_pair(text, {at::ones({3, 8}), at::ones({4, 8})}, {at::ones({3, 8}), at::ones({4, 9})}, "for inputs");
  EXPECT_ERROR(invalid_input,
               run("input %w: f32[4, 8]\n%p = mkldnn::_reorder_linear_weight(%w)\n%y = aten::relu(%p)\nreturn %y\n",
                   {at::ones({4, 8})}),
               "packed for another op");
}

}  // namespace
}  // namespace lissome
