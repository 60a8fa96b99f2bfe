#include "lissome/runtime/weight_stream.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <set>

#include "lissome/measure.h"

namespace lissome {
namespace {

using Pages = std::span<const std::byte>;

#ifndef MADV_POPULATE_READ
constexpr int MADV_POPULATE_READ = 22;  // Linux 5.14
#endif

const int64_t kPage = sysconf(_SC_PAGESIZE);

// Address ranges of this process that a file stands behind.
std::vector<std::pair<uintptr_t, uintptr_t>> list_mapped_files() {
  std::vector<std::pair<uintptr_t, uintptr_t>> ranges;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    // "7f00-7f10 r--p 00000000 08:01 123   /path": the fifth field is 0 where there is no file.
    unsigned long long first = 0, last = 0, inode = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %*s %*s %*s %llu", &first, &last, &inode) == 3 && inode != 0)
      ranges.emplace_back(first, last);
  }
  return ranges;
}

// Outwards to whole pages: a neighbour that shares one is read again when it is needed.
Pages find_pages(const Array& array) {
  const auto first = reinterpret_cast<uintptr_t>(array.storage.get()) / static_cast<uintptr_t>(kPage);
  const auto last =
      (reinterpret_cast<uintptr_t>(array.storage.get()) + static_cast<uintptr_t>(array.bytes() + kPage - 1)) /
      static_cast<uintptr_t>(kPage);
  return {reinterpret_cast<const std::byte*>(first * static_cast<uintptr_t>(kPage)),
          (last - first) * static_cast<size_t>(kPage)};
}

bool lies_in(const Pages& pages, const std::vector<std::pair<uintptr_t, uintptr_t>>& ranges) {
  const auto first = reinterpret_cast<uintptr_t>(pages.data());
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const auto& range) { return range.first <= first && first + pages.size() <= range.second; });
}

void advise(const Pages& pages, int advice) { madvise(const_cast<std::byte*>(pages.data()), pages.size(), advice); }

void read_pages(const std::vector<Pages>& list) {
  for (const Pages& pages : list) advise(pages, MADV_WILLNEED);
  for (const Pages& pages : list) {
    if (madvise(const_cast<std::byte*>(pages.data()), pages.size(), MADV_POPULATE_READ) == 0) continue;
    for (size_t at = 0; at < pages.size(); at += static_cast<size_t>(kPage)) {
      [[maybe_unused]] const volatile std::byte touched = *static_cast<const volatile std::byte*>(pages.data() + at);
    }
  }
}

// The system keeps what it has read as long as it has memory to spare; this process holds it no longer.
void drop_pages(const std::vector<Pages>& list) {
  for (const Pages& pages : list) advise(pages, MADV_DONTNEED);
}

}  // namespace

WeightStream::WeightStream(const Plan& plan, std::span<const Array> arrays)
    : pages_(plan.steps.size()), bytes_(plan.steps.size(), 0) {
  const auto mapped = list_mapped_files();
  std::set<const void*> fixed;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const int operand : plan.steps[i].operands) {
      if (operand < 0) continue;
      const PlanValue& value = plan.values[static_cast<size_t>(operand)];
      if (value.storage != Storage::constant) continue;
      const Array& array = arrays[static_cast<size_t>(value.array)];
      if (array.bytes() == 0) continue;
      const Pages pages = find_pages(array);
      if (lies_in(pages, mapped)) {
        pages_[i].push_back(pages);
        bytes_[i] += static_cast<int64_t>(pages.size());
      } else if (fixed.insert(array.storage.get()).second) {
        fixed_bytes_ += array.bytes();
      }
    }
    largest_step_ = std::max(largest_step_, bytes_[i]);
  }
  reader_ = std::thread([this] { serve(); });
}

WeightStream::~WeightStream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

void WeightStream::set_limit(int64_t bytes) {
  if (bytes == limit_) return;
  limit_ = bytes;
  const int64_t file_bytes = bytes - fixed_bytes_;
  int64_t total = 0;
  for (const int64_t step : bytes_) total += step;
  if (total <= file_bytes) {
    cut(total, total);
  } else {
    // Small windows leave more room for what stays; 1 MiB takes long beside handing it over.
    constexpr int64_t kSmallWindow = int64_t{1} << 20;
    const int64_t window = std::max(largest_step_, std::min(file_bytes / 4, kSmallWindow));
    ahead_ = 2 * window <= file_bytes;
    cut(ahead_ ? window : file_bytes, ahead_ ? file_bytes - 2 * window : 0);
  }
  for (const auto& pages : pages_) drop_pages(pages);
  facts_.weights = total + fixed_bytes_;
  facts_.streamed = 0;
  for (const Window& window : windows_) facts_.streamed += window.bytes;
  facts_.bytes_per_second = facts_.streamed > 0 ? measure_rate() : 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  wanted_ = there_ = -1;
}

// Windows of at most `most` bytes each; of all steps about `kept` bytes are in none and stay.
void WeightStream::cut(int64_t most, int64_t kept) {
  windows_.assign(1, {});
  int64_t total = 0, seen = 0, staying = 0;
  for (const int64_t step : bytes_) total += step;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    seen += bytes_[i];
    const double share = total > 0 ? static_cast<double>(kept) / static_cast<double>(total) : 0;
    const bool stays = staying + bytes_[i] <= kept &&
                       (kept >= total || static_cast<double>(staying + bytes_[i]) <= share * static_cast<double>(seen));
    if (stays) staying += bytes_[i];
    if (!stays && windows_.back().bytes + bytes_[i] > most) {
      windows_.push_back({static_cast<int>(i), static_cast<int>(i), {}, 0});
    }
    Window& window = windows_.back();
    window.last = static_cast<int>(i) + 1;
    if (stays) continue;
    window.bytes += bytes_[i];
    window.pages.insert(window.pages.end(), pages_[i].begin(), pages_[i].end());
  }
}

// As it will be: out of the system's cache where the file is in it, off the disk else.
double WeightStream::measure_rate() {
  constexpr int64_t kEnough = int64_t{64} << 20;
  int64_t bytes = 0;
  double seconds = 0;
  for (const Window& window : windows_) {
    const Stopwatch watch;
    read_pages(window.pages);
    drop_pages(window.pages);
    seconds += watch.seconds();
    bytes += window.bytes;
    if (bytes >= kEnough) break;
  }
  return static_cast<double>(bytes) / seconds;
}

void WeightStream::request(size_t window) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    wanted_ = static_cast<std::ptrdiff_t>(window);
  }
  changed_.notify_all();
}

void WeightStream::serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || wanted_ != there_; });
    if (stop_) return;
    const std::ptrdiff_t window = wanted_;
    if (window >= 0) {
      lock.unlock();
      read_pages(windows_[static_cast<size_t>(window)].pages);
      lock.lock();
    }
    there_ = window;
    changed_.notify_all();
  }
}

void WeightStream::enter(size_t window) {
  if (windows_[window].bytes == 0) return;
  const auto at = static_cast<std::ptrdiff_t>(window);
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (wanted_ != at) {
      // Not the one that was read ahead: the first run, or one after an error.
      changed_.wait(lock, [this] { return wanted_ == there_; });
      if (there_ >= 0) drop_pages(windows_[static_cast<size_t>(there_)].pages);
      wanted_ = at;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return there_ == at; });
  }
  if (!ahead_) return;
  size_t next = (window + 1) % windows_.size();
  while (windows_[next].bytes == 0) next = (next + 1) % windows_.size();
  if (next != window) request(next);
}

void WeightStream::leave(size_t window) {
  if (windows_[window].bytes > 0) drop_pages(windows_[window].pages);
}

}  // namespace lissome
