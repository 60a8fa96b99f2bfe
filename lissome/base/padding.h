// Zeros that pad packed weights, which a model file leaves out. Kernels want panels of whole registers, so that a layer
// of 24 outputs is packed as one of 64; the places of the zeros repeat from row to row, so a few numbers describe them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lissome {

// So many times: `kept` bytes, behind them `zeros` bytes of zeros.
struct PaddedRun {
  int64_t kept = 0, zeros = 0, times = 1;
  bool operator==(const PaddedRun&) const = default;
};

// Bytes may be this many times as many as those that are kept: a reader takes memory for them.
inline constexpr int64_t kMostPadding = 128;

// The runs that make up `bytes`; empty where leaving the zeros out does not pay.
std::vector<PaddedRun> find_padding(std::span<const std::byte> bytes);

// Bytes with and without the zeros. Nothing when a number is negative, there are more than kMostPadding times as many
// bytes as kept ones, or they overflow 63 bits.
struct PaddedSize {
  int64_t all = 0, kept = 0;
};
std::optional<PaddedSize> measure_padding(std::span<const PaddedRun> runs);

// The kept bytes, one behind the other.
std::vector<std::byte> remove_padding(std::span<const std::byte> bytes, std::span<const PaddedRun> runs);
// `to` is zero-filled and as long as measure_padding() says, and so is `kept`.
void restore_padding(std::span<const std::byte> kept, std::span<const PaddedRun> runs, std::byte* to);

}  // namespace lissome
