// See offload_weights.h.
#include "lissome/train/remat/offload_weights.h"

#include <c10/core/CPUAllocator.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <set>

#include "lissome/train/budget/allocation_meter.h"

namespace lissome {
namespace {

constexpr int64_t kLeastOffloadedBytes = 64 << 10;  // smaller weights are not worth a handover
constexpr int64_t kLeastInStep =
    32 << 20;  // in two windows: smaller windows would cut a step into many parallel regions

// The place of a storage in the file, kept as the storage's context.
struct PlaceInFile {
  std::shared_ptr<const OffloadFile> file;
  ByteRange range;
};

void forget_place(void* place) { delete static_cast<PlaceInFile*>(place); }

const PlaceInFile* find_place_in_file(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  return tensor.storage().data_ptr().cast_context<PlaceInFile>(&forget_place);
}

int64_t round_to_pages(int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

bool is_whole_storage(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_contiguous() && tensor.storage_offset() == 0 &&
         tensor.nbytes() == tensor.storage().nbytes() && tensor.storage().resizable();
}

// By storage, in the order of the weights: the tensor that covers it, or an undefined tensor where the storage must
// stay in memory.
using StorageCovers = std::vector<std::pair<const c10::StorageImpl*, at::Tensor>>;

StorageCovers list_storages(const Program& program) {
  StorageCovers covers;
  std::map<const c10::StorageImpl*, size_t> indices;
  std::set<const c10::StorageImpl*> staying;
  for (const Weight& weight : program.weights) {
    const at::Tensor& tensor = weight.tensor;
    if (!tensor.has_storage()) continue;
    const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    if (indices.try_emplace(storage, covers.size()).second) covers.emplace_back(storage, at::Tensor());
    const bool trains = weight.role == WeightRole::parameter && tensor.is_floating_point();
    if (!trains || static_cast<int64_t>(tensor.storage().nbytes()) < kLeastOffloadedBytes) staying.insert(storage);
    if (trains && is_whole_storage(tensor)) covers[indices.at(storage)].second = tensor;
  }
  for (auto& [storage, cover] : covers) {
    if (staying.contains(storage)) cover = at::Tensor();
  }
  return covers;
}

// The most bytes of `storages` that one node reads.
int64_t find_largest_read(const Program& program, const std::map<const c10::StorageImpl*, int64_t>& storages) {
  std::map<ValueId, const c10::StorageImpl*> offloaded;
  for (const Weight& weight : program.weights) {
    if (!weight.tensor.has_storage()) continue;
    const c10::StorageImpl* storage = weight.tensor.storage().unsafeGetStorageImpl();
    if (storages.contains(storage)) offloaded.emplace(weight.value, storage);
  }
  int64_t largest = 0;
  for (const Node& node : program.nodes) {
    std::set<const c10::StorageImpl*> read;
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId value) {
        if (const auto found = offloaded.find(value); found != offloaded.end()) read.insert(found->second);
      });
    }
    int64_t bytes = 0;
    for (const c10::StorageImpl* storage : read) bytes += storages.at(storage);
    largest = std::max(largest, bytes);
  }
  return largest;
}

}  // namespace

OffloadableWeights find_offloadable_weights(const Program& program, bool update_in_backward) {
  OffloadableWeights found;
  std::map<const c10::StorageImpl*, int64_t> storages;  // whole pages of each
  int64_t largest = 0;
  for (const auto& [storage, cover] : list_storages(program)) {
    if (!cover.defined()) continue;
    const auto bytes = static_cast<int64_t>(cover.nbytes());
    found.tensors.push_back(cover.detach());
    found.bytes += bytes;
    storages.emplace(storage, round_to_pages(bytes));
    largest = std::max(largest, round_to_pages(bytes));
  }
  if (found.tensors.empty()) return found;
  found.in_step = std::max(kLeastInStep, 2 * find_largest_read(program, storages));
  found.at_once = std::min(found.bytes, found.in_step + (update_in_backward ? largest : 0));
  return found;
}

void OffloadedWeights::move(const OffloadableWeights& weights, const std::string& folder) {
  LISSOME_CHECK(tensors_.empty(), "the weights are in a file already");
  int64_t bytes = 0;
  for (const at::Tensor& tensor : weights.tensors) bytes += round_to_pages(static_cast<int64_t>(tensor.nbytes()));
  file_ = std::make_shared<const OffloadFile>(folder, bytes);
  tensors_ = weights.tensors;
  saved_ = weights.bytes - weights.at_once;
  int64_t offset = 0;
  for (const at::Tensor& tensor : tensors_) {
    const auto size = static_cast<int64_t>(tensor.nbytes());
    const ByteRange range{offset, offset + round_to_pages(size)};
    std::memcpy(file_->data() + offset, tensor.const_data_ptr(), static_cast<size_t>(size));
    file_->release(range);
    if (is_metered(tensor)) metered_ += size;
    tensor.storage().set_data_ptr_noswap(
        {file_->data() + offset, new PlaceInFile{file_, range}, &forget_place, c10::Device(c10::DeviceType::CPU)});
    offset = range.end;
  }
}

OffloadedWeights::~OffloadedWeights() {
  for (const at::Tensor& tensor : tensors_) {
    const PlaceInFile* place = find_place_in_file(tensor);
    if (place == nullptr) continue;  // other code gave it other memory in the meantime
    try {
      c10::DataPtr memory = c10::GetCPUAllocator()->allocate(tensor.nbytes());
      std::memcpy(memory.get(), tensor.const_data_ptr(), tensor.nbytes());
      file_->discard(place->range);
      tensor.storage().set_data_ptr_noswap(std::move(memory));
    } catch (const std::exception&) {
      return;  // the rest stay in the file
    }
  }
}

void OffloadedWeights::release() const {
  for (const at::Tensor& tensor : tensors_) release_weight(tensor);
}

int64_t OffloadedWeights::resident() const { return file_ ? file_->resident() : 0; }

bool is_offloaded(const at::Tensor& tensor) { return find_place_in_file(tensor) != nullptr; }

void fetch_weight(const at::Tensor& tensor) {
  if (const PlaceInFile* place = find_place_in_file(tensor)) place->file->fetch(place->range);
}

void release_weight(const at::Tensor& tensor) {
  if (const PlaceInFile* place = find_place_in_file(tensor)) place->file->release(place->range);
}

}  // namespace lissome
