// Every row of "attention_u8s8" against the portable one, and that against attention in f32.
#include "lissome/kernel/attention/attention_u8s8.h"

#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/isa/bf16_arrays.h"

using namespace lissome;

namespace {

struct Case {
  int64_t batch, heads, key_heads, queries, keys, size, value_size;
  MaskKind mask = MaskKind::none;
  bool causal = false;
  int special = 0;  // 1: q holds a NaN; 2: k does; 3: v holds an infinity
};

// A weight on the edge between two bytes may become either: a 255th of a value at most.
constexpr float kTolerance = 1.0f / 255;

void check_case(const Case& c, uint64_t seed) {
  TestNumbers numbers(seed);
  auto q = numbers.reals(c.batch * c.queries * c.heads * c.size);
  auto k = numbers.reals(c.batch * c.keys * c.key_heads * c.size);
  auto v = numbers.reals(c.batch * c.keys * c.key_heads * c.value_size);
  if (c.special == 1) q[q.size() / 2] = NAN;
  if (c.special == 2) k[k.size() / 2] = NAN;
  if (c.special == 3) v[v.size() / 2] = INFINITY;
  auto added = numbers.reals(c.batch * c.queries * c.keys);
  std::vector<uint8_t> chosen;
  for (float& value : added) {
    chosen.push_back(static_cast<uint8_t>(numbers.between(0, 2)));
    if (numbers.between(0, 5) == 0) value = -std::numeric_limits<float>::infinity();
  }
  // The first query sees nothing at all.
  for (int64_t n = 0; n < c.keys; ++n) chosen[static_cast<size_t>(n)] = 0, added[static_cast<size_t>(n)] = -INFINITY;
  const AlignedBytes scratch(5 * attention_u8s8_scratch(c.keys, c.size, c.value_size));
  AttentionU8S8Call call;
  call.q = q.data(), call.k = k.data(), call.v = v.data(), call.scratch = scratch.data();
  call.mask = c.mask == MaskKind::added ? static_cast<const void*>(added.data()) : chosen.data();
  call.batch = c.batch, call.heads = c.heads, call.key_heads = c.key_heads;
  call.queries = c.queries, call.keys = c.keys, call.size = c.size, call.value_size = c.value_size;
  // Stored as [batch, row, head, size], as models have it before the transpose.
  call.q_strides = {c.queries * c.heads * c.size, c.size, c.heads * c.size};
  call.k_strides = {c.keys * c.key_heads * c.size, c.size, c.key_heads * c.size};
  call.v_strides = {c.keys * c.key_heads * c.value_size, c.value_size, c.key_heads * c.value_size};
  call.y_strides = {c.queries * c.heads * c.value_size, c.value_size, c.heads * c.value_size};
  call.mask_strides = {c.queries * c.keys, 0, c.keys};
  call.mask_kind = c.mask, call.causal = c.causal, call.scale = 0.3f;
  CAPTURE(seed);
  const int64_t count = c.batch * c.queries * c.heads * c.value_size;
  check_rows("attention_u8s8", call, count, kTolerance, [](AttentionU8S8Call& filled, float* y) { filled.y = y; });
  if (c.special != 0) return;
  std::vector<float> seen(static_cast<size_t>(count)), wanted(static_cast<size_t>(count));
  AttentionCall exact;
  static_cast<AttentionShape&>(exact) = call;
  exact.q = call.q, exact.k = call.k, exact.v = call.v, exact.mask = call.mask, exact.y = wanted.data();
  kernel_rows("attention").back().function(&exact, 0, 1);
  call.y = seen.data();
  kernel_rows("attention_u8s8").back().function(&call, 0, 1);
  CHECK(count_differences(seen, wanted, 0.05f) == 0);
}

}  // namespace

TEST_CASE("attention_u8s8 agrees with the portable form, and is near to attention in f32") {
  check_case({1, 2, 2, 16, 16, 32, 32}, 1);
  check_case({2, 4, 2, 7, 9, 8, 20}, 2);
  check_case({1, 2, 1, 1, 70, 64, 64}, 3);
  check_case({1, 1, 1, 30, 1100, 16, 16}, 4);
  check_case({1, 1, 1, 30, 1100, 16, 80, MaskKind::added}, 5);
  check_case({2, 2, 2, 50, 50, 16, 16, MaskKind::none, true}, 6);
  check_case({1, 2, 2, 600, 600, 4, 4, MaskKind::chosen, true}, 7);
  check_case({1, 2, 2, 30, 50, 16, 20, MaskKind::none, false, 1}, 8);
  check_case({1, 2, 1, 30, 50, 16, 20, MaskKind::added, false, 2}, 9);
  check_case({1, 2, 2, 30, 50, 16, 20, MaskKind::none, true, 3}, 60);
  check_case({1, 1, 1, 2, 70000, 4, 4}, 61);  // more keys than are summed at once
  TestNumbers numbers(3);
  for (uint64_t seed = 10; seed < 40; ++seed) {
    const int64_t key_heads = numbers.between(1, 3);
    check_case({numbers.between(1, 2), key_heads * numbers.between(1, 2), key_heads, numbers.between(1, 60),
                numbers.between(1, 90), numbers.between(1, 70), numbers.between(1, 70),
                static_cast<MaskKind>(numbers.between(0, 2)), numbers.between(0, 1) == 1},
               seed);
  }
}
