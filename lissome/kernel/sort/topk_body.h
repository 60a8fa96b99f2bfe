// A row is read once. A heap holds the best `count` elements so far, the worst of them at its root; blocks without an
// element above the root, nearly all of a long row, cost a comparison of vectors and no more. Element and position are
// one integer, so that the heap orders equal elements by position.
#pragma once

#include <cstdint>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/inline.h"
#include "lissome/kernel/sort/topk.h"

namespace lissome {
namespace {

constexpr int64_t kTopkBlock = 32;
constexpr int32_t kInfinityBits = 0x7f800000;  // above it: NaN

// Integers in the order of the floats: a float below zero has its lower bits turned round. `flip` turns the order
// round.
LISSOME_INLINE int32_t order_float(float x, int32_t flip) {
  const int32_t bits = __builtin_bit_cast(int32_t, x);
  const int32_t key = bits ^ ((bits >> 31) & INT32_MAX);
  return ((bits & INT32_MAX) > kInfinityBits ? INT32_MAX : key) ^ flip;
}

LISSOME_INLINE int64_t pair_key(int32_t key, int64_t position) {
  return static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(key)) << 32) | (UINT32_MAX - position);
}
LISSOME_INLINE int64_t position_of(int64_t pair) { return UINT32_MAX - (pair & UINT32_MAX); }

// Puts `pair` in the place of the root of a heap whose smallest is at the root.
LISSOME_INLINE void replace_root(int64_t* heap, int64_t count, int64_t pair) {
  int64_t at = 0;
  for (int64_t child = 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && heap[child + 1] < heap[child]) ++child;
    if (heap[child] >= pair) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = pair;
}

LISSOME_INLINE void add_leaf(int64_t* heap, int64_t count, int64_t pair) {
  int64_t at = count;
  while (at > 0 && heap[(at - 1) / 2] > pair) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = pair;
}

// `size` is a constant where it is inlined, so that the loops become vectors.
LISSOME_INLINE void add_block(const TopkCall& call, const float* x, int64_t begin, int64_t size, int64_t* heap) {
  const int32_t flip = call.largest ? 0 : -1;
  int32_t keys[kTopkBlock];
  int32_t most = INT32_MIN;
  for (int64_t i = 0; i < size; ++i) keys[i] = order_float(x[begin + i], flip);
  for (int64_t i = 0; i < size; ++i) most = keys[i] > most ? keys[i] : most;
  if (most <= heap[0] >> 32) return;
  for (int64_t i = 0; i < size; ++i) {
    if (keys[i] > heap[0] >> 32) replace_root(heap, call.count, pair_key(keys[i], begin + i));
  }
}

LISSOME_INLINE void fill_heap(const TopkCall& call, const float* x, int64_t* heap) {
  const int32_t flip = call.largest ? 0 : -1;
  int64_t at = 0;
  for (; at < call.count; ++at) add_leaf(heap, at, pair_key(order_float(x[at], flip), at));
  for (; at + kTopkBlock <= call.columns; at += kTopkBlock) add_block(call, x, at, kTopkBlock, heap);
  for (; at < call.columns; ++at) add_block(call, x, at, 1, heap);
}

// The smallest leaves the root for the last place, again and again.
LISSOME_INLINE void sort_heap(int64_t* heap, int64_t count) {
  for (int64_t left = count - 1; left > 0; --left) {
    const int64_t last = heap[left];
    heap[left] = heap[0];
    replace_root(heap, left, last);
  }
}

LISSOME_INLINE void run_topk(const TopkCall& call, int part, int parts) {
  if (call.count == 0) return;
  int64_t* heap = call.scratch + part * call.count;
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const float* x = call.x + row * call.columns;
    fill_heap(call, x, heap);
    sort_heap(heap, call.count);
    for (int64_t i = 0; i < call.count; ++i) {
      const int64_t position = position_of(heap[i]);
      call.values[row * call.count + i] = x[position];
      call.positions[row * call.count + i] = position;
    }
  }
}

}  // namespace
}  // namespace lissome
