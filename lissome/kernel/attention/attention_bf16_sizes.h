// How the scratch of one part of bf16 attention is laid out, in bytes, for each of its forms. Static: see split.h.
#pragma once

#include <cstdint>

#include "lissome/kernel/attention/attention_sizes.h"

namespace lissome {
namespace {

inline int64_t round_to_cache_line(int64_t bytes) { return (bytes + 63) / 64 * 64; }
inline int64_t round_to_step(int64_t count) { return (count + 31) / 32 * 32; }

// Where operands are widened: f32 copies beside the scratch of the f32 kernel, which does the rest.
struct WidenedSizes {
  int64_t keys, values, queries, results, mask;
  int64_t total() const { return keys + values + queries + results + mask; }  // the f32 kernel's scratch follows
};
inline WidenedSizes find_widened_sizes(int64_t keys, int64_t size, int64_t value_size) {
  return {round_to_cache_line(4 * keys * size), round_to_cache_line(4 * keys * value_size),
          round_to_cache_line(4 * kQueryBlock * size), round_to_cache_line(4 * kQueryBlock * value_size),
          round_to_cache_line(4 * kQueryBlock * keys)};
}

// Where bf16 is multiplied as it is: everything in whole steps of 32.
constexpr int64_t kTileQueries = 32;
struct TiledSizes {
  int64_t steps, key_steps, value_panels;  // of 32: in a row of q, in all keys, in a row of v
  int64_t block;                           // keys of a block, whole steps
  int64_t keys, values, queries, scores, weights, sums;
  int64_t total() const { return keys + values + queries + scores + weights + sums; }
};
inline TiledSizes find_tiled_sizes(int64_t keys, int64_t size, int64_t value_size) {
  TiledSizes sizes;
  sizes.steps = round_to_step(size) / 32, sizes.key_steps = round_to_step(keys) / 32;
  sizes.value_panels = round_to_step(value_size) / 32;
  sizes.block = round_to_step(keys) < kKeyBlock ? round_to_step(keys) : kKeyBlock;
  sizes.keys = sizes.key_steps * sizes.steps * 2048, sizes.values = sizes.key_steps * sizes.value_panels * 2048;
  sizes.queries = kTileQueries * sizes.steps * 64;
  sizes.scores = kTileQueries * sizes.block * 4, sizes.weights = kTileQueries * sizes.block * 2;
  sizes.sums = kTileQueries * sizes.value_panels * 128;
  return sizes;
}

}  // namespace
}  // namespace lissome
