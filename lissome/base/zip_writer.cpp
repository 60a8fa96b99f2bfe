// Writes zip archives that are reproducible byte by byte: no times, no permissions, aligned data, Zip64 fields only
// where a value needs them. Layout of a member; every number is little endian:
//
//   offset  size  meaning
//        0     4  0x04034b50
//        4     2  version needed: 20, with Zip64 45
//        6     2  flags: bit 11, the name is UTF-8
//        8     2  method: 0, stored; 8, deflated
//       10     4  time and date: 1980-01-01
//       14     4  CRC32 of the data
//       18     8  packed size, size; both 0xffffffff when the extra field 0x0001 holds them
//       26     4  length of the name, length of the extra fields
//       30        name, extra field 0x0001 where needed, extra field 0x4c50 of zeros up to the alignment, data
#include <libdeflate.h>

#include <algorithm>

#include "lissome/base/error.h"
#include "lissome/base/text.h"
#include "lissome/base/zip.h"
#include "lissome/base/zip_records.h"

namespace lissome {
namespace {

constexpr uint16_t kPaddingField = 0x4C50;
constexpr uint16_t kUtf8Flag = 1 << 11;
constexpr uint16_t kDate = 0x0021;              // 1980-01-01
constexpr size_t kShortText = 512;              // bytes; shorter texts are stored
constexpr uint64_t kMostWrittenExpansion = 64;  // texts that deflate further are stored: a reader refuses 100 times
constexpr size_t kLargestExtra = 0xFFFF;

class Bytes {
 public:
  Bytes& u16(uint64_t value) { return put(value, 2); }
  Bytes& u32(uint64_t value) { return put(value, 4); }
  Bytes& u64(uint64_t value) { return put(value, 8); }
  Bytes& text(std::string_view value) {
    text_ += value;
    return *this;
  }
  Bytes& zeros(size_t count) {
    text_.append(count, '\0');
    return *this;
  }
  const std::string& get() const { return text_; }

 private:
  Bytes& put(uint64_t value, int width) {
    for (int i = 0; i < width; ++i) text_ += static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }
  std::string text_;
};

uint64_t saturate(uint64_t value) { return std::min<uint64_t>(value, kNone32); }

// Empty where the text is short, or deflating does not halve it, or shrinks it beyond what a reader takes.
std::string deflate_text(const std::string& text) {
  constexpr int kLevel = 6;
  if (text.size() < kShortText) return {};
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(kLevel), libdeflate_free_compressor);
  LISSOME_CHECK(compressor != nullptr, "no memory for a compressor");
  std::string packed(text.size() / 2, '\0');
  packed.resize(libdeflate_deflate_compress(compressor.get(), text.data(), text.size(), packed.data(), packed.size()));
  return packed.empty() || text.size() / kMostWrittenExpansion >= packed.size() ? std::string() : packed;
}

}  // namespace

ZipWriter::ZipWriter(const std::string& path, uint32_t alignment) : ZipWriter(alignment) {
  file_ = std::make_unique<AtomicFile>(path);
}

ZipWriter::ZipWriter(uint32_t alignment) : alignment_(alignment) {
  LISSOME_CHECK(alignment >= 1 && alignment <= 32768 && (alignment & (alignment - 1)) == 0, "alignment ", alignment);
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> bytes) { add_parts(name, {&bytes, 1}); }

void ZipWriter::add(const std::string& name, const std::string& text) { add(name, std::as_bytes(std::span(text))); }

void ZipWriter::add_text(const std::string& name, const std::string& text) {
  const std::string packed = deflate_text(text);
  if (packed.empty()) return add(name, text);
  begin({name, 0, text.size(), packed.size(), libdeflate_crc32(0, text.data(), text.size()), kDeflated});
  write(packed);
}

void ZipWriter::add_parts(const std::string& name, std::span<const std::span<const std::byte>> parts) {
  uint64_t size = 0;
  uint32_t crc32 = 0;
  for (const auto& part : parts) {
    if (part.empty()) continue;  // libdeflate takes a null pointer for a restart
    size += part.size();
    crc32 = libdeflate_crc32(crc32, part.data(), part.size());
  }
  begin({name, 0, size, size, crc32, kStored});
  for (const auto& part : parts) write(part);
}

void ZipWriter::begin(Entry entry) {
  const std::string& name = entry.name;
  LISSOME_CHECK(!name.empty() && name.size() <= 0xFFFF && is_utf8(name), "member name ", quote(name));
  entry.offset = position_;
  const bool large = entry.size >= kNone32;
  Bytes extra;
  if (large) extra.u16(1).u16(16).u64(entry.size).u64(entry.packed_size);
  const uint64_t unaligned = entry.offset + 30 + name.size() + extra.get().size();
  if (unaligned % alignment_ != 0) {
    const size_t padding = (alignment_ - (unaligned + 4) % alignment_) % alignment_;
    extra.u16(kPaddingField).u16(padding).zeros(padding);
  }
  LISSOME_CHECK(extra.get().size() <= kLargestExtra);
  Bytes header;
  header.u32(0x04034B50).u16(large ? 45 : 20).u16(kUtf8Flag).u16(entry.method).u16(0).u16(kDate).u32(entry.crc32);
  header.u32(large ? kNone32 : entry.packed_size).u32(large ? kNone32 : entry.size);
  header.u16(name.size()).u16(extra.get().size()).text(name).text(extra.get());
  write(header.get());
  entries_.push_back(std::move(entry));
}

void ZipWriter::commit() { seal()->commit(); }

void ZipWriter::write(std::span<const std::byte> bytes) {
  if (file_) file_->write(bytes);
  position_ += bytes.size();
}

uint64_t ZipWriter::finish() {
  const uint64_t start = position_;
  for (const Entry& entry : entries_) {
    Bytes fields;
    const bool large = entry.size >= kNone32;
    if (large) fields.u64(entry.size).u64(entry.packed_size);
    if (entry.offset >= kNone32) fields.u64(entry.offset);
    Bytes extra;
    if (!fields.get().empty()) extra.u16(1).u16(fields.get().size()).text(fields.get());
    const uint64_t version = extra.get().empty() ? 20 : 45;
    Bytes record;
    record.u32(0x02014B50).u16(version).u16(version).u16(kUtf8Flag).u16(entry.method).u16(0).u16(kDate);
    record.u32(entry.crc32).u32(large ? kNone32 : entry.packed_size).u32(saturate(entry.size));
    record.u16(entry.name.size()).u16(extra.get().size());
    record.u16(0).u16(0).u16(0).u32(0).u32(saturate(entry.offset)).text(entry.name).text(extra.get());
    write(record.get());
  }
  const uint64_t end = position_;
  const uint64_t size = end - start;
  const uint64_t count = entries_.size();
  Bytes tail;
  if (count >= 0xFFFF || start >= kNone32 || size >= kNone32) {
    tail.u32(0x06064B50).u64(44).u16(45).u16(45).u32(0).u32(0).u64(count).u64(count).u64(size).u64(start);
    tail.u32(0x07064B50).u32(0).u64(end).u32(1);
  }
  const uint64_t count16 = std::min<uint64_t>(count, 0xFFFF);
  tail.u32(0x06054B50).u16(0).u16(0).u16(count16).u16(count16).u32(saturate(size)).u32(saturate(start)).u16(0);
  write(tail.get());
  return position_;
}

std::unique_ptr<AtomicFile> ZipWriter::seal() {
  finish();
  file_->seal();
  return std::move(file_);
}

}  // namespace lissome
