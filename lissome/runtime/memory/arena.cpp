#include "lissome/runtime/memory/arena.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "lissome/base.h"
#include "lissome/measure.h"
#include "lissome/runtime/memory/forbid_memory.h"

namespace lissome {
namespace {

constexpr int64_t kTouchedPage = 4096;
constexpr int64_t kHugePage = 2 * 1024 * 1024;

int64_t round_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Arena::~Arena() { release(); }

void Arena::release() {
  if (data_) {
    allow_memory(data_, mapped_);
    munmap(data_, static_cast<size_t>(mapped_));
    allocator_memory().remove(mapped_);
  }
  data_ = nullptr;
  bytes_ = mapped_ = 0;
}

void Arena::reserve(int64_t bytes) {
  if (bytes <= bytes_) return;
  release();
  if (bytes > total_memory_bytes()) {
    throw_error(ErrorKind::over_budget, "planning the memory of a run: ", bytes, " bytes for intermediate values; the ",
                "machine has ", total_memory_bytes(), ". Give smaller inputs.");
  }
  const bool huge = bytes >= kHugePage / 2;
  // Not in whole huge pages: what a budget was told would not fit into it by up to one of them.
  const int64_t size = round_up(bytes, kTouchedPage);
  allocator_memory().take(size, "the memory of a run's intermediate values");
  // Huge pages want an aligned block: map more and give the ends back.
  const int64_t extra = huge ? kHugePage : 0;
  void* mapped =
      mmap(nullptr, static_cast<size_t>(size + extra), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    allocator_memory().remove(size);
    throw_error(ErrorKind::over_budget, "planning the memory of a run: ", size,
                " bytes for intermediate values: ", std::strerror(errno), ". Give smaller inputs.");
  }
  auto* first = static_cast<std::byte*>(mapped);
  auto* aligned = first;
  if (huge) {
    aligned = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<int64_t>(first), kHugePage));
    if (aligned > first) munmap(first, static_cast<size_t>(aligned - first));
    std::byte* end = first + size + extra;
    if (aligned + size < end) munmap(aligned + size, static_cast<size_t>(end - aligned - size));
    madvise(aligned, static_cast<size_t>(size), MADV_HUGEPAGE);
  }
  data_ = aligned;
  bytes_ = bytes;
  mapped_ = size;
  for (int64_t at = 0; at < size; at += kTouchedPage) data_[at] = std::byte{0};
  // The address sanitizer knows nothing of mapped memory: it is told where ours ends.
  forbid_memory(data_ + bytes_, mapped_ - bytes_);
}

}  // namespace lissome
