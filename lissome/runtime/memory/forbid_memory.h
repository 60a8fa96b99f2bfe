// What the address sanitizer is told of memory that it did not give out; nothing without it.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LISSOME_FORBIDS_MEMORY 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define LISSOME_FORBIDS_MEMORY 1
#endif

#if defined(LISSOME_FORBIDS_MEMORY)
extern "C" void __asan_poison_memory_region(const volatile void* address, size_t size);
extern "C" void __asan_unpoison_memory_region(const volatile void* address, size_t size);
#endif

namespace lissome {

inline void forbid_memory([[maybe_unused]] const std::byte* first, [[maybe_unused]] int64_t bytes) {
#if defined(LISSOME_FORBIDS_MEMORY)
  if (first != nullptr) __asan_poison_memory_region(first, static_cast<size_t>(bytes));
#endif
}

inline void allow_memory([[maybe_unused]] const std::byte* first, [[maybe_unused]] int64_t bytes) {
#if defined(LISSOME_FORBIDS_MEMORY)
  if (first != nullptr) __asan_unpoison_memory_region(first, static_cast<size_t>(bytes));
#endif
}

}  // namespace lissome
