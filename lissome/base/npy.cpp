// NumPy's files. A .npy is
//
//   offset  size  meaning
//        0     6  \x93NUMPY
//        6     2  version: 1.0, 2.0 or 3.0
//        8     2  length of the header in version 1.0, else 4 bytes
//              n  header: a Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and spaces
//                 the elements, nothing behind them
//
// and an .npz is a zip of them. The header is read by a small parser of exactly this dictionary; nothing is evaluated.
#include "lissome/base/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "lissome/base/dispatch.h"
#include "lissome/base/error.h"
#include "lissome/base/processor.h"
#include "lissome/base/safetensors.h"
#include "lissome/base/text.h"
#include "lissome/base/zip.h"

namespace lissome {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kLongestNpyHeader = 65536;
constexpr size_t kMostAxes = 64;
constexpr uintptr_t kAlignment = 64;

struct NumpyType {
  Dtype dtype;
  std::string_view code;  // kind and bytes
};

constexpr NumpyType kNumpyTypes[] = {
    {Dtype::boolean, "b1"}, {Dtype::u8, "u1"},  {Dtype::u16, "u2"}, {Dtype::u32, "u4"},  {Dtype::u64, "u8"},
    {Dtype::i8, "i1"},      {Dtype::i16, "i2"}, {Dtype::i32, "i4"}, {Dtype::i64, "i8"},  {Dtype::f16, "f2"},
    {Dtype::f32, "f4"},     {Dtype::f64, "f8"}, {Dtype::c64, "c8"}, {Dtype::c128, "c16"}};

struct Header {
  Dtype dtype = Dtype::f32;
  bool swapped = false;  // big endian
  bool fortran = false;
  Sizes sizes;
};

class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  Header parse() {
    Header header;
    std::array<bool, 3> seen{};
    expect('{');
    while (!accept('}')) {
      const std::string key = parse_string();
      expect(':');
      constexpr std::string_view kKeys[] = {"descr", "fortran_order", "shape"};
      const size_t index = static_cast<size_t>(std::find(std::begin(kKeys), std::end(kKeys), key) - std::begin(kKeys));
      if (index == seen.size() || seen[index]) refuse("the key " + quote(key) + " is unknown or there twice");
      seen[index] = true;
      if (index == 0) parse_type(&header);
      if (index == 1) header.fortran = parse_bool();
      if (index == 2) header.sizes = parse_shape();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (!text_.empty()) refuse("text follows the dictionary");
    if (seen != std::array<bool, 3>{true, true, true}) refuse("'descr', 'fortran_order' and 'shape' are all needed");
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw_error(ErrorKind::invalid_input, source_, ": the header is not NumPy's: ", reason, ".");
  }
  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size())); }
  bool accept(char c) {
    skip_spaces();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(std::string("'") + c + "' expected before " + quote(text_.substr(0, 20)));
  }

  std::string parse_string() {
    skip_spaces();
    const char mark = text_.empty() ? '\0' : text_[0];
    if (mark != '\'' && mark != '"') refuse("a string expected before " + quote(text_.substr(0, 20)));
    const size_t end = text_.find(mark, 1);
    if (end == std::string_view::npos) refuse("a string without its end");
    const std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }

  bool parse_bool() {
    skip_spaces();
    for (std::string_view word : {"False", "True"}) {
      if (text_.substr(0, word.size()) != word) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    refuse("True or False expected before " + quote(text_.substr(0, 20)));
  }

  Sizes parse_shape() {
    Sizes sizes;
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      int64_t size = 0;
      const auto [end, code] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      const bool is_padded =
          text_.size() > 1 && text_[0] == '0' && end - text_.data() > 1;  // 05 is no number of Python's
      if (code != std::errc() || size < 0 || is_padded) refuse("a size expected before " + quote(text_.substr(0, 20)));
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      sizes.push_back(size);
      if (sizes.size() > kMostAxes) refuse("more than " + std::to_string(kMostAxes) + " dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  void parse_type(Header* header) {
    skip_spaces();
    if (!text_.empty() && text_[0] == '[')
      throw_error(ErrorKind::invalid_input, source_, ": holds records with named fields; save each field as an array.");
    const std::string descr = parse_string();
    const std::string_view code = std::string_view(descr).substr(std::min<size_t>(descr.size(), 1));
    for (const NumpyType& type : kNumpyTypes) {
      if (code != type.code || std::string_view("<>|=").find(descr[0]) == std::string_view::npos) continue;
      header->dtype = type.dtype;
      header->swapped = descr[0] == '>';
      return;
    }
    const std::string_view kind = code.substr(0, 1);
    std::string_view what = "is no type that lissome reads";
    if (kind == "O") what = "means Python objects (a pickle), which are never loaded";
    if (kind == "U" || kind == "S" || kind == "a") what = "means strings";
    if (kind == "M" || kind == "m") what = "means dates";
    if (kind == "V") what = "means raw bytes or records";
    throw_error(ErrorKind::invalid_input, source_, ": the type ", quote(descr), " ", what,
                "; bool, integers, float16/32/64 and complex64/128 are allowed.");
  }

  std::string_view text_;
  const std::string& source_;
};

void swap_bytes(Array* array, bool is_complex) {
  const auto width = static_cast<size_t>(item_size(array->dtype)) / (is_complex ? 2 : 1);
  char* data = array->data<char>();
  for (int64_t at = 0; at < array->bytes(); at += static_cast<int64_t>(width))
    std::reverse(data + at, data + at + width);
}

// A C++ bool that is neither 0 nor 1 is undefined behaviour, so such bytes stop here.
void check_bools(std::span<const std::byte> bytes, const std::string& source) {
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (wrong != bytes.end())
    throw_error(ErrorKind::invalid_input, source, ": element ", wrong - bytes.begin(), " of a bool array is ",
                std::to_integer<int>(*wrong), "; 0 and 1 are allowed.");
}

// Splits into header and elements.
Header read_header(std::span<const std::byte> bytes, const std::string& source, std::span<const std::byte>* elements) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, kMagic.size()) != kMagic || text.size() < 10)
    throw_error(ErrorKind::invalid_input, source, ": not a .npy (", text.size(), " bytes, a ",
                text.substr(0, 2) == "PK" ? "zip archive" : "file without NumPy's mark", ").");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(text[i])); };
  if (byte(6) < 1 || byte(6) > 3 || byte(7) != 0)
    throw_error(ErrorKind::invalid_input, source, ": .npy version ", byte(6), ".", byte(7),
                "; 1.0, 2.0 and 3.0 are allowed.");
  const size_t start = byte(6) == 1 ? 10 : 12;
  if (text.size() < start) throw_error(ErrorKind::invalid_input, source, ": cut off inside the header.");
  const size_t length = byte(8) | byte(9) << 8 | (start == 12 ? byte(10) << 16 | byte(11) << 24 : 0);
  if (length > kLongestNpyHeader || length > text.size() - start)
    throw_error(ErrorKind::invalid_input, source, ": a header of ", length, " bytes; ", text.size() - start,
                " are there and at most ", kLongestNpyHeader, " are allowed.");
  *elements = bytes.subspan(start + length);
  return HeaderParser(text.substr(start, length), source).parse();
}

Sizes fortran_strides(const Sizes& sizes) {
  Sizes reversed(sizes.rbegin(), sizes.rend());
  Sizes strides = contiguous_strides(reversed);
  std::reverse(strides.begin(), strides.end());
  return strides;
}

std::string build_npy_header(const Array& array) {
  std::string_view code;
  for (const NumpyType& type : kNumpyTypes)
    if (type.dtype == array.dtype) code = type.code;
  if (code.empty())
    throw_error(ErrorKind::unsupported, "NumPy has no type for arrays of ", dtype_name(array.dtype), ".");
  std::string shape;
  for (int64_t size : array.sizes) shape += std::to_string(size) + ", ";
  if (array.sizes.size() > 1) shape.resize(shape.size() - 2);
  if (array.sizes.size() == 1) shape.resize(shape.size() - 1);
  std::string text = "{'descr': '" + std::string(item_size(array.dtype) == 1 ? "|" : "<") + std::string(code) +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr size_t kFixed = 10;  // mark, version and length
  const size_t used = kFixed + text.size() + 1;
  text.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string header(kMagic);
  header += {'\1', '\0', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return header + text;
}

// NumPy knows neither bf16 nor pairs of f16.
Array make_numpy_array(const Array& array) {
  if (array.dtype == Dtype::bf16) return cast_array(array.view(), Dtype::f32);
  if (array.dtype != Dtype::c32) return array;
  Array halves{Dtype::f16, array.sizes, array.storage};
  halves.sizes.push_back(2);
  Array floats = cast_array(halves.view(), Dtype::f32);
  return {Dtype::c64, array.sizes, floats.storage};
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string name_after_file(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (ends_with(name, ".npy")) name.resize(name.size() - 4);
  return name;
}

std::vector<NamedArray> load_npz(const std::shared_ptr<const MappedFile>& file) {
  const ZipReader zip = ZipReader::from_file(file);
  const auto limit = static_cast<uint64_t>(total_memory_bytes());
  uint64_t total = 0;
  std::vector<NamedArray> arrays;
  for (const ZipMember& member : zip.members()) {
    const std::string source = quote(file->path()) + ", entry " + quote(member.name);
    if (!ends_with(member.name, ".npy"))
      throw_error(ErrorKind::invalid_input, source, ": not an array; an .npz holds entries that end in .npy.");
    if (!member.stored) total += member.size;  // at most 100,000 members of 2^53 bytes: no overflow
    if (total > limit)
      throw_error(ErrorKind::over_budget, source, ": the arrays unpack to more than the ", limit,
                  " bytes of memory. Save them without compression (numpy.savez), then they are mapped.");
    Array array;
    if (member.stored) {
      array = parse_npy(zip.view(member), source, file);
    } else {
      // Aligned, so that the elements need no second copy.
      const Array unpacked = make_array(Dtype::u8, {static_cast<int64_t>(member.size)});
      const std::span<std::byte> bytes(unpacked.data<std::byte>(), member.size);
      zip.read_into(member, bytes);
      array = parse_npy(bytes, source, unpacked.storage);
    }
    arrays.push_back({member.name.substr(0, member.name.size() - 4), std::move(array)});
  }
  return arrays;
}

}  // namespace

Array parse_npy(std::span<const std::byte> bytes, const std::string& source, std::shared_ptr<const void> owner) {
  std::span<const std::byte> elements;
  const Header header = read_header(bytes, source, &elements);
  const auto expected = count_bytes(header.dtype, header.sizes);
  if (!expected)
    throw_error(ErrorKind::invalid_input, source, ": the sizes ", format_sizes(header.sizes), " overflow 63 bits.");
  if (static_cast<uint64_t>(*expected) != elements.size())
    throw_error(ErrorKind::invalid_input, source, ": ", dtype_name(header.dtype), format_sizes(header.sizes), " needs ",
                *expected, " bytes, ", elements.size(), " are there.");
  if (header.dtype == Dtype::boolean) check_bools(elements, source);
  auto* data = const_cast<std::byte*>(elements.data());
  if (header.fortran) {
    Array array = copy_array({header.dtype, header.sizes, fortran_strides(header.sizes), data});
    if (header.swapped) swap_bytes(&array, header.dtype == Dtype::c64 || header.dtype == Dtype::c128);
    return array;
  }
  const bool aligned = reinterpret_cast<uintptr_t>(data) % kAlignment == 0;
  if (owner != nullptr && aligned && !header.swapped && *expected > 0)
    return {header.dtype, header.sizes, std::shared_ptr<void>(std::const_pointer_cast<void>(owner), data)};
  Array array = copy_array({header.dtype, header.sizes, contiguous_strides(header.sizes), data});
  if (header.swapped) swap_bytes(&array, header.dtype == Dtype::c64 || header.dtype == Dtype::c128);
  return array;
}

std::vector<NamedArray> load_arrays(const std::string& path) {
  if (path.ends_with(".safetensors")) return load_safetensors(path);
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  if (bytes.empty()) throw_error(ErrorKind::invalid_input, quote(path), ": empty; a .npy or .npz file is needed.");
  std::vector<NamedArray> arrays;
  if (bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0)
    arrays.push_back({name_after_file(path), parse_npy(bytes, quote(path), file)});
  else if (bytes.size() >= 2 && bytes[0] == std::byte{'P'} && bytes[1] == std::byte{'K'})
    arrays = load_npz(file);
  else
    throw_error(ErrorKind::invalid_input, quote(path),
                ": neither a .npy nor an .npz file, and not called .safetensors. Write one with "
                "numpy.savez(\"data.npz\", name=array).");
  file->check_unchanged();
  return arrays;
}

void check_array_name(const std::string& name) {
  constexpr size_t kMost = 1000;
  const std::string fault = name.size() > kMost ? "has a name of " + std::to_string(name.size()) + " bytes; " +
                                                      std::to_string(kMost) + " are allowed."
                                                : find_name_fault(name + ".npy");
  if (!fault.empty()) throw_error(ErrorKind::invalid_input, "an .npz cannot hold ", quote(name), ", which ", fault);
}

void save_arrays(const std::string& path, const std::vector<NamedArray>& arrays) {
  for (const NamedArray& named : arrays) check_array_name(named.name);
  ZipWriter zip(path);
  for (const NamedArray& named : arrays) {
    const Array array = make_numpy_array(named.array);
    const std::string header = build_npy_header(array);
    const std::span<const std::byte> parts[] = {
        std::as_bytes(std::span(header)),
        {static_cast<const std::byte*>(array.storage.get()), static_cast<size_t>(array.bytes())}};
    zip.add_parts(named.name + ".npy", parts);
  }
  zip.commit();
}

}  // namespace lissome
