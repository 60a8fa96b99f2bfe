// The updates of training over Floats. Bound by memory: what counts is that every array is read and written once.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/optimizer/optimizer.h"

namespace lissome {
namespace {

// Where a register's lanes stand in the arrays: a whole register, or the first lanes of one at the end.
struct WholeLanes {
  int64_t at;
  Floats read(const float* p) const { return load(p + at); }
  template <typename T>
  void write(T* p, Floats a) const {
    store(p + at, a);
  }
};
struct FirstLanes {
  int64_t at, count;
  Floats read(const float* p) const { return load_first(p + at, count); }
  template <typename T>
  void write(T* p, Floats a) const {
    store_first(p + at, a, count);
  }
};

// update(lanes, w) gives the new weights.
template <typename Update>
LISSOME_INLINE void update_lanes(const UpdatedWeight& on, const auto& lanes, const Update& update) {
  const Floats weight = update(lanes, lanes.read(on.weight));
  lanes.write(on.weight, weight);
  if (on.bf16_copy) lanes.write(on.bf16_copy, weight);
}

template <typename Update>
LISSOME_INLINE void update_part(const UpdatedWeight& on, int part, int parts, const Update& update) {
  const Range mine = split_by_unit(on.count, 2 * Floats::kWidth, part, parts);
  int64_t at = mine.begin;
  for (; at + Floats::kWidth <= mine.end; at += Floats::kWidth) update_lanes(on, WholeLanes{at}, update);
  if (at < mine.end) update_lanes(on, FirstLanes{at, mine.end - at}, update);
}

LISSOME_INLINE Floats fill_rounded(double x) { return fill(static_cast<float>(x)); }

LISSOME_INLINE void run_adam(const AdamCall& call, int part, int parts) {
  const Floats scale = fill_rounded(call.on.gradient_scale), decay = fill_rounded(call.gradient_decay);
  const Floats factor = fill_rounded(call.weight_factor), take1 = fill_rounded(1 - call.beta1);
  const Floats keep2 = fill_rounded(call.beta2), take2 = fill_rounded(1 - call.beta2);
  const Floats step = fill_rounded(call.step_size), square_factor = fill_rounded(call.square_factor);
  const Floats epsilon = fill_rounded(call.epsilon);
  update_part(call.on, part, parts, [&](const auto& lanes, Floats weight) {
    const Floats g = multiply_add(decay, weight, lanes.read(call.on.gradient) * scale);
    Floats mean = lanes.read(call.mean);
    mean = multiply_add(g - mean, take1, mean);
    const Floats square = multiply_add(take2 * g, g, keep2 * lanes.read(call.square));
    lanes.write(call.mean, mean);
    lanes.write(call.square, square);
    const Floats divisor = multiply_add(square_root(square), square_factor, epsilon);
    return subtract_product(step, mean / divisor, weight * factor);
  });
}

LISSOME_INLINE void run_sgd(const SgdCall& call, int part, int parts) {
  const Floats scale = fill_rounded(call.on.gradient_scale), decay = fill_rounded(call.gradient_decay);
  const Floats keep = fill_rounded(call.keep), take = fill_rounded(call.take), rate = fill_rounded(call.learning_rate);
  const Floats gradient_share = fill_rounded(call.gradient_share), share = fill_rounded(call.momentum_share);
  const auto decayed = [&](const auto& lanes, Floats weight) {
    return multiply_add(decay, weight, lanes.read(call.on.gradient) * scale);
  };
  if (!call.momentum) {
    update_part(call.on, part, parts, [&](const auto& lanes, Floats weight) {
      return subtract_product(rate, decayed(lanes, weight), weight);
    });
    return;
  }
  update_part(call.on, part, parts, [&](const auto& lanes, Floats weight) {
    const Floats g = decayed(lanes, weight);
    const Floats momentum = multiply_add(take, g, keep * lanes.read(call.momentum));
    lanes.write(call.momentum, momentum);
    return subtract_product(rate, multiply_add(gradient_share, g, share * momentum), weight);
  });
}

LISSOME_INLINE void run_lion(const LionCall& call, int part, int parts) {
  const Floats scale = fill_rounded(call.on.gradient_scale), factor = fill_rounded(call.weight_factor);
  const Floats take1 = fill_rounded(1 - call.beta1), take2 = fill_rounded(1 - call.beta2);
  const Floats rate = fill_rounded(call.learning_rate), up = fill(1), down = fill(-1);
  update_part(call.on, part, parts, [&](const auto& lanes, Floats weight) {
    const Floats mean = lanes.read(call.mean);
    const Floats change = lanes.read(call.on.gradient) * scale - mean;
    lanes.write(call.mean, multiply_add(change, take2, mean));
    const Floats direction = multiply_add(change, take1, mean);
    const Floats sign = select_negative(direction, down, select_negative(zeros() - direction, up, zeros()));
    return subtract_product(rate, sign, weight * factor);
  });
}

// Lanes as doubles, their squares added to the sums.
#ifdef __AVX512F__
struct Doubles {
  __m512d v = _mm512_setzero_pd();
  void add_square(__m256 half) {
    const __m512d wide = _mm512_cvtps_pd(half);
    v = _mm512_fmadd_pd(wide, wide, v);
  }
  double sum() const { return _mm512_reduce_add_pd(v); }
};
LISSOME_INLINE void add_squares(Floats a, Doubles& low, Doubles& high) {
  low.add_square(_mm512_castps512_ps256(a.v));
  high.add_square(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1)));
}
#else
struct Doubles {
  __m256d v = _mm256_setzero_pd();
  void add_square(__m128 half) {
    const __m256d wide = _mm256_cvtps_pd(half);
    v = _mm256_fmadd_pd(wide, wide, v);
  }
  double sum() const {
    const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
  }
};
LISSOME_INLINE void add_squares(Floats a, Doubles& low, Doubles& high) {
  low.add_square(_mm256_castps256_ps128(a.v));
  high.add_square(_mm256_extractf128_ps(a.v, 1));
}
#endif

LISSOME_INLINE double sum_block(const float* x, int64_t count) {
  // Four sums, so that one addition need not wait for the one before.
  Doubles sums[4];
  int64_t at = 0;
  for (; at + 2 * Floats::kWidth <= count; at += 2 * Floats::kWidth) {
    add_squares(load(x + at), sums[0], sums[1]);
    add_squares(load(x + at + Floats::kWidth), sums[2], sums[3]);
  }
  for (; at < count; at += Floats::kWidth) {
    const int64_t left = count - at < Floats::kWidth ? count - at : Floats::kWidth;
    add_squares(load_first(x + at, left), sums[0], sums[1]);
  }
  return (sums[0].sum() + sums[1].sum()) + (sums[2].sum() + sums[3].sum());
}

LISSOME_INLINE void run_sum_squares(const SumSquaresCall& call, int part, int parts) {
  const Range mine = split_evenly((call.count + kSquareBlock - 1) / kSquareBlock, part, parts);
  for (int64_t block = mine.begin; block < mine.end; ++block) {
    const int64_t begin = block * kSquareBlock;
    const int64_t left = call.count - begin < kSquareBlock ? call.count - begin : kSquareBlock;
    call.sums[block] = sum_block(call.x + begin, left);
  }
}

}  // namespace
}  // namespace lissome
