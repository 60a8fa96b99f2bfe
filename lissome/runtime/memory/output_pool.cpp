#include "lissome/runtime/memory/output_pool.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "lissome/base.h"
#include "lissome/measure.h"

namespace lissome {
namespace {

// Smaller blocks come from memory that the C library keeps anyway.
constexpr int64_t kLeastBytes = 128 * 1024;

}  // namespace

struct OutputPool::Kept {
  struct Block {
    void* memory;
    int64_t bytes;
  };
  static Block allocate(int64_t bytes);
  static void release(const Block& block);

  std::mutex mutex;
  std::vector<Block> blocks;

  ~Kept() { std::for_each(blocks.begin(), blocks.end(), release); }

  // One of this size, or none, and then what is kept goes.
  Block find(int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = std::find_if(blocks.begin(), blocks.end(), [&](const Block& b) { return b.bytes == bytes; });
    if (found != blocks.end()) {
      const Block block = *found;
      blocks.erase(found);
      return block;
    }
    std::for_each(blocks.begin(), blocks.end(), release);
    blocks.clear();
    return {nullptr, 0};
  }
  void add(const Block& block) {
    const std::lock_guard<std::mutex> lock(mutex);
    blocks.push_back(block);
  }
};

OutputPool::Kept::Block OutputPool::Kept::allocate(int64_t bytes) {
  allocator_memory().take(bytes, "an output");
  void* memory = std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64));
  if (!memory) {
    allocator_memory().remove(bytes);
    throw_error(ErrorKind::over_budget, "the system has no memory for an output of ", bytes, " bytes");
  }
  return {memory, bytes};
}

void OutputPool::Kept::release(const Block& block) {
  std::free(block.memory);
  allocator_memory().remove(block.bytes);
}

OutputPool::OutputPool() : kept_(std::make_shared<Kept>()) {}

std::shared_ptr<void> OutputPool::take(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);
  if (bytes < kLeastBytes) {
    const Kept::Block block = Kept::allocate(bytes);
    return {block.memory, [block](void*) { Kept::release(block); }};
  }
  Kept::Block block = kept_->find(bytes);
  if (block.memory == nullptr) block = Kept::allocate(bytes);
  return {block.memory, [block, pool = std::weak_ptr<Kept>(kept_)](void*) {
            if (const std::shared_ptr<Kept> kept = pool.lock()) {
              kept->add(block);
            } else {
              Kept::release(block);
            }
          }};
}

}  // namespace lissome
