// For tests: builds zip archives byte by byte, right by default, with every field open to lies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lissome {

struct ArchiveMember {
  std::string name;
  std::string data;                   // as unpacked
  std::optional<std::string> packed;  // as in the file, when it differs
  uint16_t method = 0;
  uint16_t flags = 0x800;
  std::string local_extra, central_extra, comment;
  int descriptor = 0;  // bytes of each size in the descriptor: 0 (none), 4 or 8
  // Lies; the truth where empty. "central" values go to the directory, "local" ones to the header.
  std::optional<std::string> local_name;
  std::optional<uint16_t> local_flags, local_method;
  std::optional<uint32_t> local_crc32, local_packed_size, local_size;
  std::optional<uint32_t> central_crc32, central_packed_size, central_size, central_offset;
  std::optional<uint16_t> central_disk;
  std::string after;  // bytes behind the member
};

struct ArchiveEnd {
  std::string comment, after;
  bool zip64 = false;
  std::optional<uint16_t> count, count_here, disk, comment_length;
  std::optional<uint32_t> size, offset;
  std::optional<uint64_t> count64, count_here64, size64, offset64, length64, locator64;
};

uint32_t measure_crc32(const std::string& bytes);
std::string deflate_text(const std::string& bytes);   // raw deflate
std::string number_bytes(uint64_t value, int width);  // little endian
std::string zip64_field(const std::vector<uint64_t>& values);
std::string build_archive(const std::vector<ArchiveMember>& members, const ArchiveEnd& end = {});

}  // namespace lissome
