// The kernel of three convolutions against those that do two and one, level by level.
#include "lissome/kernel/depthwise/inverted_f32.h"

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/gemm/row_check.h"

using namespace lissome;

namespace {

struct Operands {
  std::vector<float> x, widen_weight, widen_bias, first_weight, first_bias, weight, bias, residual;
  InvertedF32Call call;

  Operands(TestNumbers& numbers, const Window& w, int64_t inputs, int64_t channels, int64_t outputs)
      : x(numbers.reals(w.batch * w.height * w.width * inputs)),
        widen_weight(static_cast<size_t>(packed_linear_f32_size(channels, inputs))),
        widen_bias(numbers.reals(channels)),
        first_weight(numbers.reals(w.kernel_height * w.kernel_width * channels)),
        first_bias(numbers.reals(channels)),
        weight(static_cast<size_t>(packed_linear_f32_size(outputs, channels))),
        bias(numbers.reals(outputs)),
        residual(numbers.reals(w.batch * w.out_height * w.out_width * outputs)) {
    const auto wide = numbers.reals(channels * inputs), narrow = numbers.reals(channels * outputs);
    pack_linear_f32(wide.data(), channels, inputs, inputs, 1, widen_weight.data());
    pack_linear_f32(narrow.data(), outputs, channels, channels, 1, weight.data());
    call.x = x.data(), call.weight = weight.data(), call.first_weight = first_weight.data();
    call.widen_weight = widen_weight.data(), call.residual = residual.data();
    if (numbers.between(0, 1)) call.bias = bias.data();
    if (numbers.between(0, 1)) call.first_bias = first_bias.data();
    if (numbers.between(0, 1)) call.widen_bias = widen_bias.data();
    call.inputs = inputs, call.channels = channels, call.outputs = call.y_stride = call.residual_stride = outputs;
    call.window = w;
    for (Epilogue* epilogue : {&call.widen_epilogue, &call.first_epilogue, &call.epilogue})
      *epilogue = {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f};
    call.residual_place = static_cast<ResidualPlace>(numbers.between(0, 2));
  }
};

std::vector<float> run_apart(const Operands& operands, Isa isa) {
  const InvertedF32Call& call = operands.call;
  const Window& w = call.window;
  std::vector<float> between(static_cast<size_t>(w.batch * w.height * w.width * call.channels));
  LinearF32Call widening;
  widening.x = call.x, widening.weight = call.widen_weight, widening.bias = call.widen_bias;
  widening.y = between.data(), widening.epilogue = call.widen_epilogue;
  widening.rows = w.batch * w.height * w.width, widening.inputs = widening.x_stride = call.inputs;
  widening.outputs = widening.y_stride = call.channels;
  find_level("linear_f32", isa)(&widening, 0, 1);
  SeparableF32Call rest = call;
  std::vector<float> scratch(static_cast<size_t>(separable_f32_scratch(rest))), y(operands.residual.size());
  rest.x = between.data(), rest.scratch = scratch.data(), rest.y = y.data();
  find_level("separable_f32", isa)(&rest, 0, 1);
  return y;
}

std::vector<float> run_joined(const Operands& operands, Isa isa, int parts) {
  InvertedF32Call call = operands.call;
  std::vector<float> scratch(static_cast<size_t>(parts * separable_f32_scratch(call)), 777.0f);
  std::vector<float> band(static_cast<size_t>(parts * inverted_f32_band(call)), 777.0f), y(operands.residual.size());
  call.scratch = scratch.data(), call.band = band.data(), call.y = y.data();
  for (int part = 0; part < parts; ++part) find_level("inverted_f32", isa)(&call, part, parts);
  return y;
}

void check_levels(const Operands& operands, float tolerance) {
  for (const KernelRow& row : kernel_rows("inverted_f32")) {
    if (!can_run(row.isa)) continue;
    const std::vector<float> wanted = run_apart(operands, row.isa);
    for (const int parts : {1, 2, 5}) {
      CAPTURE(isa_name(row.isa));
      CAPTURE(parts);
      CHECK(count_differences(run_joined(operands, row.isa, parts), wanted, tolerance) == 0);
    }
  }
}

Window draw_window(TestNumbers& numbers) {
  Window w;
  w.batch = numbers.between(1, 3), w.height = numbers.between(1, 14), w.width = numbers.between(1, 40);
  w.kernel_height = numbers.between(1, 5), w.kernel_width = numbers.between(1, 5);
  w.stride_height = numbers.between(1, 3), w.stride_width = numbers.between(1, 2);
  w.dilation_height = w.kernel_height < 4 ? numbers.between(1, 2) : 1;
  w.pad_height = numbers.between(0, (w.kernel_height - 1) * w.dilation_height), w.pad_width = w.kernel_width - 1;
  w.out_height = (w.height + w.pad_height) / w.stride_height + 1;  // windows may lie below x
  w.out_width = (w.width + w.pad_width) / w.stride_width + 1;
  return w;
}

}  // namespace

TEST_CASE("inverted_f32 gives what linear_f32 and separable_f32 give") {
  TestNumbers numbers(43);
  for (int i = 0; i < 100; ++i) {
    Operands operands(numbers, draw_window(numbers), numbers.between(1, 40), numbers.between(1, 150),
                      numbers.between(1, 70));
    if (i % 5 == 0) operands.x[operands.x.size() / 2] = std::nanf(""), operands.x[operands.x.size() / 3] = INFINITY;
    check_levels(operands, 1e-4f);
  }
}

TEST_CASE("inverted_f32 goes on with the lines that it has where a band holds a part of an image") {
  TestNumbers numbers(44);
  check_levels(Operands(numbers, finish_window(square(2, 60, 3, 1)), 16, 144, 24), 1e-4f);
  check_levels(Operands(numbers, finish_window(square(1, 61, 5, 2)), 16, 200, 24), 1e-4f);
}
