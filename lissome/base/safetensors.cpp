// The safetensors format:
//
//   offset  size  meaning
//        0     8  length n of the header, little endian
//        8     n  JSON object: name -> {"dtype": "F32", "shape": [3, 4], "data_offsets": [begin, end]}, and optionally
//                 "__metadata__": name -> text; spaces may follow
//      8+n        the elements; offsets count from here, and the arrays tile it without gaps
#include "lissome/base/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lissome/base/error.h"
#include "lissome/base/file.h"
#include "lissome/base/text.h"

namespace lissome {
namespace {

constexpr uint64_t kLongestHeader = 100'000'000;
constexpr size_t kMostArrays = 1'000'000;

struct SafetensorsType {
  Dtype dtype;
  std::string_view name;
};

constexpr SafetensorsType kTypes[] = {
    {Dtype::boolean, "BOOL"}, {Dtype::u8, "U8"},     {Dtype::i8, "I8"},   {Dtype::i16, "I16"}, {Dtype::u16, "U16"},
    {Dtype::f16, "F16"},      {Dtype::bf16, "BF16"}, {Dtype::i32, "I32"}, {Dtype::u32, "U32"}, {Dtype::f32, "F32"},
    {Dtype::f64, "F64"},      {Dtype::i64, "I64"},   {Dtype::u64, "U64"}, {Dtype::c64, "C64"}};

struct Entry {
  std::string name;
  Dtype dtype = Dtype::f32;
  Sizes sizes;
  uint64_t begin = 0, end = 0;
};

[[noreturn]] void refuse_safetensors(const std::string& path, const std::string& reason) {
  throw_error(ErrorKind::invalid_input, quote(path), ": ", reason, ".");
}

uint64_t read_whole_number(const Json& value, const std::string& path, const std::string& name) {
  if (!value.is_number_unsigned())
    refuse_safetensors(path, "entry " + quote(name) + ": sizes and offsets are whole numbers from 0 on");
  return value.get<uint64_t>();
}

Entry read_entry(const std::string& path, const std::string& name, const Json& value) {
  Entry entry{name, Dtype::f32, {}, 0, 0};
  const auto field = [&](const char* key) -> const Json& {
    const auto found = value.is_object() ? value.find(key) : value.end();
    if (!value.is_object() || found == value.end())
      refuse_safetensors(path, "entry " + quote(name) + " has no '" + key + "'");
    return *found;
  };
  const Json &dtype = field("dtype"), &shape = field("shape"), &offsets = field("data_offsets");
  if (value.size() != 3 || !dtype.is_string() || !shape.is_array() || !offsets.is_array() || offsets.size() != 2)
    refuse_safetensors(path, "entry " + quote(name) + " must hold dtype, shape and two data_offsets, and nothing else");
  const auto& word = dtype.get_ref<const std::string&>();
  const auto type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& row) { return row.name == word; });
  if (type == std::end(kTypes))
    refuse_safetensors(path, "entry " + quote(name) + " has the type " + quote(word) +
                                 "; BOOL, U8-U64, I8-I64, F16, BF16, F32, F64 and C64 are allowed");
  entry.dtype = type->dtype;
  for (const Json& size : shape) {
    const uint64_t number = read_whole_number(size, path, name);
    if (number > INT64_MAX)
      refuse_safetensors(path, "entry " + quote(name) + " has the size " + std::to_string(number));
    entry.sizes.push_back(static_cast<int64_t>(number));
  }
  entry.begin = read_whole_number(offsets[0], path, name);
  entry.end = read_whole_number(offsets[1], path, name);
  return entry;
}

void check_extent(const std::string& path, const Entry& entry, uint64_t available) {
  const auto expected = count_bytes(entry.dtype, entry.sizes);
  if (!expected)
    throw_error(ErrorKind::invalid_input, quote(path), ": entry ", quote(entry.name), " has sizes ",
                format_sizes(entry.sizes), " that overflow 63 bits.");
  if (entry.begin > entry.end || entry.end > available)
    throw_error(ErrorKind::invalid_input, quote(path), ": entry ", quote(entry.name), " lies at bytes ", entry.begin,
                " to ", entry.end, "; ", available, " are there.");
  if (static_cast<uint64_t>(*expected) != entry.end - entry.begin)
    throw_error(ErrorKind::invalid_input, quote(path), ": entry ", quote(entry.name), ", ", dtype_name(entry.dtype),
                format_sizes(entry.sizes), ", needs ", *expected, " bytes, ", entry.end - entry.begin, " are given.");
}

void check_tiling(const std::string& path, const std::vector<Entry>& entries, uint64_t available) {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const Entry* a, const Entry* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  uint64_t position = 0;
  for (const Entry* entry : order) {
    if (entry->begin != position)
      throw_error(ErrorKind::invalid_input, quote(path), ": entry ", quote(entry->name), " starts at byte ",
                  entry->begin, ", the one before ends at ", position, "; no gaps or overlaps are allowed.");
    position = entry->end;
  }
  if (position != available)
    throw_error(ErrorKind::invalid_input, quote(path), ": ", available, " bytes of data, the entries use ", position,
                ".");
}

Json parse_header(const MappedFile& file, uint64_t* data_start) {
  const auto bytes = file.bytes();
  if (bytes.size() < 8)
    refuse_safetensors(file.path(), "not a safetensors file (" + std::to_string(bytes.size()) + " bytes)");
  uint64_t length = 0;
  for (int i = 0; i < 8; ++i) length |= std::to_integer<uint64_t>(bytes[static_cast<size_t>(i)]) << (8 * i);
  if (length > kLongestHeader || length > bytes.size() - 8)
    refuse_safetensors(file.path(), "not a whole safetensors file: a header of " + std::to_string(length) + " bytes, " +
                                        std::to_string(bytes.size() - 8) + " are there and at most " +
                                        std::to_string(kLongestHeader) + " are allowed");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  Json header = parse_json(text, quote(file.path()) + " (header)", 8, 20 * kMostArrays);
  if (!header.is_object()) refuse_safetensors(file.path(), "the header must be a JSON object");
  *data_start = 8 + length;
  return header;
}

Array borrow_array(const std::shared_ptr<const MappedFile>& file, const Entry& entry, uint64_t data_start) {
  auto* data = const_cast<std::byte*>(file->bytes().data() + data_start + entry.begin);
  // The header may have any length, so arrays need not even be aligned to their elements.
  const auto alignment = static_cast<uintptr_t>(item_size(entry.dtype));
  if (entry.begin != entry.end && reinterpret_cast<uintptr_t>(data) % alignment == 0)
    return {entry.dtype, entry.sizes, std::shared_ptr<void>(std::const_pointer_cast<MappedFile>(file), data)};
  return copy_array({entry.dtype, entry.sizes, contiguous_strides(entry.sizes), data});
}

}  // namespace

std::vector<NamedArray> load_safetensors(const std::string& path) {
  const auto file = MappedFile::open(path);
  uint64_t data_start = 0;
  const Json header = parse_header(*file, &data_start);
  const uint64_t available = file->bytes().size() - data_start;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    entries.push_back(read_entry(path, name, value));
    check_extent(path, entries.back(), available);
  }
  check_tiling(path, entries, available);
  std::vector<NamedArray> arrays;
  for (const Entry& entry : entries) {
    arrays.push_back({entry.name, borrow_array(file, entry, data_start)});
    if (entry.dtype != Dtype::boolean) continue;
    const uint8_t* values = arrays.back().array.data<uint8_t>();
    if (std::any_of(values, values + (entry.end - entry.begin), [](uint8_t v) { return v > 1; }))
      refuse_safetensors(path, "entry " + quote(entry.name) + " is BOOL and holds a byte other than 0 and 1");
  }
  file->check_unchanged();
  return arrays;
}

void save_safetensors(const std::string& path, const std::vector<NamedArray>& arrays) {
  Json header = Json::object();
  uint64_t position = 0;
  for (const auto& [name, array] : arrays) {
    const auto type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& row) { return row.dtype == array.dtype; });
    if (type == std::end(kTypes))
      throw_error(ErrorKind::unsupported, "safetensors has no type for ", quote(name), " (", dtype_name(array.dtype),
                  ").");
    const uint64_t end = position + static_cast<uint64_t>(array.bytes());
    if (name == "__metadata__" || header.contains(name) || !is_utf8(name))
      throw_error(ErrorKind::invalid_input, "array names must be unique UTF-8; seen ", quote(name), ".");
    header[name] = {{"dtype", type->name}, {"shape", array.sizes}, {"data_offsets", {position, end}}};
    position = end;
  }
  std::string text = print_json(header);
  text.append((64 - (8 + text.size()) % 64) % 64, ' ');
  AtomicFile file(path);
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  file.write(length + text);
  for (const auto& named : arrays)
    file.write({static_cast<const std::byte*>(named.array.storage.get()), static_cast<size_t>(named.array.bytes())});
  file.commit();
}

}  // namespace lissome
