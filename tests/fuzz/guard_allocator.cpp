#include "tests/fuzz/guard_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace lissome {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSlot = 16 * kPage;  // without its guard
constexpr size_t kSlots = 2048;
constexpr size_t kAlignment = 16;
constexpr size_t kMostLive = size_t{64} << 20;
constexpr size_t kMostAllocations = 20'000;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

class GuardAllocator final : public c10::Allocator {
 public:
  GuardAllocator() {
    base_ = map((kSlot + kPage) * kSlots + kPage);
    for (size_t i = kSlots; i-- > 0;) {
      if (mprotect(slot(i), kSlot, PROT_READ | PROT_WRITE) != 0) std::abort();
      free_.push_back(i);
    }
  }

  c10::DataPtr allocate(size_t bytes) override {
    void* memory = take(bytes);
    return {memory, memory, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t count) const override { std::memcpy(to, from, count); }

  void reset_budget() { allocations_ = 0; }
  void* take(size_t bytes);
  void put_back(void* memory);

 private:
  static void give_back(void* memory);
  static std::byte* map(size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    return static_cast<std::byte*>(memory);
  }
  std::byte* slot(size_t i) const { return base_ + kPage + i * (kSlot + kPage); }
  bool is_slot(const std::byte* memory) const {
    return memory >= base_ && memory < base_ + (kSlot + kPage) * kSlots + kPage;
  }

  std::mutex mutex_;
  std::byte* base_ = nullptr;
  std::vector<size_t> free_;
  struct Mapping {
    std::byte* first;
    size_t mapped, bytes;
  };
  std::map<void*, Mapping> large_;
  size_t live_ = 0;  // bytes of large ones
  size_t allocations_ = 0;
};

GuardAllocator& allocator() {
  static auto* const instance = new GuardAllocator;  // outlives every tensor
  return *instance;
}

void* GuardAllocator::take(size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  TORCH_CHECK(++allocations_ <= kMostAllocations, "not enough memory: too many tensors in one execution");
  const size_t rounded = round_up(bytes, kAlignment);
  if (rounded <= kSlot && rounded >= bytes && !free_.empty()) {
    const size_t at = free_.back();
    free_.pop_back();
    return slot(at) + kSlot - rounded;
  }
  TORCH_CHECK(rounded >= bytes && rounded <= kMostLive && live_ + rounded <= kMostLive, "not enough memory: ", bytes,
              " bytes for a tensor");
  const size_t pages = round_up(rounded, kPage);
  std::byte* first = map(pages + 2 * kPage);
  if (mprotect(first + kPage, pages, PROT_READ | PROT_WRITE) != 0) std::abort();
  live_ += rounded;
  void* memory = first + kPage + pages - rounded;
  large_[memory] = {first, pages + 2 * kPage, rounded};
  return memory;
}

void GuardAllocator::put_back(void* memory) {
  if (memory == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  auto* const place = static_cast<std::byte*>(memory);
  if (is_slot(place)) {
    free_.push_back(static_cast<size_t>(place - base_ - kPage) / (kSlot + kPage));
    return;
  }
  const auto found = large_.find(memory);
  if (found == large_.end()) std::abort();
  live_ -= found->second.bytes;
  munmap(found->second.first, found->second.mapped);
  large_.erase(found);
}

void GuardAllocator::give_back(void* memory) { allocator().put_back(memory); }

}  // namespace

void install_guard_allocator() { c10::SetCPUAllocator(&allocator(), /*priority=*/255); }

void reset_guard_budget() { allocator().reset_budget(); }

Array copy_guarded(const Array& array) {
  Array copy{array.dtype, array.sizes, nullptr};
  void* memory = allocator().take(static_cast<size_t>(array.bytes()));
  if (memory != nullptr) std::memcpy(memory, array.storage.get(), static_cast<size_t>(array.bytes()));
  copy.storage = std::shared_ptr<void>(memory, [](void* block) { allocator().put_back(block); });
  return copy;
}

}  // namespace lissome
