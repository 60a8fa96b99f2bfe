#include "lissome/runtime/memory/weight_stream.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <set>
#include <utility>

#include "lissome/measure.h"
#include "lissome/runtime/step/move/gather_steps.h"

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
Pages find_pages(const void* data, int64_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(data) / static_cast<uintptr_t>(kPage);
  const auto last =
      (reinterpret_cast<uintptr_t>(data) + static_cast<uintptr_t>(bytes + kPage - 1)) / static_cast<uintptr_t>(kPage);
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

// With a page the system maps its neighbours, as far as they are in its cache.
constexpr int64_t kMappedAtOnce = 64 << 10;

int64_t count_bytes(const std::vector<Pages>& list) {
  int64_t bytes = 0;
  for (const Pages& pages : list) bytes += static_cast<int64_t>(pages.size());
  return bytes;
}

// Pages of `list` that `others` do not hold.
std::vector<Pages> list_others(const std::vector<Pages>& list, const std::vector<Pages>& others) {
  std::vector<Pages> rest;
  for (const Pages& pages : list) {
    const bool held =
        std::any_of(others.begin(), others.end(), [&](const Pages& other) { return other.data() == pages.data(); });
    if (!held) rest.push_back(pages);
  }
  return rest;
}

// By step: the constants and inputs whose memory it reads, through views and what libtorch may alias.
std::vector<std::vector<PlanValueId>> list_reads(const Plan& plan) {
  constexpr size_t kMost = size_t{1} << 22;  // of all steps; long chains of aliases would list the same again and again
  std::vector<std::vector<PlanValueId>> lies_in(plan.values.size()), reads(plan.steps.size());
  std::vector<size_t> seen(plan.values.size(), SIZE_MAX);  // the last step that lists the value
  size_t listed = 0;
  for (const PlanValueId id : plan.value_ids()) {
    const Storage storage = plan.value(id).storage;
    if (storage == Storage::constant || storage == Storage::input) lies_in[static_cast<size_t>(id)] = {id};
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    for (const PlanValueId operand : step.operands) {
      if (!is_value(operand)) continue;
      for (const PlanValueId value : lies_in[static_cast<size_t>(operand)]) {
        if (std::exchange(seen[static_cast<size_t>(value)], i) != i) reads[i].push_back(value);
      }
    }
    listed += reads[i].size();
    if (listed > kMost)
      throw_error(ErrorKind::invalid_input, "the first ", i + 1, " steps of the plan may read ", listed,
                  " weights and inputs through results of libtorch that share memory; at most ", kMost, " are taken");
    bool is_view = false;
    for (const PlanValueId result : step.results) {
      is_view = plan.value(result).storage == Storage::view;
      if (is_view || step.keeps_operands) lies_in[static_cast<size_t>(result)] = reads[i];
    }
    if (is_view) reads[i].clear();  // it only names memory
  }
  return reads;
}

}  // namespace

WeightStream::WeightStream(const Plan& plan, bool comes_again)
    : steps_(plan.steps.size()), places_(plan.values.size()), comes_again_(comes_again) {
  std::vector<std::vector<PlanValueId>> reads = list_reads(plan);
  for (size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].reads = std::move(reads[i]);
    // Rows of a packed table lie scattered over pages, and the linear that packed it reads all of them anyway.
    const PlanStep& step = plan.steps[i];
    steps_[i].chooses_rows = is_step<GatherRowsStep>(step) && !read_step<GatherRowsStep>(step).is_packed();
  }
  reader_ = std::thread([this] { serve(); });
}

WeightStream::WeightStream(const Plan& plan, std::span<const Array> arrays) : WeightStream(plan, true) {
  const auto mapped = list_mapped_files();
  std::set<const void*> fixed;
  for (const Step& step : steps_) {
    for (const PlanValueId value : step.reads) {
      const auto at = static_cast<size_t>(value);
      if (plan.values[at].storage != Storage::constant) continue;
      const Array& array = arrays[static_cast<size_t>(plan.values[at].array)];
      if (array.bytes() == 0) continue;
      const Pages pages = find_pages(array.storage.get(), array.bytes());
      if (lies_in(pages, mapped)) {
        places_[at] = pages;
      } else if (fixed.insert(array.storage.get()).second) {
        fixed_bytes_ += array.bytes();
      }
    }
  }
  place_steps();
}

WeightStream::WeightStream(const Plan& plan, std::span<const size_t> inputs) : WeightStream(plan, false) {
  inputs_.assign(inputs.begin(), inputs.end());
  for (const size_t input : inputs_) input_values_.push_back(plan.inputs.at(input).value);
  lie_at_.assign(inputs_.size(), nullptr);
}

WeightStream::~WeightStream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

void WeightStream::follow(std::span<const TensorView> inputs) {
  const auto lies_as_before = [&] {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (lie_at_[i] != inputs[inputs_[i]].data) return false;
    }
    return true;
  };
  if (lies_as_before()) return;
  // The old places may hold something else by now.
  settle();
  windows_.clear(), current_ = -1;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorView& view = inputs[inputs_[i]];
    lie_at_[i] = view.data;
    places_[static_cast<size_t>(input_values_[i])] = find_pages(view.data, view.elements() * item_size(view.dtype));
  }
  place_steps();
}

void WeightStream::place_steps() {
  for (Step& step : steps_) {
    step.pages.clear();
    for (const PlanValueId value : step.reads) {
      const Pages& pages = places_[static_cast<size_t>(value)];
      if (!pages.empty()) step.pages.push_back(pages);
    }
    const int64_t whole = count_bytes(step.pages);
    const bool all = !step.chooses_rows || step.rows > whole / kMappedAtOnce;
    step.bytes = all ? whole : step.rows * kMappedAtOnce;
  }
  limit_ = -1;
}

void WeightStream::book_rows(int step, int64_t rows) {
  Step& booked = steps_[static_cast<size_t>(step)];
  if (!booked.chooses_rows || rows <= booked.rows) return;
  booked.rows = rows;
  place_steps();
}

int64_t WeightStream::total_bytes() const {
  int64_t total = 0;
  for (const Step& step : steps_) total += step.bytes;
  return total;
}

int64_t WeightStream::largest_step() const {
  int64_t largest = 0;
  for (const Step& step : steps_) largest = std::max(largest, step.bytes);
  return largest;
}

int64_t WeightStream::least_bytes() const { return fixed_bytes_ + largest_step(); }

void WeightStream::set_limit(int64_t bytes) {
  if (bytes == limit_) return;
  limit_ = bytes;
  settle();
  current_ = -1;
  const int64_t file_bytes = bytes - fixed_bytes_;
  const int64_t total = total_bytes();
  if (total <= file_bytes) {
    cut(total, total);
  } else {
    // Small windows leave more room for what stays; 1 MiB takes long beside handing it over.
    constexpr int64_t kSmallWindow = int64_t{1} << 20;
    const int64_t wanted = comes_again_ ? std::min(file_bytes / 4, kSmallWindow) : file_bytes / 2;
    const int64_t window = std::max(largest_step(), wanted);
    ahead_ = 2 * window <= file_bytes;
    cut(ahead_ ? window : file_bytes, ahead_ && comes_again_ ? file_bytes - 2 * window : 0);
  }
  for (const Step& step : steps_) drop_pages(step.pages);
  facts_ = {fixed_bytes_, 0, 0};
  for (const Step& step : steps_) facts_.weights += count_bytes(step.pages);
  for (const Window& window : windows_) facts_.streamed += count_bytes(window.pages);
  facts_.bytes_per_second = facts_.streamed > 0 ? measure_rate() : 0;
}

// Windows of at most `most` bytes each; of all steps about `kept` bytes are in none and stay.
void WeightStream::cut(int64_t most, int64_t kept) {
  windows_.assign(1, {});
  const int64_t total = total_bytes();
  int64_t seen = 0, staying = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    seen += step.bytes;
    const double share = total > 0 ? static_cast<double>(kept) / static_cast<double>(total) : 0;
    const bool in_time =
        kept >= total || static_cast<double>(staying + step.bytes) <= share * static_cast<double>(seen);
    // Of a table other rows are read with every call: it would grow whole.
    const bool stays = !step.chooses_rows && staying + step.bytes <= kept && in_time;
    if (stays) staying += step.bytes;
    const auto list_news = [&] {
      return step.chooses_rows ? step.pages : list_others(step.pages, windows_.back().pages);
    };
    const auto count_news = [&](const std::vector<Pages>& news) {
      return step.chooses_rows ? step.bytes : count_bytes(news);
    };
    std::vector<Pages> news = list_news();
    if (!stays && windows_.back().bytes + count_news(news) > most) {
      windows_.push_back({static_cast<int>(i), static_cast<int>(i), {}, {}, {}, 0});
      news = list_news();
    }
    Window& window = windows_.back();
    window.last = static_cast<int>(i) + 1;
    if (stays) continue;
    window.bytes += count_news(news);
    auto& pages = step.chooses_rows ? window.tables : window.pages;
    pages.insert(pages.end(), news.begin(), news.end());
  }
  for (size_t i = 0; i < windows_.size(); ++i) {
    const bool last = i + 1 == windows_.size();
    windows_[i].leaving = last ? windows_[i].pages : list_others(windows_[i].pages, windows_[i + 1].pages);
  }
}

// As it will be, handing over included: out of the system's cache where the file is in it, off the disk else.
double WeightStream::measure_rate() {
  constexpr int64_t kEnough = int64_t{64} << 20;
  int64_t bytes = 0;
  const Stopwatch watch;
  for (size_t i = 0; i < windows_.size() && bytes < kEnough; ++i) {
    enter(i);
    leave(i);
    bytes += count_bytes(windows_[i].pages);
  }
  return static_cast<double>(bytes) / watch.seconds();
}

void WeightStream::request(size_t window) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    wanted_ = static_cast<std::ptrdiff_t>(window);
  }
  changed_.notify_all();
}

// The reader looks at windows only while it is asked for one.
void WeightStream::settle() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return wanted_ == there_; });
  wanted_ = there_ = -1;
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
  if (windows_[window].pages.empty()) return;
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
  size_t next = window + 1;
  while (next < windows_.size() && windows_[next].pages.empty()) ++next;
  if (next == windows_.size()) {
    if (!comes_again_) return;
    for (next = 0; windows_[next].pages.empty();) ++next;
  }
  if (next != window) request(next);
}

void WeightStream::leave(size_t window) {
  drop_pages(windows_[window].leaving);
  drop_pages(windows_[window].tables);
}

int WeightStream::advance(int step) {
  const auto holds = [&](const Window& window) { return window.first <= step && step < window.last; };
  if (current_ < 0 || !holds(windows_[static_cast<size_t>(current_)])) {
    if (current_ >= 0) leave(static_cast<size_t>(current_));
    const auto found = std::find_if(windows_.begin(), windows_.end(), holds);
    LISSOME_CHECK(found != windows_.end(), "no window holds step ", step);
    current_ = found - windows_.begin();
    enter(static_cast<size_t>(current_));
  }
  return windows_[static_cast<size_t>(current_)].last;
}

void WeightStream::finish() {
  if (current_ >= 0) leave(static_cast<size_t>(current_));
  current_ = -1;
  if (!comes_again_) settle();
}

}  // namespace lissome
