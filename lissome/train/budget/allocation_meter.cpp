// See allocation_meter.h. Wraps the previous allocator, which still does all the work. Sizes are kept beside the
// blocks, not in them, because oneDNN may release a block through another allocator than the one that allocated it.
#include "lissome/train/budget/allocation_meter.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "lissome/base.h"
#include "lissome/measure.h"

namespace lissome {
namespace {

class MeteredAllocator : public c10::Allocator {
 public:
  explicit MeteredAllocator(c10::Allocator* inner) : inner_(inner) {
    LISSOME_CHECK(inner->raw_deleter() != nullptr, "libtorch's CPU allocator has no raw interface");
  }

  c10::DataPtr allocate(size_t bytes) override {
    const auto taken = static_cast<int64_t>(bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, allocator_memory().fits(taken), "a tensor of ", format_bytes(taken),
                     " does not fit: ", format_bytes(allocator_memory().live()), " are taken of ",
                     format_bytes(allocator_memory().limit()));
    void* block = inner_->raw_allocate(bytes);
    if (block != nullptr) note_taken(block, taken);
    return {block, block, &release, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  bool knows(const void* block) {
    const std::lock_guard lock(mutex_);
    return sizes_.contains(block);
  }

 private:
  static void release(void* block);

  void note_taken(const void* block, int64_t bytes) {
    allocator_memory().add(bytes);
    const std::lock_guard lock(mutex_);
    sizes_.emplace(block, bytes);
  }

  void note_released(const void* block) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(block);
    if (found == sizes_.end()) return;
    allocator_memory().remove(found->second);
    sizes_.erase(found);
  }

  c10::Allocator* inner_;
  std::mutex mutex_;
  std::unordered_map<const void*, int64_t> sizes_;
};

// Null until the first call asks to meter; never destroyed, since tensors may outlive everything.
std::atomic<MeteredAllocator*>& installed() {
  static std::atomic<MeteredAllocator*> allocator{nullptr};
  return allocator;
}

void MeteredAllocator::release(void* block) {
  if (block == nullptr) return;
  MeteredAllocator* own = installed().load();
  own->note_released(block);
  own->inner_->raw_deallocate(block);
}

}  // namespace

void meter_allocations() {
  static std::once_flag once;
  std::call_once(once, [] {
    installed() = new MeteredAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(installed());
  });
}

bool is_metered(const at::Tensor& tensor) {
  MeteredAllocator* allocator = installed().load();
  return allocator != nullptr && tensor.has_storage() && allocator->knows(tensor.storage().data());
}

AllocationLimit::AllocationLimit(int64_t bytes) {
  LISSOME_CHECK(allocator_memory().limit() == MemoryCounter::kUnlimited, "there is a limit on allocations already");
  meter_allocations();
  allocator_memory().set_limit(bytes);
}

AllocationLimit::~AllocationLimit() { allocator_memory().set_limit(MemoryCounter::kUnlimited); }

namespace {

// Tied weights count once.
int64_t count_weight_bytes(const Program& model) {
  std::unordered_set<const void*> seen;
  int64_t bytes = 0;
  for (const Weight& weight : model.weights) {
    if (seen.insert(weight.tensor.const_data_ptr()).second) bytes += static_cast<int64_t>(weight.tensor.nbytes());
  }
  return bytes;
}

int64_t choose_bound() { return (total_memory_bytes() - read_resident_memory().now) / 5 * 4; }

}  // namespace

TrainingMemory::TrainingMemory(const Program& model, int64_t before, int64_t bytes, bool bound, int64_t in_file)
    : weights_(count_weight_bytes(model) - in_file), before_(before) {
  allocator_memory().reset_peak();
  if (bytes == 0 && !bound) return;
  const int64_t most = bytes == 0 ? choose_bound() + weights_ : bytes;
  if (most < weights_)
    throw_error(ErrorKind::over_budget, "training does not fit into ", format_bytes(most), ": the weights alone take ",
                format_bytes(weights_), ". Give a larger --memory");
  limit_.emplace(before_ + most - weights_);
}

int64_t TrainingMemory::peak() const { return allocator_memory().peak() - before_ + weights_; }

}  // namespace lissome
