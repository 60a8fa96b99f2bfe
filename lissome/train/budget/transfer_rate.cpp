// See transfer_rate.h.
#include "lissome/train/budget/transfer_rate.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "lissome/measure.h"
#include "lissome/runtime.h"

namespace lissome {
namespace {

constexpr int64_t kMovedBytes = 32 << 20;
constexpr int kMoves = 3;  // the best counts

}  // namespace

double measure_copy_rate() {
  const auto from = std::make_unique<std::byte[]>(kMovedBytes), to = std::make_unique<std::byte[]>(kMovedBytes);
  double best = 0;
  for (int i = 0; i < kMoves; ++i) {
    const Stopwatch watch;
    std::memcpy(to.get(), from.get(), kMovedBytes);
    best = std::max(best, 2 * static_cast<double>(kMovedBytes) / watch.seconds());
  }
  return best;
}

double FolderRates::predict(double seconds, int64_t bytes) const {
  const auto moved = static_cast<double>(bytes);
  return std::max(seconds + moved / cache, moved / disk);
}

FolderRates measure_folder(const std::string& folder) {
  UnnamedFile file(folder);
  file.reserve(kMovedBytes);
  const auto data = std::make_unique<std::byte[]>(kMovedBytes);
  FolderRates rates;
  {
    const Stopwatch watch;
    file.write(0, data.get(), kMovedBytes);
    fdatasync(file.descriptor());
    posix_fadvise(file.descriptor(), 0, kMovedBytes, POSIX_FADV_DONTNEED);
    file.read(0, data.get(), kMovedBytes);
    rates.disk = 2 * static_cast<double>(kMovedBytes) / watch.seconds();
  }
  for (int i = 0; i < kMoves; ++i) {
    const Stopwatch watch;
    file.write(0, data.get(), kMovedBytes);
    file.read(0, data.get(), kMovedBytes);
    rates.cache = std::max(rates.cache, 2 * static_cast<double>(kMovedBytes) / watch.seconds());
  }
  return rates;
}

}  // namespace lissome
