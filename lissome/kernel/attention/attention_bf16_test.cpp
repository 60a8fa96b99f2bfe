// Every row of "attention_bf16" against plain sums over the same bf16 numbers.
#include "lissome/kernel/attention/attention_bf16.h"

#include <doctest/doctest.h>

#include <cmath>

#include "lissome/kernel/isa/bf16_arrays.h"
#include "lissome/kernel/kernel_table.h"

using namespace lissome;

namespace {

struct Case {
  int64_t batch, heads, key_heads, queries, keys, size, value_size;
  MaskKind mask = MaskKind::none;
  bool causal = false;
};

struct Arrays {
  std::vector<uint16_t> q, k, v, added;
  std::vector<uint8_t> chosen;
};

Arrays make_arrays(const Case& c, TestNumbers& numbers) {
  Arrays arrays;
  arrays.q = make_bf16(numbers, c.batch * c.queries * c.heads * c.size);
  arrays.k = make_bf16(numbers, c.batch * c.keys * c.key_heads * c.size);
  arrays.v = make_bf16(numbers, c.batch * c.keys * c.key_heads * c.value_size);
  arrays.added = make_bf16(numbers, c.batch * c.queries * c.keys);
  for (uint16_t& value : arrays.added) {
    arrays.chosen.push_back(static_cast<uint8_t>(numbers.between(0, 2)));
    if (numbers.between(0, 5) == 0) value = 0xff80;
  }
  // The first query sees nothing at all.
  for (size_t n = 0; n < static_cast<size_t>(c.keys); ++n) arrays.chosen[n] = 0, arrays.added[n] = 0xff80;
  return arrays;
}

AttentionBf16Call describe(const Case& c, const Arrays& arrays) {
  AttentionBf16Call call;
  call.q = arrays.q.data(), call.k = arrays.k.data(), call.v = arrays.v.data();
  call.mask = c.mask == MaskKind::added ? static_cast<const void*>(arrays.added.data()) : arrays.chosen.data();
  call.batch = c.batch, call.heads = c.heads, call.key_heads = c.key_heads;
  call.queries = c.queries, call.keys = c.keys, call.size = c.size, call.value_size = c.value_size;
  // Stored as [batch, row, head, size], as models have it before the transpose.
  call.q_strides = {c.queries * c.heads * c.size, c.size, c.heads * c.size};
  call.k_strides = {c.keys * c.key_heads * c.size, c.size, c.key_heads * c.size};
  call.v_strides = {c.keys * c.key_heads * c.value_size, c.value_size, c.key_heads * c.value_size};
  call.y_strides = {c.queries * c.heads * c.value_size, c.value_size, c.heads * c.value_size};
  call.mask_strides = {c.queries * c.keys, 0, c.keys};
  call.mask_kind = c.mask, call.causal = c.causal, call.scale = 0.3f;
  return call;
}

std::vector<double> find_weights(const AttentionBf16Call& call, int64_t b, int64_t h, int64_t i) {
  std::vector<double> weights;
  const int64_t key_head = h / (call.heads / call.key_heads);
  double largest = -INFINITY, total = 0;
  for (int64_t key = 0; key < call.keys; ++key) {
    double sum = 0;
    for (int64_t d = 0; d < call.size; ++d) {
      sum +=
          static_cast<double>(
              widen_bf16(call.q[b * call.q_strides.batch + h * call.q_strides.head + i * call.q_strides.row + d])) *
          widen_bf16(call.k[b * call.k_strides.batch + key_head * call.k_strides.head + key * call.k_strides.row + d]);
    }
    sum *= call.scale;
    const int64_t at = b * call.mask_strides.batch + i * call.mask_strides.row + key;
    if (call.mask_kind == MaskKind::added) sum += widen_bf16(static_cast<const uint16_t*>(call.mask)[at]);
    if (call.mask_kind == MaskKind::chosen && !static_cast<const uint8_t*>(call.mask)[at]) sum = -INFINITY;
    if (call.causal && key > i) sum = -INFINITY;
    weights.push_back(sum);
    largest = sum > largest ? sum : largest;
  }
  for (double& weight : weights) weight = largest == -INFINITY ? 0 : std::exp(weight - largest), total += weight;
  for (double& weight : weights) weight = total == 0 ? 0 : weight / total;
  return weights;
}

std::vector<float> find_expected(const AttentionBf16Call& call) {
  std::vector<float> y(static_cast<size_t>(call.batch * call.queries * call.heads * call.value_size));
  for (int64_t b = 0; b < call.batch; ++b) {
    for (int64_t h = 0; h < call.heads; ++h) {
      for (int64_t i = 0; i < call.queries; ++i) {
        const std::vector<double> weights = find_weights(call, b, h, i);
        const uint16_t* v = call.v + b * call.v_strides.batch + h / (call.heads / call.key_heads) * call.v_strides.head;
        for (int64_t d = 0; d < call.value_size; ++d) {
          double sum = 0;
          for (int64_t key = 0; key < call.keys; ++key) {
            sum += weights[static_cast<size_t>(key)] * widen_bf16(v[key * call.v_strides.row + d]);
          }
          y[static_cast<size_t>(b * call.y_strides.batch + h * call.y_strides.head + i * call.y_strides.row + d)] =
              static_cast<float>(sum);
        }
      }
    }
  }
  return y;
}

void check_case(const Case& c, uint64_t seed) {
  TestNumbers numbers(seed);
  const Arrays arrays = make_arrays(c, numbers);
  AttentionBf16Call call = describe(c, arrays);
  AlignedBytes scratch(5 * attention_bf16_scratch(c.keys, c.size, c.value_size));
  call.scratch = scratch.data();
  const std::vector<float> expected = find_expected(call);
  for (const KernelRow& row : kernel_rows("attention_bf16")) {
    if (!can_run(row.isa)) continue;
    // Products of bf16 take weights that were rounded to it: half a unit of their 8 bits, of values below one.
    const bool rounds = row.isa == Isa::amx || row.isa == Isa::avx512_bf16;
    const float tolerance = rounds ? 1.0f / 512 + 1e-4f : 1e-5f;
    for (const int parts : {1, 2, 5}) {
      CAPTURE(seed);
      CAPTURE(isa_name(row.isa));
      CAPTURE(parts);
      std::vector<uint16_t> y(expected.size(), 0x4444);
      call.y = y.data();
      for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
      int64_t wrong = 0;
      for (size_t i = 0; i < y.size(); ++i) wrong += !is_rounded(y[i], expected[i], tolerance);
      CHECK(wrong == 0);
    }
  }
}

}  // namespace

TEST_CASE("attention_bf16 agrees with plain sums") {
  check_case({1, 2, 2, 16, 16, 32, 32}, 1);
  check_case({2, 4, 2, 7, 9, 8, 20}, 2);
  check_case({1, 2, 1, 1, 70, 64, 64}, 3);
  check_case({1, 1, 1, 30, 1100, 16, 16}, 4);
  check_case({1, 1, 1, 30, 1100, 16, 80, MaskKind::added}, 5);
  check_case({2, 2, 2, 50, 50, 16, 16, MaskKind::none, true}, 6);
  check_case({1, 2, 2, 600, 600, 4, 4, MaskKind::chosen, true}, 7);
  TestNumbers numbers(3);
  for (uint64_t seed = 10; seed < 50; ++seed) {
    const int64_t key_heads = numbers.between(1, 3);
    check_case({numbers.between(1, 2), key_heads * numbers.between(1, 2), key_heads, numbers.between(1, 80),
                numbers.between(1, 90), numbers.between(1, 70), numbers.between(1, 70),
                static_cast<MaskKind>(numbers.between(0, 2)), numbers.between(0, 1) == 1},
               seed);
  }
}

TEST_CASE("attention_bf16 gives NaN to the queries that hold one, and to no other") {
  const Case c = {1, 1, 1, 40, 50, 33, 17};
  TestNumbers numbers(5);
  Arrays arrays = make_arrays(c, numbers);
  arrays.q[7 * 33 + 32] = 0x7fc0;
  AttentionBf16Call call = describe(c, arrays);
  AlignedBytes scratch(attention_bf16_scratch(c.keys, c.size, c.value_size));
  call.scratch = scratch.data();
  for (const KernelRow& row : kernel_rows("attention_bf16")) {
    if (!can_run(row.isa)) continue;
    CAPTURE(isa_name(row.isa));
    std::vector<uint16_t> y(40 * 17);
    call.y = y.data();
    row.function(&call, 0, 1);
    int64_t wrong = 0;
    for (size_t i = 0; i < y.size(); ++i) wrong += std::isnan(widen_bf16(y[i])) != (i / 17 == 7);
    CHECK(wrong == 0);
  }
}
