// See mapped_range.h. Handlers walk the list while other threads change it: entries are atomics in blocks that are
// never freed, and an entry whose mapping broke is never used again.
#include "lissome/base/mapped_range.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "lissome/base/error.h"
#include "lissome/base/text.h"

namespace lissome {
namespace {

constexpr uintptr_t kUnused = 0, kFilling = 1;  // of Entry::begin; no mapping begins there
std::atomic<bool> any_broken{false};

}  // namespace

struct MappedRange::Entry {
  std::atomic<uintptr_t> begin{kUnused}, end{0};
  std::atomic<bool> broken{false};
  std::string path;
};

struct MappedRange::Block {
  std::array<Entry, 64> entries;
  std::atomic<Block*> next{nullptr};
};

MappedRange::Block MappedRange::first_block;

MappedRange::MappedRange(const void* data, size_t bytes, const std::string& path) : entry_(nullptr) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  for (Block* block = &first_block;; block = block->next.load()) {
    for (Entry& entry : block->entries) {
      uintptr_t expected = kUnused;
      if (!entry.begin.compare_exchange_strong(expected, kFilling)) continue;
      entry.path = path;
      entry.end.store(begin + bytes);
      entry.begin.store(begin);
      entry_ = &entry;
      return;
    }
    if (block->next.load() != nullptr) continue;
    auto* const added = new Block;
    Block* expected = nullptr;
    if (!block->next.compare_exchange_strong(expected, added)) delete added;  // another thread was first
  }
}

MappedRange::~MappedRange() {
  // A broken one keeps its path for the message, and lists no addresses.
  entry_->end.store(0);
  entry_->begin.store(entry_->broken.load() ? kFilling : kUnused);
}

bool cover_mapped_range(const void* address) noexcept {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (MappedRange::Block* block = &MappedRange::first_block; block != nullptr; block = block->next.load()) {
    for (MappedRange::Entry& entry : block->entries) {
      const uintptr_t begin = entry.begin.load(), end = entry.end.load();
      if (begin <= kFilling || at < begin || at >= end) continue;
      entry.broken.store(true);
      any_broken.store(true);
      void* const start = reinterpret_cast<void*>(begin);
      return mmap(start, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
                  -1, 0) == start;
    }
  }
  return false;
}

void check_mappings() {
  if (!any_broken.load(std::memory_order_relaxed)) [[likely]]
    return;
  for (MappedRange::Block* block = &MappedRange::first_block; block != nullptr; block = block->next.load()) {
    for (MappedRange::Entry& entry : block->entries) {
      if (!entry.broken.load()) continue;
      throw_error(ErrorKind::io, quote(entry.path),
                  " was truncated while it was used (or its disk failed); nothing computed since then counts.\n      ",
                  "Bring the file back whole, then try again; replace files by renaming, not by writing into them");
    }
  }
}

}  // namespace lissome
