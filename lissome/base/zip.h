// A strict reader and a plain writer of zip archives. The reader trusts nothing: see the refusals below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lissome/base/file.h"

namespace lissome {

struct ZipMember {
  std::string name;
  uint64_t offset = 0;           // of the data in the file
  uint64_t compressed_size = 0;  // bytes in the file
  uint64_t size = 0;             // bytes unpacked
  uint32_t crc32 = 0;
  bool stored = true;  // else deflated
};

// Why a reader refuses a member of this name ("has an absolute name."); empty for a name that is taken.
std::string find_name_fault(const std::string& name);

// Opening checks the whole directory and refuses (invalid_input, naming file, member, what was seen and allowed):
// duplicate names, local and central headers that disagree, members that overlap or lie outside the file, encryption,
// unknown flags or methods, absolute names, "..", backslash, NUL, names that are not UTF-8, more than 100,000 members,
// inconsistent Zip64, bytes that belong to no member. Contents are checked against their CRC32 when read, and a file
// that changed since it was opened is refused.
class ZipReader {
 public:
  static ZipReader open(const std::string& path);
  static ZipReader from_file(std::shared_ptr<const MappedFile> file);

  const std::vector<ZipMember>& members() const { return members_; }
  const ZipMember* find(std::string_view name) const;  // null when absent
  // The stored bytes in the mapping, after the CRC check; refuses a deflated member. Lives as long as file().
  std::span<const std::byte> view(const ZipMember& member) const;
  // Unpacked text; refuses more than `limit` bytes or more than 100 times the packed size.
  std::string read_text(const ZipMember& member, uint64_t limit) const;
  // Unpacked bytes of data members (npz): refuses more than `limit` bytes, or more than deflate can hold.
  std::vector<std::byte> read_bytes(const ZipMember& member, uint64_t limit) const;
  // The same into memory of the caller, of exactly member.size bytes.
  void read_into(const ZipMember& member, std::span<std::byte> out) const;
  const std::shared_ptr<const MappedFile>& file() const { return file_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<ZipMember> members_;
  std::vector<uint32_t> by_name_;  // indices into members_, sorted by name
};

// Each data start is aligned to `alignment` bytes (through the extra field). Zip64 where needed.
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path, uint32_t alignment = 64);
  // Writes nothing, and counts what would be written.
  explicit ZipWriter(uint32_t alignment = 64);
  void add(const std::string& name, std::span<const std::byte> bytes);
  void add(const std::string& name, const std::string& text);
  // Deflated where that halves it; all other members are stored.
  void add_text(const std::string& name, const std::string& text);
  // One member from several pieces, one behind the other.
  void add_parts(const std::string& name, std::span<const std::span<const std::byte>> parts);
  void commit();  // writes the directory, syncs, renames
  // The same but for the renaming, which is AtomicFile::publish().
  std::unique_ptr<AtomicFile> seal();
  uint64_t finish();  // writes the directory; the bytes of the archive

 private:
  struct Entry {
    std::string name;
    uint64_t offset, size, packed_size;
    uint32_t crc32;
    uint16_t method;
  };
  void begin(Entry entry);  // writes its header; its data comes next
  void write(std::span<const std::byte> bytes);
  void write(const std::string& text) { write(std::as_bytes(std::span(text))); }

  std::unique_ptr<AtomicFile> file_;  // null where bytes are counted alone
  uint64_t position_ = 0;
  uint32_t alignment_;
  std::vector<Entry> entries_;
};

}  // namespace lissome
