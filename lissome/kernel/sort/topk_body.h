// The best element of each block of a row, by vectors, tells which blocks hold the best `count` of the row; the
// elements of these blocks alone are compared one by one. A heap holds the best so far, the worst of them at its root.
// Element and position are one integer, so that the heap orders equal elements by position.
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

// Adds what is better than the root, or all while the heap of `count` is not full. Returns how many it holds.
LISSOME_INLINE int64_t offer(int64_t* heap, int64_t held, int64_t count, int64_t pair) {
  if (held < count) {
    add_leaf(heap, held, pair);
    return held + 1;
  }
  if (pair > heap[0]) replace_root(heap, count, pair);
  return count;
}

// `size` is a constant where it is inlined, so that the loop becomes vectors.
LISSOME_INLINE int32_t find_best_key(const float* x, int64_t size, int32_t flip) {
  int32_t best = INT32_MIN;
  for (int64_t i = 0; i < size; ++i) {
    const int32_t key = order_float(x[i], flip);
    best = key > best ? key : best;
  }
  return best;
}

// The blocks that hold the best `count` elements: those whose own best is among the best `count` of all blocks. A block
// outside has `count` others whose best is better than all that it holds, or equal and further left.
LISSOME_INLINE int64_t choose_blocks(const TopkCall& call, const float* x, int64_t* blocks) {
  const int32_t flip = call.largest ? 0 : -1;
  const int64_t whole = call.columns / kTopkBlock, left = call.columns % kTopkBlock;
  int64_t held = 0;
  for (int64_t b = 0; b < whole; ++b)
    held = offer(blocks, held, call.count, pair_key(find_best_key(x + b * kTopkBlock, kTopkBlock, flip), b));
  if (left > 0)
    held = offer(blocks, held, call.count, pair_key(find_best_key(x + whole * kTopkBlock, left, flip), whole));
  return held;
}

LISSOME_INLINE void fill_heap(const TopkCall& call, const float* x, int64_t* blocks, int64_t* heap) {
  const int32_t flip = call.largest ? 0 : -1;
  const int64_t chosen = choose_blocks(call, x, blocks);
  const int64_t least = chosen == call.count ? blocks[0] >> 32 : INT32_MIN;
  int64_t held = 0;
  for (int64_t b = 0; b < chosen; ++b) {
    const int64_t begin = position_of(blocks[b]) * kTopkBlock;
    const int64_t end = call.columns - begin < kTopkBlock ? call.columns : begin + kTopkBlock;
    for (int64_t i = begin; i < end; ++i) {
      const int32_t key = order_float(x[i], flip);
      if (key >= least) held = offer(heap, held, call.count, pair_key(key, i));
    }
  }
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
  int64_t* blocks = call.scratch + part * 2 * call.count;
  int64_t* heap = blocks + call.count;
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const float* x = call.x + row * call.columns;
    fill_heap(call, x, blocks, heap);
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
