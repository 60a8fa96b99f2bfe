// IDX, all numbers big endian:
//
//   offset  size  meaning
//        0     2  0
//        2     1  type: 08 u8, 09 i8, 0b i16, 0c i32, 0d f32, 0e f64
//        3     1  number of dimensions d
//        4    4d  sizes
//                 the elements, nothing behind them
#include "lissome/data/idx.h"

#include <libdeflate.h>

#include <algorithm>
#include <memory>

namespace lissome {
namespace {

constexpr uint64_t kDeflateExpansion = 1032;  // a deflate stream cannot hold more
constexpr size_t kSmallestGzip = 18;

struct IdxType {
  uint8_t code;
  Dtype dtype;
};
constexpr IdxType kTypes[] = {{0x08, Dtype::u8},  {0x09, Dtype::i8},  {0x0B, Dtype::i16},
                              {0x0C, Dtype::i32}, {0x0D, Dtype::f32}, {0x0E, Dtype::f64}};

uint8_t byte_at(std::span<const std::byte> bytes, size_t i) { return std::to_integer<uint8_t>(bytes[i]); }

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && byte_at(bytes, 0) == 0x1F && byte_at(bytes, 1) == 0x8B;
}

Array unpack_gzip(std::span<const std::byte> packed, const std::string& path) {
  if (packed.size() < kSmallestGzip)
    throw_error(ErrorKind::invalid_input, quote(path), ": the file is cut off inside the gzip header.");
  uint64_t size = 0;  // the last four bytes; larger files are beyond what IDX is used for
  for (size_t i = 0; i < 4; ++i) size |= uint64_t{byte_at(packed, packed.size() - 4 + i)} << (8 * i);
  if (size / kDeflateExpansion > packed.size())
    throw_error(ErrorKind::invalid_input, quote(path), ": the file is not a whole gzip file: it claims to unpack ",
                packed.size(), " bytes to ", size, ".");
  if (size > static_cast<uint64_t>(total_memory_bytes()))
    throw_error(ErrorKind::over_budget, quote(path), ": the file unpacks to ", size, " bytes, and the machine has ",
                total_memory_bytes(), ".");
  Array bytes = make_array(Dtype::u8, {static_cast<int64_t>(size)});
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (decompressor == nullptr) throw_error(ErrorKind::over_budget, "there is no memory to unpack ", quote(path), ".");
  size_t used = 0, made = 0;
  const libdeflate_result result = libdeflate_gzip_decompress_ex(decompressor.get(), packed.data(), packed.size(),
                                                                 bytes.data<uint8_t>(), size, &used, &made);
  if (result != LIBDEFLATE_SUCCESS || used != packed.size() || made != size)
    throw_error(ErrorKind::invalid_input, quote(path),
                ": the file is not a whole gzip file: it is damaged, cut off, or several in one. "
                "Copy it again.");
  return bytes;
}

void turn_around(Array* array) {
  const auto width = static_cast<size_t>(item_size(array->dtype));
  if (width == 1) return;
  char* data = array->data<char>();
  for (int64_t at = 0; at < array->bytes(); at += static_cast<int64_t>(width))
    std::reverse(data + at, data + at + width);
}

Array parse_idx(std::span<const std::byte> bytes, const std::string& path) {
  if (bytes.size() < 4 || byte_at(bytes, 0) != 0 || byte_at(bytes, 1) != 0)
    throw_error(ErrorKind::invalid_input, quote(path),
                ": this is not an IDX file, which must start with two zero bytes.");
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const IdxType& row) { return row.code == byte_at(bytes, 2); });
  if (type == std::end(kTypes))
    throw_error(ErrorKind::invalid_input, quote(path), ": the file has the IDX type ", int{byte_at(bytes, 2)},
                "; 8 (u8), 9 (i8), 11 (i16), 12 (i32), 13 (f32) and 14 (f64) are allowed.");
  const size_t axes = byte_at(bytes, 3);
  const size_t start = 4 + 4 * axes;
  if (axes == 0 || bytes.size() < start)
    throw_error(ErrorKind::invalid_input, quote(path), ": an IDX header of ", axes, " dimensions does not fit into ",
                bytes.size(), " bytes.");
  Sizes sizes;
  for (size_t axis = 0; axis < axes; ++axis) {
    int64_t size = 0;
    for (size_t i = 0; i < 4; ++i) size = size << 8 | byte_at(bytes, 4 + 4 * axis + i);
    sizes.push_back(size);
  }
  const auto expected = count_bytes(type->dtype, sizes);
  if (!expected)
    throw_error(ErrorKind::invalid_input, quote(path), ": the sizes ", format_sizes(sizes), " overflow 63 bits.");
  if (static_cast<uint64_t>(*expected) != bytes.size() - start)
    throw_error(ErrorKind::invalid_input, quote(path), ": ", dtype_name(type->dtype), format_sizes(sizes), " needs ",
                *expected, " bytes, and the file has ", bytes.size() - start, ".");
  auto* data = const_cast<std::byte*>(bytes.data()) + start;
  Array array = copy_array({type->dtype, sizes, contiguous_strides(sizes), data});
  turn_around(&array);
  return array;
}

}  // namespace

bool looks_like_idx(std::span<const std::byte> bytes) {
  return is_gzip(bytes) || (bytes.size() >= 4 && byte_at(bytes, 0) == 0 && byte_at(bytes, 1) == 0 &&
                            byte_at(bytes, 2) >= 8 && byte_at(bytes, 2) <= 14);
}

Array load_idx(const std::string& path) {
  const auto file = MappedFile::open(path);
  std::span<const std::byte> bytes = file->bytes();
  Array unpacked;
  if (is_gzip(bytes)) {
    unpacked = unpack_gzip(bytes, path);
    bytes = {unpacked.data<std::byte>(), static_cast<size_t>(unpacked.bytes())};
  }
  Array array = parse_idx(bytes, path);
  file->check_unchanged();
  return array;
}

}  // namespace lissome
