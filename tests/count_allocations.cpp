// The allocation functions of the C library, counted and handed on; under a sanitizer, which has replaced them already,
// through its hook.
#include "tests/count_allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<int64_t> allocations{0};

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

// From the sanitizers' runtime; its header is not everywhere that the compiler is.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*taken)(const volatile void*, size_t),
                                                         void (*freed)(const volatile void*));

namespace lissome {

int64_t count_allocations() {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, size_t) { ++allocations; }, [](const volatile void*) {});
  static_cast<void>(installed);
  return allocations.load();
}

}  // namespace lissome

#else

extern "C" {

// glibc's own, under the names that it keeps for replacements like these.
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) noexcept {
  ++allocations;
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) noexcept {
  ++allocations;
  return __libc_calloc(count, size);
}

void* realloc(void* old, size_t size) noexcept {
  ++allocations;
  return __libc_realloc(old, size);
}

void* memalign(size_t alignment, size_t size) noexcept {
  ++allocations;
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) noexcept { return memalign(alignment, size); }

int posix_memalign(void** result, size_t alignment, size_t size) noexcept {
  *result = memalign(alignment, size);
  return *result ? 0 : ENOMEM;
}

}  // extern "C"

namespace lissome {

int64_t count_allocations() { return allocations.load(); }

}  // namespace lissome

#endif
