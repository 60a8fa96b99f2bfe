// Raw tensors out of the archive, each number checked before it is used; see tensors.h.
#include "lissome/program/pt2/tensors.h"

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace lissome {
namespace {

constexpr size_t kAlignment = 64;  // what torch writes, and what kernels may count on
constexpr int64_t kStrided = 7;    // torch's number for the layout
constexpr size_t kMostDimensions = 64;

struct Extent {
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  int64_t elements = 0;  // of the tensor
  int64_t reach = 0;     // elements of the storage, from its start, that the tensor spans
};

[[noreturn]] void refuse(const std::string& name, const auto&... parts) {
  throw_error(ErrorKind::invalid_input, "tensor ", quote(name), ": ", parts...);
}

// Sizes, strides and offset of a stored tensor are plain integers: {"as_int": 3}.
int64_t read_extent(const std::string& name, const Json& value, std::string_view what) {
  const auto [kind, number] = json_union(value, what);
  if (kind != "as_int") refuse(name, what, " is symbolic (", kind, "), a stored tensor has plain integers");
  const int64_t seen = json_integer(number, what);
  if (seen < 0) refuse(name, what, " is ", seen, ", it must not be negative");
  return seen;
}

std::vector<int64_t> read_extents(const std::string& name, const Json& meta, std::string_view key) {
  std::vector<int64_t> numbers;
  for (const Json& value : list_member(meta, key)) numbers.push_back(read_extent(name, value, key));
  if (numbers.size() > kMostDimensions)
    refuse(name, numbers.size(), " dimensions, at most ", kMostDimensions, " are allowed");
  return numbers;
}

int64_t multiply(const std::string& name, int64_t left, int64_t right) {
  int64_t product = 0;
  if (__builtin_mul_overflow(left, right, &product)) refuse(name, "sizes and strides overflow 64 bits");
  return product;
}

int64_t add(const std::string& name, int64_t left, int64_t right) {
  int64_t sum = 0;
  if (__builtin_add_overflow(left, right, &sum)) refuse(name, "sizes and strides overflow 64 bits");
  return sum;
}

Extent read_tensor_meta(const std::string& name, const Json& meta) {
  if (const int64_t layout = json_integer(json_member(meta, "layout"), "layout"); layout != kStrided)
    throw_error(ErrorKind::unsupported, "tensor ", quote(name), " has layout ", layout,
                "; stored tensors must be strided (", kStrided, "). Call to_dense() on it before the export");
  Extent extent;
  extent.type = pt2_scalar_type(json_integer(json_member(meta, "dtype"), "dtype"));
  extent.sizes = read_extents(name, meta, "sizes");
  extent.strides = read_extents(name, meta, "strides");
  extent.offset = read_extent(name, json_member(meta, "storage_offset"), "storage_offset");
  if (extent.sizes.size() != extent.strides.size())
    refuse(name, extent.sizes.size(), " sizes but ", extent.strides.size(), " strides");
  extent.elements = 1;
  for (const int64_t size : extent.sizes) extent.elements = multiply(name, extent.elements, size);
  int64_t last = extent.offset;  // position of the last element
  for (size_t i = 0; i < extent.sizes.size(); ++i) {
    if (extent.sizes[i] > 0) last = add(name, last, multiply(name, extent.sizes[i] - 1, extent.strides[i]));
  }
  extent.reach = extent.elements == 0 ? 0 : add(name, last, 1);
  multiply(name, add(name, extent.reach, extent.elements), static_cast<int64_t>(c10::elementSize(extent.type)));
  return extent;
}

bool is_plain(const Extent& extent) { return extent.offset == 0 && extent.strides == contiguous_strides(extent.sizes); }

// A storage must be exactly as long as its tensor. It may be longer where the tensor is a cut-out of a greater one:
// when others share it, when the tensor is not dense from the start, or by whole rows (hann_window keeps the first n of
// n + 1).
void check_length(const std::string& name, const Extent& extent, int64_t bytes, bool shared) {
  const auto item = static_cast<int64_t>(c10::elementSize(extent.type));
  if (bytes % item != 0)
    refuse(name, "its storage has ", bytes, " bytes, which is no whole number of elements of ", item, " bytes");
  const int64_t held = bytes / item;
  if (extent.reach > held)
    refuse(name, "offset ", extent.offset, ", sizes ", format_sizes(extent.sizes), " and strides ",
           format_sizes(extent.strides), " reach ", extent.reach, " elements, its storage holds ", held);
  if (held == extent.elements || shared || !is_plain(extent)) return;
  const int64_t rows = extent.sizes.empty() ? 1 : extent.sizes[0];
  const int64_t row = rows == 0 ? 0 : extent.elements / rows;
  if (row > 0 && (held - extent.elements) % row == 0) return;
  refuse(name, "its storage holds ", held, " elements, sizes ", format_sizes(extent.sizes), " need ", extent.elements,
         ". If it was cut out of a greater tensor, clone() it before the export");
}

// Nobody else holds a pointer into these: they can be given other memory while a model trains.
constexpr bool kResizable = true;

// A part of the mapped archive that a storage lies in, and no other storage.
struct BorrowedBytes {
  std::shared_ptr<const MappedFile> file;
  std::span<const std::byte> bytes;
};

// Its pages go with the storage: the archive stays mapped as long as any other tensor of it is there.
void give_back(void* context) {
  const std::unique_ptr<BorrowedBytes> borrowed(static_cast<BorrowedBytes*>(context));
  constexpr uintptr_t kPage = 4096;
  const auto begin = reinterpret_cast<uintptr_t>(borrowed->bytes.data());
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage, last = (begin + borrowed->bytes.size()) / kPage * kPage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

c10::Storage borrow_storage(std::span<const std::byte> bytes, std::shared_ptr<const MappedFile> file) {
  auto* data = const_cast<std::byte*>(bytes.data());  // private pages: a write makes a copy of the page
  c10::DataPtr pointer(data, new BorrowedBytes{std::move(file), bytes}, &give_back, c10::Device(c10::DeviceType::CPU));
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes.size(), std::move(pointer), c10::GetCPUAllocator(),
                      kResizable);
}

c10::Storage copy_storage(std::span<const std::byte> bytes) {
  c10::DataPtr pointer = c10::GetCPUAllocator()->allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(pointer.get(), bytes.data(), bytes.size());
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes.size(), std::move(pointer), c10::GetCPUAllocator(),
                      kResizable);
}

// Other bytes are no truth values: what counts them and what finds them would disagree.
void check_bools(const std::string& name, const c10::Storage& storage, int64_t count) {
  const auto* bytes = static_cast<const uint8_t*>(storage.data());
  if (std::any_of(bytes, bytes + count, [](uint8_t byte) { return byte > 1; }))
    refuse(name, "it is bool and holds bytes other than 0 and 1");
}

}  // namespace

at::ScalarType pt2_scalar_type(int64_t number) {
  static constexpr std::array<std::pair<int64_t, at::ScalarType>, 21> kTypes = {{
      {1, at::kByte},
      {2, at::kChar},
      {3, at::kShort},
      {4, at::kInt},
      {5, at::kLong},
      {6, at::kHalf},
      {7, at::kFloat},
      {8, at::kDouble},
      {9, at::kComplexHalf},
      {10, at::kComplexFloat},
      {11, at::kComplexDouble},
      {12, at::kBool},
      {13, at::kBFloat16},
      {28, at::kUInt16},
      {29, at::kFloat8_e4m3fn},
      {30, at::kFloat8_e5m2},
      {31, at::kFloat8_e4m3fnuz},
      {32, at::kFloat8_e5m2fnuz},
      {33, at::kFloat8_e8m0fnu},
      {34, at::kUInt32},
      {35, at::kUInt64},
  }};
  for (const auto& [known, type] : kTypes) {
    if (known == number) return type;
  }
  throw_error(ErrorKind::invalid_input, "element type number ", number, " is none that torch.export writes");
}

Pt2Tensors::Pt2Tensors(const Pt2Archive& archive) : archive_(archive) {
  add_config(archive.weights, "data/weights/");
  add_config(archive.constants, "data/constants/");
}

void Pt2Tensors::add_config(const Json& config, const std::string& folder) {
  for (const auto& [name, meta] : json_object(config, "config").items()) {
    entries_.emplace(name, Entry{&meta, folder});
    ++users_[folder + text_member(meta, "path_name")];
  }
}

c10::Storage Pt2Tensors::find_storage(const std::string& name, const std::string& member) {
  const auto found = storages_.find(member);
  if (found != storages_.end()) return found->second;
  std::span<const std::byte> bytes;
  try {
    bytes = archive_.zip.view(archive_.member(member));
  } catch (const Error& error) {
    throw Error(error.kind(), "tensor " + quote(name) + ": " + error.message());
  }
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment == 0 && !bytes.empty();
  c10::Storage storage = aligned ? borrow_storage(bytes, archive_.zip.file()) : copy_storage(bytes);
  storages_.emplace(member, storage);
  return storage;
}

at::Tensor Pt2Tensors::read(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    throw_error(ErrorKind::invalid_input, "tensor ", quote(name), " is used by the graph, but the archive holds none");
  const Json& meta = *found->second.meta;
  if (json_boolean(json_member(meta, "use_pickle"), "use_pickle"))
    throw_error(ErrorKind::invalid_input, "tensor ", quote(name),
                " is stored as a pickle (use_pickle), which could run code and is never opened. It is a tensor subclass"
                " or a custom object: replace it by a plain tensor before the export");
  const Extent extent = read_tensor_meta(name, json_member(meta, "tensor_meta"));
  const std::string member = found->second.folder + text_member(meta, "path_name");
  c10::Storage storage = find_storage(name, member);
  check_length(name, extent, static_cast<int64_t>(storage.nbytes()), users_.at(member) > 1);
  if (extent.type == at::kBool) check_bools(name, storage, extent.reach);
  at::Tensor tensor = at::empty({0}, at::TensorOptions(extent.type));
  tensor.set_(std::move(storage), extent.offset, extent.sizes, extent.strides);
  return tensor;
}

bool Pt2Tensors::trains(const std::string& name) const {
  return json_boolean(json_member(json_member(*entries_.at(name).meta, "tensor_meta"), "requires_grad"),
                      "requires_grad");
}

}  // namespace lissome
