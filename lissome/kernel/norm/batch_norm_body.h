// Batch norm over Floats, channels across registers.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/norm/batch_norm.h"
#include "lissome/kernel/pool/max_pool_body.h"

namespace lissome {
namespace {

constexpr int64_t kSumRows = 32;  // summed in f32, then added to sums in f64

// Up to Vectors registers of channels; the last may be cut.
template <int Vectors>
struct ChannelLanes {
  int64_t channels;  // that exist
  LISSOME_INLINE int64_t count() const { return channels; }
  template <typename T>
  LISSOME_INLINE Floats load_at(const T* p, int v) const {
    const int64_t left = channels - v * Floats::kWidth;
    return left >= Floats::kWidth ? load(p + v * Floats::kWidth)
           : left > 0             ? load_first(p + v * Floats::kWidth, left)
                                  : zeros();
  }
  template <typename T>
  LISSOME_INLINE void store_at(T* p, int v, Floats value) const {
    const int64_t left = channels - v * Floats::kWidth;
    if (left >= Floats::kWidth) {
      store(p + v * Floats::kWidth, value);
    } else if (left > 0) {
      store_first(p + v * Floats::kWidth, value, left);
    }
  }
};
// All of Vectors registers.
template <int Vectors>
struct WholeLanes {
  LISSOME_INLINE int64_t count() const { return Vectors * Floats::kWidth; }
  template <typename T>
  LISSOME_INLINE Floats load_at(const T* p, int v) const {
    return load(p + v * Floats::kWidth);
  }
  template <typename T>
  LISSOME_INLINE void store_at(T* p, int v, Floats value) const {
    store(p + v * Floats::kWidth, value);
  }
};

// 0 where mask <= 0.
LISSOME_INLINE Floats pass_where_positive(Floats mask, Floats value) {
#ifdef __AVX512F__
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(mask.v, _mm512_setzero_ps(), _CMP_NLE_UQ), value.v)};
#else
  return {_mm256_and_ps(_mm256_cmp_ps(mask.v, _mm256_setzero_ps(), _CMP_NLE_UQ), value.v)};
#endif
}

// Some channels of rows that are worked on together: the first of them, and how far the next row lies.
template <typename T>
struct RowsInPlace {
  const T* first = nullptr;
  int64_t stride = 0;
};

// `channels` of rows [begin, end) of dy: where they lie, or gathered in `kept` of what was max pooled.
template <int64_t Stride, typename Call, typename T>
LISSOME_INLINE RowsInPlace<T> find_rows(const Call& call, const T* dy, Range channels, int64_t begin, int64_t end,
                                        T (&kept)[kSumRows * Stride]) {
  if (!call.indices) return {dy + begin * call.channels + channels.begin, call.channels};
  const Window& w = call.window;
  const MaxPoolGradientCallOf<T> pooled = {dy, call.indices, nullptr, call.channels, w};
  int64_t v = begin % w.width, h = begin / w.width % w.height, n = begin / w.width / w.height;
  for (int64_t row = begin; row < end; ++row) {
    gather_max_pixel(pooled, n, h, v, channels, kept + (row - begin) * Stride);
    if (++v < w.width) continue;
    v = 0;
    if (++h == w.height) h = 0, ++n;
  }
  return {kept, Stride};
}

template <typename Call, typename Lanes>
LISSOME_INLINE void load_mask_map(const Call& call, const Lanes& lanes, int64_t c, int v, Floats& scale,
                                  Floats& shift) {
  scale = call.mask_scale ? lanes.load_at(call.mask_scale + c, v) : zeros();
  shift = call.mask_scale ? lanes.load_at(call.mask_shift + c, v) : zeros();
}

// sums[2][Vectors] over rows [begin, end) of channels from c on.
template <int Vectors, typename Lanes, typename T>
LISSOME_INLINE void sum_rows(const ChannelSumsCallOf<T>& call, const Lanes& lanes, int64_t c, int64_t begin,
                             int64_t end, Floats (&sums)[2][Vectors]) {
  Floats center[Vectors], mask_scale[Vectors], mask_shift[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    load_mask_map(call, lanes, c, v, mask_scale[v], mask_shift[v]);
    center[v] = !call.x ? zeros() : call.dy ? lanes.load_at(call.mean + c, v) : lanes.load_at(call.x + c, v);
    sums[0][v] = sums[1][v] = zeros();
  }
  constexpr int64_t kStride = Vectors * Floats::kWidth;
  alignas(64) T kept[kSumRows * kStride];
  RowsInPlace<T> dys;
  if (call.dy) dys = find_rows<kStride>(call, call.dy, {c, c + lanes.count()}, begin, end, kept);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * call.channels + c;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const Floats x = call.x ? lanes.load_at(call.x + at, v) - center[v] : zeros();
      if (!call.dy) {
        sums[0][v] = sums[0][v] + x, sums[1][v] = multiply_add(x, x, sums[1][v]);
        continue;
      }
      Floats dy = lanes.load_at(dys.first + (row - begin) * dys.stride, v);
      if (call.mask) {
        const Floats mask = lanes.load_at(call.mask + at, v);
        dy = pass_where_positive(call.mask_scale ? multiply_add(mask_scale[v], mask, mask_shift[v]) : mask, dy);
      }
      sums[0][v] = sums[0][v] + dy, sums[1][v] = multiply_add(dy, x, sums[1][v]);
    }
  }
}

template <int Vectors, typename Lanes, typename T>
LISSOME_INLINE void add_rows(const ChannelSumsCallOf<T>& call, const Lanes& lanes, int64_t c, int64_t count,
                             int64_t begin, int64_t end, double* totals) {
  Floats sums[2][Vectors];
  sum_rows<Vectors>(call, lanes, c, begin, end, sums);
  alignas(64) float numbers[2][Vectors * Floats::kWidth];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    store(numbers[0] + v * Floats::kWidth, sums[0][v]), store(numbers[1] + v * Floats::kWidth, sums[1][v]);
  }
  for (int k = 0; k < 2; ++k) {
    for (int64_t i = 0; i < count; ++i) totals[k * call.channels + c + i] += static_cast<double>(numbers[k][i]);
  }
}

template <typename T>
LISSOME_INLINE void sum_channels(const ChannelSumsCallOf<T>& call, int part, int parts) {
  constexpr int kVectors = 4;
  constexpr int64_t kColumn = kVectors * Floats::kWidth;
  const Range blocks = split_evenly(kChannelBlocks, part, parts);
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    double* totals = call.sums + block * 2 * call.channels;
    for (int64_t i = 0; i < 2 * call.channels; ++i) totals[i] = 0;
    const Range rows = split_evenly(call.rows, static_cast<int>(block), static_cast<int>(kChannelBlocks));
    for (int64_t row = rows.begin; row < rows.end; row += kSumRows) {
      const int64_t end = row + kSumRows < rows.end ? row + kSumRows : rows.end;
      int64_t c = 0;
      for (; c + kColumn <= call.channels; c += kColumn)
        add_rows<kVectors>(call, WholeLanes<kVectors>{}, c, kColumn, row, end, totals);
      for (; c < call.channels; c += Floats::kWidth) {
        const int64_t left = call.channels - c;
        const int64_t count = left < Floats::kWidth ? left : int64_t{Floats::kWidth};
        add_rows<1>(call, ChannelLanes<1>{count}, c, count, row, end, totals);
      }
    }
  }
}

// The channels from c on, of rows [begin, end).
template <int Vectors, typename Lanes, typename T>
LISSOME_INLINE void map_rows(const ChannelAffineCallOf<T>& call, const Lanes& lanes, int64_t c, int64_t begin,
                             int64_t end) {
  Floats scale[Vectors], shift[Vectors], z_scale[Vectors], center[Vectors], mask_scale[Vectors], mask_shift[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    load_mask_map(call, lanes, c, v, mask_scale[v], mask_shift[v]);
    scale[v] = lanes.load_at(call.scale + c, v), shift[v] = lanes.load_at(call.shift + c, v);
    z_scale[v] = call.z_scale ? lanes.load_at(call.z_scale + c, v) : fill(1.0f);
    center[v] = call.z_center ? lanes.load_at(call.z_center + c, v) : zeros();
  }
  const Floats floor = call.relu ? zeros() : fill(-__builtin_inff());
  constexpr int64_t kStride = Vectors * Floats::kWidth;
  alignas(64) T kept[kSumRows * kStride];
  const RowsInPlace<T> xs = find_rows<kStride>(call, call.x, {c, c + lanes.count()}, begin, end, kept);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * call.channels + c;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      Floats x = lanes.load_at(xs.first + (row - begin) * xs.stride, v);
      if (call.mask) {
        const Floats mask = lanes.load_at(call.mask + at, v);
        x = pass_where_positive(call.mask_scale ? multiply_add(mask_scale[v], mask, mask_shift[v]) : mask, x);
      }
      Floats y = multiply_add(scale[v], x, shift[v]);
      if (call.z) y = multiply_add(z_scale[v], lanes.load_at(call.z + at, v) - center[v], y);
      lanes.store_at(call.y + at, v, max_with(floor, y));
    }
  }
}

template <typename T>
LISSOME_INLINE void map_channels(const ChannelAffineCallOf<T>& call, int part, int parts) {
  constexpr int kVectors = 4;
  constexpr int64_t kColumn = kVectors * Floats::kWidth;
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t row = rows.begin; row < rows.end; row += kSumRows) {
    const int64_t end = row + kSumRows < rows.end ? row + kSumRows : rows.end;
    int64_t c = 0;
    for (; c + kColumn <= call.channels; c += kColumn) map_rows<kVectors>(call, WholeLanes<kVectors>{}, c, row, end);
    for (; c < call.channels; c += Floats::kWidth) {
      const int64_t left = call.channels - c;
      map_rows<1>(call, ChannelLanes<1>{left < Floats::kWidth ? left : int64_t{Floats::kWidth}}, c, row, end);
    }
  }
}

LISSOME_INLINE void run_channel_sums(const ChannelSumsCall& call, int part, int parts) {
  sum_channels(call, part, parts);
}
LISSOME_INLINE void run_channel_sums_bf16(const ChannelSumsBf16Call& call, int part, int parts) {
  sum_channels(call, part, parts);
}
LISSOME_INLINE void run_channel_affine(const ChannelAffineCall& call, int part, int parts) {
  map_channels(call, part, parts);
}
LISSOME_INLINE void run_channel_affine_bf16(const ChannelAffineBf16Call& call, int part, int parts) {
  map_channels(call, part, parts);
}

}  // namespace
}  // namespace lissome
