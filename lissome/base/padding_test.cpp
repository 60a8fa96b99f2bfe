#include "lissome/base/padding.h"

#include <doctest/doctest.h>

#include <random>

using namespace lissome;

namespace {

// `rows` rows of `width` bytes, the first `kept` of each random.
std::vector<std::byte> make_panel(size_t rows, size_t width, size_t kept, std::mt19937& random) {
  std::vector<std::byte> bytes(rows * width);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % width < kept) bytes[i] = static_cast<std::byte>(1 + random() % 255);
  }
  return bytes;
}

// Returns the bytes that are kept; all of them where leaving zeros out does not pay.
size_t check_restored(std::span<const std::byte> bytes) {
  const std::vector<PaddedRun> runs = find_padding(bytes);
  if (runs.empty()) return bytes.size();
  const auto size = measure_padding(runs);
  REQUIRE(size);
  REQUIRE(size->all == static_cast<int64_t>(bytes.size()));
  const std::vector<std::byte> kept = remove_padding(bytes, runs);
  REQUIRE(kept.size() == static_cast<size_t>(size->kept));
  std::vector<std::byte> restored(bytes.size());
  restore_padding(kept, runs, restored.data());
  CHECK(std::equal(bytes.begin(), bytes.end(), restored.begin()));
  return kept.size();
}

}  // namespace

TEST_CASE("panels of any form are restored, with little more than their own bytes") {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const size_t rows = 1 + random() % 300, width = (1 + random() % 64) * 8, kept = random() % (width + 1);
    std::vector<std::byte> bytes = make_panel(rows, width, kept, random);
    const std::vector<std::byte> more = make_panel(random() % 40, 256, 256, random);
    bytes.insert(bytes.begin(), more.begin(), more.end());
    const size_t left = check_restored(bytes);
    const bool pays = width - kept >= 48 && rows >= 20 && kept * 100 > width;
    if (pays) CHECK(left <= more.size() + rows * (kept + 16));
  }
}

TEST_CASE("bytes with nothing to leave out stay as they are") {
  std::mt19937 random(7);
  CHECK(find_padding({}).empty());
  CHECK(check_restored(make_panel(100, 64, 64, random)) == 6400);
  CHECK(check_restored(std::vector<std::byte>(1 << 16)) == size_t{1} << 16);  // zeros alone: beyond kMostPadding
  // Half of the elements of a pruned weight, anywhere.
  std::vector<std::byte> pruned = make_panel(1000, 64, 64, random);
  for (size_t i = 0; i < pruned.size(); i += 4) {
    if (random() % 2 == 0) std::fill_n(pruned.begin() + static_cast<std::ptrdiff_t>(i), 4, std::byte{0});
  }
  CHECK(check_restored(pruned) == pruned.size());
}

TEST_CASE("runs that overflow or take too much memory are refused") {
  const auto measure = [](const PaddedRun& run) { return measure_padding({&run, 1}); };
  CHECK(measure({4, 4, 2})->all == 16);
  CHECK(measure({4, 4, 2})->kept == 8);
  CHECK(!measure({-1, 4, 2}));
  CHECK(!measure({4, -1, 2}));
  CHECK(!measure({4, 4, -1}));
  CHECK(!measure({INT64_MAX, 1, 1}));
  CHECK(!measure({INT64_MAX / 2, 0, 3}));
  CHECK(!measure({0, 1 << 20, 1}));
  CHECK(!measure({1, kMostPadding, 1000}));
  CHECK(measure({1, kMostPadding - 1, 1000}));
}
