// The joined kernel against the two that it joins, level by level.
#include "lissome/kernel/depthwise/separable_f32.h"

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/gemm/row_check.h"

using namespace lissome;

namespace {

// Some lie partly, some wholly in the border.
Window draw_window(TestNumbers& numbers) {
  Window w;
  w.batch = numbers.between(1, 3), w.height = numbers.between(1, 14), w.width = numbers.between(1, 40);
  w.kernel_height = numbers.between(1, 5), w.kernel_width = numbers.between(1, 5);
  w.stride_height = numbers.between(1, 2), w.stride_width = numbers.between(1, 2);
  w.dilation_height = w.kernel_height < 4 ? numbers.between(1, 2) : 1;
  w.dilation_width = w.kernel_width < 4 ? numbers.between(1, 2) : 1;
  w.pad_height = (w.kernel_height - 1) * w.dilation_height, w.pad_width = (w.kernel_width - 1) * w.dilation_width;
  return finish_window(w);
}

// The operands of a call, kept alive for it.
struct Operands {
  std::vector<float> x, first_weight, first_bias, weight, bias, residual;
  SeparableF32Call call;

  Operands(TestNumbers& numbers, const Window& w, int64_t channels, int64_t outputs)
      : x(numbers.reals(w.batch * w.height * w.width * channels)),
        first_weight(numbers.reals(w.kernel_height * w.kernel_width * channels)),
        first_bias(numbers.reals(channels)),
        weight(static_cast<size_t>(packed_linear_f32_size(outputs, channels))),
        bias(numbers.reals(outputs)),
        residual(numbers.reals(w.batch * w.out_height * w.out_width * outputs)) {
    const auto plain = numbers.reals(channels * outputs);
    pack_linear_f32(plain.data(), outputs, channels, channels, 1, weight.data());
    call.x = x.data(), call.weight = weight.data(), call.first_weight = first_weight.data();
    if (numbers.between(0, 1)) call.bias = bias.data();
    if (numbers.between(0, 1)) call.first_bias = first_bias.data();
    call.channels = channels, call.outputs = call.y_stride = call.residual_stride = outputs, call.window = w;
    call.epilogue = {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f};
    call.first_epilogue = {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f};
    call.residual_place = static_cast<ResidualPlace>(numbers.between(0, 2));
  }
  int64_t pixels() const { return call.window.batch * call.window.out_height * call.window.out_width; }
};

std::vector<float> run_apart(const Operands& operands, Isa isa) {
  const SeparableF32Call& call = operands.call;
  std::vector<float> between(static_cast<size_t>(operands.pixels() * call.channels)), y(operands.residual.size());
  DepthwiseF32Call first;
  first.x = call.x, first.weight = call.first_weight, first.bias = call.first_bias, first.y = between.data();
  first.channels = first.y_stride = call.channels, first.window = call.window, first.epilogue = call.first_epilogue;
  find_level("depthwise_f32", isa)(&first, 0, 1);
  LinearF32Call product;
  static_cast<OutputF32&>(product) = call;
  product.x = between.data(), product.weight = call.weight, product.y = y.data();
  product.residual = operands.residual.data();
  product.rows = operands.pixels(), product.inputs = product.x_stride = call.channels, product.outputs = call.outputs;
  find_level("linear_f32", isa)(&product, 0, 1);
  return y;
}

std::vector<float> run_joined(const Operands& operands, Isa isa, int parts) {
  SeparableF32Call call = operands.call;
  std::vector<float> scratch(static_cast<size_t>(parts * separable_f32_scratch(call)), 777.0f);
  std::vector<float> y = operands.residual;  // which may lie there
  call.scratch = scratch.data(), call.residual = call.y = y.data();
  for (int part = 0; part < parts; ++part) find_level("separable_f32", isa)(&call, part, parts);
  return y;
}

// A block of one pixel sums in another order than many do.
void check_levels(const Operands& operands, float tolerance) {
  for (const KernelRow& row : kernel_rows("separable_f32")) {
    if (!can_run(row.isa)) continue;
    const std::vector<float> wanted = run_apart(operands, row.isa);
    for (const int parts : {1, 2, 5}) {
      CAPTURE(isa_name(row.isa));
      CAPTURE(parts);
      CHECK(count_differences(run_joined(operands, row.isa, parts), wanted, tolerance) == 0);
    }
  }
}

}  // namespace

TEST_CASE("separable_f32 gives what depthwise_f32 and linear_f32 give") {
  TestNumbers numbers(41);
  for (int i = 0; i < 150; ++i) {
    Operands operands(numbers, draw_window(numbers), numbers.between(1, 150), numbers.between(1, 130));
    if (i % 5 == 0) operands.x[operands.x.size() / 2] = std::nanf(""), operands.x[operands.x.size() / 3] = INFINITY;
    check_levels(operands, 1e-5f);
  }
}

TEST_CASE("separable_f32 gives the bits of both where a block has several lines, a piece of one, or part of an image") {
  TestNumbers numbers(42);
  check_levels(Operands(numbers, finish_window(square(3, 14, 3, 1)), 576, 96), 0);
  check_levels(Operands(numbers, finish_window(square(1, 40, 5, 2)), 300, 24), 0);
  Window line = square(2, 1, 3, 1);
  line.width = 333;
  check_levels(Operands(numbers, finish_window(line), 400, 20), 0);
  check_levels(Operands(numbers, finish_window(square(0, 14, 3, 1)), 16, 24), 0);
}
