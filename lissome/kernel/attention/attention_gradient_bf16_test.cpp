// Every row of "attention_gradient_bf16" against the portable one, on what the forward pass gave.
#include "lissome/kernel/attention/attention_gradient_bf16.h"

#include <doctest/doctest.h>

#include <cmath>

#include "lissome/kernel/isa/bf16_arrays.h"
#include "lissome/kernel/kernel_table.h"

using namespace lissome;

namespace {

// [batch, heads, rows, size], dense, or with heads beside each other in a row.
HeadStrides lay_out(bool heads_last, int64_t heads, int64_t rows, int64_t size) {
  if (heads_last) return {heads * rows * size, size, heads * size};
  return {heads * rows * size, rows * size, size};
}

struct Arrays {
  std::vector<uint16_t> q, k, v, y, dy, mask;
  std::vector<uint8_t> chosen;
  std::vector<float> logarithms;
};

AttentionGradientBf16Call describe(int64_t i, TestNumbers& numbers) {
  AttentionGradientBf16Call call;
  call.batch = numbers.between(1, 2), call.heads = call.key_heads = numbers.between(1, 3);
  call.queries = numbers.between(1, 130), call.keys = i % 3 == 0 ? call.queries : numbers.between(1, 130);
  call.size = numbers.between(1, 80), call.value_size = i % 4 == 0 ? numbers.between(1, 80) : call.size;
  call.causal = i % 3 != 1, call.scale = 0.3f;
  const bool last = i % 2 == 0;
  call.q_strides = call.dq_strides = lay_out(last, call.heads, call.queries, call.size);
  call.k_strides = call.dk_strides = lay_out(last, call.heads, call.keys, call.size);
  call.v_strides = call.dv_strides = lay_out(last, call.heads, call.keys, call.value_size);
  call.y_strides = call.dy_strides = lay_out(last, call.heads, call.queries, call.value_size);
  call.mask_strides = {call.heads * call.queries * call.keys, call.queries * call.keys, call.keys};
  if (i % 5 == 1) call.mask_kind = MaskKind::added;
  if (i % 5 == 2) call.mask_kind = MaskKind::chosen;
  return call;
}

Arrays make_arrays(AttentionGradientBf16Call& call, TestNumbers& numbers) {
  const int64_t heads = call.batch * call.heads;
  Arrays arrays;
  arrays.q = make_bf16(numbers, heads * call.queries * call.size);
  arrays.k = make_bf16(numbers, heads * call.keys * call.size);
  arrays.v = make_bf16(numbers, heads * call.keys * call.value_size);
  arrays.y = make_bf16(numbers, heads * call.queries * call.value_size);
  arrays.dy = make_bf16(numbers, heads * call.queries * call.value_size);
  arrays.mask = make_bf16(numbers, heads * call.queries * call.keys);
  for (uint16_t& value : arrays.mask) {
    arrays.chosen.push_back(static_cast<uint8_t>(numbers.between(0, 2)));
    if (numbers.between(0, 5) == 0) value = 0xff80;
  }
  // The first query sees nothing at all.
  for (size_t n = 0; n < static_cast<size_t>(call.keys); ++n) arrays.chosen[n] = 0, arrays.mask[n] = 0xff80;
  arrays.logarithms.resize(static_cast<size_t>(heads * call.queries));
  call.q = arrays.q.data(), call.k = arrays.k.data(), call.v = arrays.v.data(), call.y = arrays.y.data();
  call.dy = arrays.dy.data(), call.logarithms = arrays.logarithms.data();
  call.mask = call.mask_kind == MaskKind::added ? static_cast<const void*>(arrays.mask.data()) : arrays.chosen.data();
  return arrays;
}

// How far `seen` is from `wanted` at most, as a share of the largest of `wanted`; infinite where one alone is no
// number.
float find_error(const std::vector<uint16_t>& seen, const std::vector<uint16_t>& wanted) {
  float error = 0, largest = 1e-6f;
  for (size_t i = 0; i < seen.size(); ++i) {
    const float x = widen_bf16(seen[i]), y = widen_bf16(wanted[i]);
    if (std::isnan(x) != std::isnan(y)) return INFINITY;
    if (std::isnan(x)) continue;
    error = std::fmax(error, std::fabs(x - y)), largest = std::fmax(largest, std::fabs(y));
  }
  return error / largest;
}

struct Gradients {
  std::vector<uint16_t> dq, dk, dv;
};

Gradients run(const KernelRow& row, AttentionGradientBf16Call call, const Arrays& arrays, int parts) {
  Gradients y = {std::vector<uint16_t>(arrays.q.size(), 0x4444), std::vector<uint16_t>(arrays.k.size(), 0x4444),
                 std::vector<uint16_t>(arrays.v.size(), 0x4444)};
  const AlignedBytes scratch(parts *
                             attention_gradient_bf16_scratch(call.queries, call.keys, call.size, call.value_size));
  call.scratch = scratch.data();
  call.dq = y.dq.data(), call.dk = y.dk.data(), call.dv = y.dv.data();
  for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
  return y;
}

// Weights, and gradients of scores, lose half a unit of 8 bits each where the processor multiplies bf16, and so do
// results, here against the largest of them.
constexpr float kRounding = 1.0f / 256;

}  // namespace

TEST_CASE("the gradient of bf16 attention agrees with the portable form, in any order, masked, causal") {
  TestNumbers numbers(63);
  for (int64_t i = 0; i < 40; ++i) {
    CAPTURE(i);
    AttentionGradientBf16Call call = describe(i, numbers);
    const Arrays arrays = make_arrays(call, numbers);
    const auto forward = kernel_rows("attention_bf16");
    forward.back().function(static_cast<const AttentionBf16Call*>(&call), 0, 1);  // y and the logarithms
    const auto rows = kernel_rows("attention_gradient_bf16");
    const Gradients wanted = run(rows.back(), call, arrays, 1);
    for (const KernelRow& row : rows) {
      if (!can_run(row.isa)) continue;
      for (const int parts : {1, 2, 5}) {
        CAPTURE(isa_name(row.isa));
        CAPTURE(parts);
        const float tolerance = row.isa == Isa::avx512_bf16 ? 2 * kRounding : kRounding;
        const Gradients seen = run(row, call, arrays, parts);
        CHECK(find_error(seen.dq, wanted.dq) <= tolerance);
        CHECK(find_error(seen.dk, wanted.dk) <= tolerance);
        CHECK(find_error(seen.dv, wanted.dv) <= tolerance);
      }
    }
  }
}

TEST_CASE("attention in bf16 gives the logarithm of each query's sum, which its gradient reads") {
  TestNumbers numbers(64);
  for (int64_t i = 0; i < 12; ++i) {
    CAPTURE(i);
    AttentionGradientBf16Call call = describe(i, numbers);
    Arrays arrays = make_arrays(call, numbers);
    const auto rows = kernel_rows("attention_bf16");
    const AlignedBytes scratch(5 * attention_bf16_scratch(call.keys, call.size, call.value_size));
    call.scratch = scratch.data();
    const auto forward = [&](const KernelRow& row, int parts) {
      std::vector<float> logarithms(arrays.logarithms.size(), 777.0f);
      call.logarithms = logarithms.data();
      for (int part = 0; part < parts; ++part) row.function(static_cast<const AttentionBf16Call*>(&call), part, parts);
      return logarithms;
    };
    const std::vector<float> wanted = forward(rows.back(), 1);
    for (const KernelRow& row : rows) {
      if (!can_run(row.isa)) continue;
      CAPTURE(isa_name(row.isa));
      CHECK(count_differences(forward(row, 2), wanted, 1e-4f) == 0);
    }
  }
}
