#include "lissome/base/padding.h"

#include <cstring>

namespace lissome {
namespace {

constexpr size_t kWord = 8;          // bytes; zeros are looked for word by word
constexpr size_t kLeastZeros = 32;   // bytes; shorter runs stay
constexpr size_t kBytesOfARun = 24;  // what it takes in a file, as text

bool is_zero(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, kWord);
  return word == 0;
}

// The first word at or behind `at` that is zero, or not; the number of words where there is none.
size_t find_word(const std::byte* bytes, size_t at, size_t words, bool zero) {
  while (at < words && is_zero(bytes + at * kWord) != zero) ++at;
  return at;
}

void add_run(std::vector<PaddedRun>& runs, int64_t kept, int64_t zeros) {
  if (!runs.empty() && runs.back().kept == kept && runs.back().zeros == zeros) {
    ++runs.back().times;
  } else {
    runs.push_back({kept, zeros, 1});
  }
}

}  // namespace

std::vector<PaddedRun> find_padding(std::span<const std::byte> bytes) {
  const size_t words = bytes.size() / kWord;
  std::vector<PaddedRun> runs;
  size_t begin = 0;  // of the run, in words
  size_t saved = 0;
  for (size_t at = find_word(bytes.data(), 0, words, true); at < words;) {
    const size_t end = find_word(bytes.data(), at, words, false);
    if ((end - at) * kWord >= kLeastZeros) {
      add_run(runs, static_cast<int64_t>((at - begin) * kWord), static_cast<int64_t>((end - at) * kWord));
      saved += (end - at) * kWord;
      begin = end;
      // Zeros of the weights themselves are scattered and not worth their description.
      if (runs.size() * kBytesOfARun > saved / 4 + 1024) return {};
    }
    at = find_word(bytes.data(), end, words, true);
  }
  if (const size_t rest = bytes.size() - begin * kWord; rest > 0) add_run(runs, static_cast<int64_t>(rest), 0);
  const bool pays = runs.size() * kBytesOfARun < saved / 2;
  return pays && measure_padding(runs) ? runs : std::vector<PaddedRun>();
}

std::optional<PaddedSize> measure_padding(std::span<const PaddedRun> runs) {
  PaddedSize size;
  for (const PaddedRun& run : runs) {
    int64_t kept = 0, all = 0;
    if (run.kept < 0 || run.zeros < 0 || run.times < 0 || __builtin_add_overflow(run.kept, run.zeros, &all) ||
        __builtin_mul_overflow(all, run.times, &all) || __builtin_add_overflow(size.all, all, &size.all)) {
      return std::nullopt;
    }
    if (__builtin_mul_overflow(run.kept, run.times, &kept)) return std::nullopt;
    size.kept += kept;  // at most size.all
  }
  if (size.all / kMostPadding > size.kept) return std::nullopt;
  return size;
}

std::vector<std::byte> remove_padding(std::span<const std::byte> bytes, std::span<const PaddedRun> runs) {
  std::vector<std::byte> kept;
  size_t at = 0;
  for (const PaddedRun& run : runs) {
    for (int64_t i = 0; i < run.times; ++i) {
      const auto part = bytes.subspan(at, static_cast<size_t>(run.kept));
      kept.insert(kept.end(), part.begin(), part.end());
      at += static_cast<size_t>(run.kept + run.zeros);
    }
  }
  return kept;
}

void restore_padding(std::span<const std::byte> kept, std::span<const PaddedRun> runs, std::byte* to) {
  const std::byte* from = kept.data();
  for (const PaddedRun& run : runs) {
    if (run.kept == 0) {
      to += run.zeros * run.times;
      continue;
    }
    for (int64_t i = 0; i < run.times; ++i) {
      std::memcpy(to, from, static_cast<size_t>(run.kept));
      from += run.kept;
      to += run.kept + run.zeros;
    }
  }
}

}  // namespace lissome
