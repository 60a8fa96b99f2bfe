#include "lissome/kernel/attention/attention_gradient.h"

#include "lissome/kernel/gemm/row_check.h"

using namespace lissome;

namespace {

// [batch, heads, rows, size], dense, or with heads beside each other in a row.
HeadStrides lay_out(bool heads_last, int64_t heads, int64_t rows, int64_t size) {
  if (heads_last) return {heads * rows * size, size, heads * size};
  return {heads * rows * size, rows * size, size};
}

}  // namespace

TEST_CASE("the gradient of attention agrees with the portable form, in any order, masked, causal") {
  TestNumbers numbers(61);
  for (int i = 0; i < 24; ++i) {
    AttentionGradientCall call;
    call.batch = numbers.between(1, 2), call.heads = call.key_heads = numbers.between(1, 3);
    call.queries = numbers.between(1, 130), call.keys = i % 3 == 0 ? call.queries : numbers.between(1, 130);
    call.size = numbers.between(1, 80), call.value_size = i % 4 == 0 ? numbers.between(1, 80) : call.size;
    call.causal = i % 3 == 0, call.scale = 0.3f;
    const bool last = i % 2 == 0;
    const int64_t heads = call.batch * call.heads;
    const auto q = numbers.reals(heads * call.queries * call.size), k = numbers.reals(heads * call.keys * call.size);
    const auto v = numbers.reals(heads * call.keys * call.value_size);
    const auto y = numbers.reals(heads * call.queries * call.value_size), dy = numbers.reals(std::ssize(y));
    const auto mask = numbers.reals(heads * call.queries * call.keys);
    auto logarithms = numbers.reals(heads * call.queries);
    for (float& value : logarithms) value += 3;
    call.q = q.data(), call.k = k.data(), call.v = v.data(), call.y = const_cast<float*>(y.data());
    call.dy = dy.data(), call.logarithms = logarithms.data();
    call.q_strides = call.dq_strides = lay_out(last, call.heads, call.queries, call.size);
    call.k_strides = call.dk_strides = lay_out(last, call.heads, call.keys, call.size);
    call.v_strides = call.dv_strides = lay_out(last, call.heads, call.keys, call.value_size);
    call.y_strides = call.dy_strides = lay_out(last, call.heads, call.queries, call.value_size);
    std::vector<uint8_t> chosen;
    for (const float value : mask) chosen.push_back(value > -0.5f);
    call.mask_strides = {call.heads * call.queries * call.keys, call.queries * call.keys, call.keys};
    if (i % 5 == 1) call.mask_kind = MaskKind::added, call.mask = mask.data();
    if (i % 5 == 2) call.mask_kind = MaskKind::chosen, call.mask = chosen.data();
    const int64_t floats = attention_gradient_scratch(call.keys, call.size, call.value_size);
    std::vector<float> scratch(static_cast<size_t>(5 * floats));
    call.scratch = scratch.data();
    check_rows("attention_gradient", call, std::ssize(q) + std::ssize(k) + std::ssize(v), 2e-5f,
               [&](AttentionGradientCall& filled, float* to) {
                 filled.dq = to, filled.dk = to + q.size(), filled.dv = filled.dk + k.size();
               });
  }
}

TEST_CASE("attention gives the logarithm of each query's sum, which its gradient reads") {
  TestNumbers numbers(62);
  for (const bool causal : {false, true}) {
    AttentionCall call;
    call.batch = 2, call.heads = 3, call.key_heads = 3, call.queries = 37, call.keys = 37,
    call.size = call.value_size = 20;
    call.causal = causal, call.scale = 0.4f;
    call.q_strides = call.k_strides = call.v_strides = call.y_strides = lay_out(false, 3, 37, 20);
    const auto q = numbers.reals(6 * 37 * 20), k = numbers.reals(6 * 37 * 20), v = numbers.reals(6 * 37 * 20);
    call.q = q.data(), call.k = k.data(), call.v = v.data();
    std::vector<float> scratch(static_cast<size_t>(5 * attention_scratch(call.keys, call.size, call.value_size)));
    call.scratch = scratch.data();
    check_rows("attention", call, 6 * 37 * 21, 1e-5f,
               [](AttentionCall& filled, float* y) { filled.y = y, filled.logarithms = y + 6 * 37 * 20; });
  }
}
