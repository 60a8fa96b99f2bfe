#include "lissome/runtime/session/region_progress.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>

#include "lissome/base.h"
#include "lissome/measure.h"

namespace lissome {
namespace {

// Some microseconds: parts of a stage end about together.
constexpr int kSpins = 128;
// Before a thread looks for parts of others: those mostly end about together, and a look costs them a cache miss.
constexpr int kPatience = 32;
constexpr int kCountBits = 16;
constexpr uint64_t kCount = (uint64_t{1} << kCountBits) - 1;

// A turn on the processor, in ticks of the time stamp counter: about a millisecond, less than the system's own 1.4 to
// 4 ms. Who was away for longer than a rest begins a new turn anyway.
constexpr uint64_t kTurn = 3'000'000, kRest = 20 * kTurn;

std::atomic<void (*)()> disturbance{nullptr};

void disturb() {
  if (void (*pause)() = disturbance.load(std::memory_order_acquire)) pause();
}

// Called where a thread holds no part. Other work on this processor gets its time in any case; if it takes it while a
// part is held, all threads of the region wait for as long. So it is offered the processor here, once a turn.
void give_way() {
  thread_local uint64_t turn_began = 0;
  const uint64_t took = __rdtsc() - turn_began;
  if (took < kTurn) return;
  if (took < kRest) sched_yield();
  turn_began = __rdtsc();
}

// The count in a word as region `number` sees it: what an earlier one left means `untouched`.
uint64_t read_count(uint64_t word, uint64_t number, uint64_t untouched) {
  return word >> kCountBits == number ? word & kCount : untouched;
}

}  // namespace

void disturb_thread_pools(void (*pause)()) { disturbance.store(pause, std::memory_order_release); }

void relax(int looks) {
  disturb();
  if (looks < kSpins) {
    _mm_pause();
  } else {
    sched_yield();
  }
}

void RegionProgress::reserve(size_t stages, size_t lines) {
  if (stages > parts_reserved_) {
    parts_reserved_ = 2 * stages;
    all_parts_.push_back(std::make_unique<std::atomic<int>[]>(parts_reserved_));
    parts_.store(all_parts_.back().get(), std::memory_order_release);
  }
  if (lines > lines_reserved_) {
    lines_reserved_ = 2 * lines;
    all_lines_.push_back(std::make_unique<Line[]>(lines_reserved_));
    lines_.store(all_lines_.back().get(), std::memory_order_release);
  }
}

void RegionProgress::open(int threads, const Region& region, int processor) {
  // A helper that sees one of the stores that follow sees this one too.
  const uint32_t sequence = sequence_.load(std::memory_order_relaxed);
  sequence_.store(sequence + 1, std::memory_order_relaxed);
  reserve(region.parts.size(), 2 * static_cast<size_t>(threads) * count_lines(region.parts.size()));
  std::atomic<int>* parts = parts_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < region.parts.size(); ++i) {
    // What is as it was stays in the caches of the helpers.
    if (parts[i].load(std::memory_order_relaxed) != region.parts[i])
      parts[i].store(region.parts[i], std::memory_order_release);
  }
  number_.store(number_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  processor_.store(processor, std::memory_order_release);
  threads_.store(threads, std::memory_order_release);
  stages_.store(static_cast<int>(region.parts.size()), std::memory_order_release);
  run_.store(region.run, std::memory_order_release);
  argument_.store(region.argument, std::memory_order_release);
  stage_.store(0, std::memory_order_release);
  sequence_.store(sequence + 2, std::memory_order_seq_cst);
}

bool RegionProgress::read(View* view) const {
  view->sequence = sequence_.load(std::memory_order_acquire);
  if (view->sequence % 2 != 0) return false;
  view->number = number_.load(std::memory_order_acquire);
  view->threads = threads_.load(std::memory_order_acquire);
  view->stages = stages_.load(std::memory_order_acquire);
  view->stride = count_lines(static_cast<size_t>(view->stages));
  view->parts = parts_.load(std::memory_order_acquire);
  view->lines = lines_.load(std::memory_order_acquire);
  view->run = run_.load(std::memory_order_acquire);
  view->argument = argument_.load(std::memory_order_acquire);
  return !is_over(*view);
}

int RegionProgress::run_range(const View& view, int stage, int owner, int thread) const {
  const int count = view.parts[stage].load(std::memory_order_acquire);
  const int begin = view.begin(owner, count), end = view.begin(owner + 1, count);
  // In this order: a count that belongs to the next region is read after that has begun.
  if (begin == end || is_over(view)) return 0;
  Word& left = view.left(stage, owner);
  int ran = 0;
  while (true) {
    disturb();
    uint64_t seen = left.load(std::memory_order_relaxed);
    if (seen >> kCountBits > view.number) return ran;
    // What an earlier region left is untouched by this one, which then cannot have ended: the range is not empty.
    const uint64_t rest = read_count(seen, view.number, static_cast<uint64_t>(end - begin));
    if (rest == 0) return ran;
    if (!left.compare_exchange_strong(seen, view.number << kCountBits | (rest - 1), std::memory_order_acq_rel))
      continue;
    view.run(view.argument, stage, end - static_cast<int>(rest));
    ++ran;
    Word& ended = view.ended(stage, thread);  // nobody else writes it
    const uint64_t before = read_count(ended.load(std::memory_order_relaxed), view.number, 0);
    ended.store(view.number << kCountBits | (before + 1), std::memory_order_release);
  }
}

bool RegionProgress::has_ended(const View& view, int stage) const {
  auto left = static_cast<uint64_t>(view.parts[stage].load(std::memory_order_relaxed));
  for (int thread = 0; thread < view.threads && left > 0; ++thread) {
    const uint64_t ended = read_count(view.ended(stage, thread).load(std::memory_order_acquire), view.number, 0);
    left -= std::min(left, ended);
  }
  return left == 0;
}

int RegionProgress::run_parts(const View& view, int stage, int thread) const {
  int ran = run_range(view, stage, thread, thread);
  if (view.parts[stage].load(std::memory_order_relaxed) > 1) give_way();
  for (int looks = 0; looks < kPatience && !has_ended(view, stage); ++looks) relax(looks);
  for (int other = 1; other < view.threads && !has_ended(view, stage); ++other)
    ran += run_range(view, stage, (thread + other) % view.threads, thread);
  return ran;
}

int64_t RegionProgress::wait_for_stage(const View& view, int stage) const {
  int64_t start = 0;
  for (int looks = 0; !has_ended(view, stage) && !is_over(view); ++looks) {
    if (looks == kSpins) start = now_nanoseconds();
    relax(looks);
  }
  return start == 0 ? 0 : now_nanoseconds() - start;
}

RegionProgress::OwnerFacts RegionProgress::work_as_owner(const Region& region) {
  View view;
  LISSOME_CHECK(read(&view), "a region that nobody opened");
  OwnerFacts facts;
  int64_t own = 0, all = 0;
  for (int stage = 0; stage < view.stages; ++stage) {
    stage_.store(stage, std::memory_order_release);
    const int ran = run_parts(view, stage, 0), parts = region.parts[static_cast<size_t>(stage)];
    facts.waited += wait_for_stage(view, stage);
    if (parts > 1) own += ran, all += parts;
    if (region.ended) region.ended(region.argument, stage);
  }
  if (all > 0) facts.own_share = static_cast<double>(own) / static_cast<double>(all);
  return facts;
}

void RegionProgress::work_as_helper(int thread) {
  View view;
  if (!read(&view) || thread >= view.threads) return;
  const uint64_t first = view.left(0, thread).load(std::memory_order_relaxed);
  const bool comes_late = read_count(first, view.number, 1) == 0 || view.parts[0].load(std::memory_order_relaxed) == 1;
  for (int stage = comes_late ? stage_.load(std::memory_order_acquire) : 0; stage < view.stages && !is_over(view);
       ++stage) {
    run_parts(view, stage, thread);
    if (stage + 1 < view.stages) wait_for_stage(view, stage);
  }
}

}  // namespace lissome
