#include "lissome/base/archive_test_builder.h"

#include <libdeflate.h>

namespace lissome {

uint32_t measure_crc32(const std::string& bytes) { return libdeflate_crc32(0, bytes.data(), bytes.size()); }

std::string deflate_text(const std::string& bytes) {
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(9);
  std::string packed(libdeflate_deflate_compress_bound(compressor, bytes.size()), '\0');
  packed.resize(libdeflate_deflate_compress(compressor, bytes.data(), bytes.size(), packed.data(), packed.size()));
  libdeflate_free_compressor(compressor);
  return packed;
}

std::string number_bytes(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

std::string zip64_field(const std::vector<uint64_t>& values) {
  std::string field = number_bytes(1, 2) + number_bytes(8 * values.size(), 2);
  for (uint64_t value : values) field += number_bytes(value, 8);
  return field;
}

std::string build_archive(const std::vector<ArchiveMember>& members, const ArchiveEnd& end) {
  const auto u16 = [](uint64_t value) { return number_bytes(value, 2); };
  const auto u32 = [](uint64_t value) { return number_bytes(value, 4); };
  const auto u64 = [](uint64_t value) { return number_bytes(value, 8); };
  std::string file, directory;
  for (const ArchiveMember& m : members) {
    const std::string packed = m.packed ? *m.packed : m.method == 8 ? deflate_text(m.data) : m.data;
    const uint32_t crc32 = measure_crc32(m.data);
    const bool later = m.descriptor != 0;
    const uint16_t flags = static_cast<uint16_t>(m.flags | (later ? 8 : 0));
    const uint64_t offset = file.size();
    const std::string local_name = m.local_name.value_or(m.name);
    file += u32(0x04034B50) + u16(20) + u16(m.local_flags.value_or(flags)) + u16(m.local_method.value_or(m.method)) +
            u32(0) + u32(m.local_crc32.value_or(later ? 0 : crc32)) +
            u32(m.local_packed_size.value_or(static_cast<uint32_t>(later ? 0 : packed.size()))) +
            u32(m.local_size.value_or(static_cast<uint32_t>(later ? 0 : m.data.size()))) + u16(local_name.size()) +
            u16(m.local_extra.size()) + local_name + m.local_extra + packed;
    if (later)
      file += u32(0x08074B50) + u32(crc32) + number_bytes(packed.size(), m.descriptor) +
              number_bytes(m.data.size(), m.descriptor);
    file += m.after;
    directory += u32(0x02014B50) + u16(20) + u16(20) + u16(flags) + u16(m.method) + u32(0) +
                 u32(m.central_crc32.value_or(crc32)) +
                 u32(m.central_packed_size.value_or(static_cast<uint32_t>(packed.size()))) +
                 u32(m.central_size.value_or(static_cast<uint32_t>(m.data.size()))) + u16(m.name.size()) +
                 u16(m.central_extra.size()) + u16(m.comment.size()) + u16(m.central_disk.value_or(0)) + u16(0) +
                 u32(0) + u32(m.central_offset.value_or(static_cast<uint32_t>(offset))) + m.name + m.central_extra +
                 m.comment;
  }
  const uint64_t offset = file.size(), size = directory.size(), count = members.size(), place = offset + size;
  file += directory;
  if (end.zip64)
    file += u32(0x06064B50) + u64(end.length64.value_or(44)) + u16(45) + u16(45) + u32(0) + u32(0) +
            u64(end.count_here64.value_or(count)) + u64(end.count64.value_or(count)) + u64(end.size64.value_or(size)) +
            u64(end.offset64.value_or(offset)) + u32(0x07064B50) + u32(0) + u64(end.locator64.value_or(place)) + u32(1);
  return file + u32(0x06054B50) + u16(end.disk.value_or(0)) + u16(end.disk.value_or(0)) +
         u16(end.count_here.value_or(end.count.value_or(static_cast<uint16_t>(count)))) +
         u16(end.count.value_or(static_cast<uint16_t>(count))) + u32(end.size.value_or(static_cast<uint32_t>(size))) +
         u32(end.offset.value_or(static_cast<uint32_t>(offset))) +
         u16(end.comment_length.value_or(static_cast<uint16_t>(end.comment.size()))) + end.comment + end.after;
}

}  // namespace lissome
