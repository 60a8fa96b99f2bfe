// How the scratch of one part of attention_gradient_bf16 is laid out, in bytes, for each of its forms. Static: see
// split.h.
#pragma once

#include "lissome/kernel/attention/attention_bf16_sizes.h"
#include "lissome/kernel/attention/attention_gradient_sizes.h"

namespace lissome {
namespace {

// Where operands are widened: f32 copies of a head beside the scratch of the f32 kernel, which does the rest.
struct WidenedGradientSizes {
  int64_t queries, keys, query_values, key_values;  // [queries or keys][size or value_size]
  int64_t mask;                                     // [queries][keys]
  // q, k and v with their gradients, y and dy; the f32 kernel's scratch follows.
  int64_t total() const { return 2 * (queries + keys + key_values) + 2 * query_values + mask; }
};
inline WidenedGradientSizes find_widened_gradient_sizes(int64_t queries, int64_t keys, int64_t size,
                                                        int64_t value_size) {
  return {round_to_cache_line(4 * queries * size), round_to_cache_line(4 * keys * size),
          round_to_cache_line(4 * queries * value_size), round_to_cache_line(4 * keys * value_size),
          round_to_cache_line(4 * queries * keys)};
}

// Where bf16 is multiplied as it is: everything in whole steps of 32, numbers of steps.
constexpr int64_t kGradientKeys = 32;  // of a block
struct TiledGradientSizes {
  int64_t query_steps, key_steps, steps, value_steps;
  // Bytes of an array in bf16 of so many steps either way.
  static int64_t bf16(int64_t rows, int64_t columns) { return rows * columns * 2048; }

  int64_t queries() const { return bf16(query_steps, steps); }             // twice: across, and down
  int64_t query_values() const { return bf16(query_steps, value_steps); }  // dy, twice: across, and down
  int64_t keys() const { return bf16(key_steps, steps); }                  // twice: rows, and columns as rows
  int64_t key_values() const { return bf16(key_steps, value_steps); }      // rows
  int64_t block() const { return bf16(1, query_steps); }    // three times: weights, slopes, and slopes in tiles
  int64_t logarithms() const { return 128 * query_steps; }  // twice: these, and sums of dy * y
  int64_t scores() const { return 4096; }                   // twice: with their gradients
  int64_t query_sums() const { return 2 * bf16(steps, query_steps); }  // dq, columns as rows
  int64_t key_sums() const { return 4096 * (steps > value_steps ? steps : value_steps); }
  int64_t total() const {
    return 2 * (queries() + query_values() + keys()) + key_values() + 3 * block() + 2 * logarithms() + 2 * scores() +
           query_sums() + key_sums();
  }
};
inline TiledGradientSizes find_tiled_gradient_sizes(int64_t queries, int64_t keys, int64_t size, int64_t value_size) {
  return {round_to_step(queries) / 32, round_to_step(keys) / 32, round_to_step(size) / 32,
          round_to_step(value_size) / 32};
}

}  // namespace
}  // namespace lissome
