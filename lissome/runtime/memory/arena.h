// One block of memory for the intermediate values and scratch of a run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lissome {

// 64-byte aligned; from 1 MiB on 2 MiB aligned and, where the system has them to give, in huge pages. Pages are touched
// when the block is made, so that the first run does not pay for it.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Grows to at least `bytes`; contents are lost then. Throws over_budget when the system gives no memory.
  void reserve(int64_t bytes);
  // Gives the block back.
  void release();
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0, mapped_ = 0;
};

}  // namespace lissome
