// Reads zip archives strictly: the directory at the end, every local header and every data descriptor must tell one and
// the same story, and the members must tile the file from its first byte to the directory. So no two readers can see
// two different archives in one file, and nothing hides between members. What a field means is drawn in zip_writer.cpp.
// Archives by PyTorch leave CRC32 and sizes of the local header 0 (flag bit 3) and repeat them in a descriptor behind
// the data; NumPy writes Zip64 fields for small members too. Both are read, with all copies compared.
#include <libdeflate.h>
#include <sys/mman.h>

#include <algorithm>
#include <iomanip>
#include <numeric>
#include <optional>

#include "lissome/base/error.h"
#include "lissome/base/text.h"
#include "lissome/base/zip.h"
#include "lissome/base/zip_records.h"

namespace lissome {
namespace {

constexpr uint64_t kMostMembers = 100'000;
constexpr uint64_t kMostExpansion = 100;      // of text members
constexpr uint64_t kDeflateExpansion = 1032;  // a deflate stream cannot hold more
constexpr uint16_t kNone16 = 0xFFFF;

constexpr uint32_t kLocalMark = 0x04034B50, kCentralMark = 0x02014B50, kDescriptorMark = 0x08074B50;
constexpr uint32_t kEndMark = 0x06054B50, kEnd64Mark = 0x06064B50, kLocator64Mark = 0x07064B50;
constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;

constexpr uint16_t kEncrypted = 1 << 0, kDeflateLevel = 3 << 1, kDescriptor = 1 << 3, kUtf8 = 1 << 11;

struct Hex {
  uint64_t value;
};
std::ostream& operator<<(std::ostream& out, Hex hex) { return out << "0x" << std::hex << hex.value << std::dec; }

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

// One entry while it is checked: the member, and what only the checks need.
struct DirectoryEntry {
  ZipMember member;
  uint64_t header = 0;  // offset of the local header
  uint64_t end = 0;     // behind the data and its descriptor
  uint16_t flags = 0;
  uint16_t method = 0;
};

// What an extra field 0x0001 holds.
struct Zip64Field {
  uint64_t offset = 0;
  uint64_t length = 0;
};

class DirectoryReader {
 public:
  explicit DirectoryReader(const MappedFile& file) : bytes_(file.bytes()), path_(file.path()) {}
  std::vector<ZipMember> read();

 private:
  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    throw_error(ErrorKind::invalid_input, quote(path_), ": ", parts...);
  }
  template <typename... Parts>
  [[noreturn]] void refuse_member(const DirectoryEntry& entry, const Parts&... parts) const {
    refuse("member ", quote(entry.member.name), " ", parts...);
  }

  // The bytes must have been checked to exist.
  uint64_t number(uint64_t offset, int width) const {
    uint64_t value = 0;
    for (int i = 0; i < width; ++i) value |= uint64_t{std::to_integer<uint8_t>(bytes_[offset + i])} << (8 * i);
    return value;
  }
  uint16_t u16(uint64_t offset) const { return static_cast<uint16_t>(number(offset, 2)); }
  uint32_t u32(uint64_t offset) const { return static_cast<uint32_t>(number(offset, 4)); }
  uint64_t u64(uint64_t offset) const { return number(offset, 8); }
  std::string_view text(uint64_t offset, uint64_t length) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + offset, length};
  }

  uint64_t find_end() const;
  Directory read_end(uint64_t end) const;
  Directory read_end64(uint64_t end) const;
  DirectoryEntry read_central(uint64_t* position, uint64_t limit) const;
  void read_central_zip64(DirectoryEntry* entry, std::optional<Zip64Field> field, bool disk) const;
  std::optional<Zip64Field> find_zip64(const DirectoryEntry& entry, uint64_t offset, uint64_t length) const;
  void check_name(const DirectoryEntry& entry) const;
  void check_coding(const DirectoryEntry& entry) const;
  void check_local(DirectoryEntry* entry, uint64_t limit) const;
  void check_local_sizes(const DirectoryEntry& entry, std::optional<Zip64Field> field) const;
  void check_descriptor(DirectoryEntry* entry, uint64_t limit) const;
  void check_tiling(const std::vector<DirectoryEntry>& entries, const Directory& directory) const;
  void check_unique(const std::vector<DirectoryEntry>& entries) const;

  std::span<const std::byte> bytes_;
  const std::string& path_;
};

// The end record is the one whose comment reaches exactly to the end of the file. Two such records would be two
// archives.
uint64_t DirectoryReader::find_end() const {
  const uint64_t size = bytes_.size();
  std::optional<uint64_t> found;
  bool damaged = false;
  if (size >= kEndSize) {
    const uint64_t last = size - kEndSize;
    const uint64_t first = last > 0xFFFF ? last - 0xFFFF : 0;
    for (uint64_t at = last + 1; at-- > first;) {
      if (u32(at) != kEndMark) continue;
      if (at + kEndSize + u16(at + 20) != size) {
        damaged = true;
        continue;
      }
      if (found) refuse("not one zip archive: it has two end records, at byte ", at, " and at byte ", *found, ".");
      found = at;
    }
  }
  if (found) return *found;
  if (damaged) refuse("not a whole zip archive: bytes follow its end record, or it is cut off.");
  if (size >= 4 && u32(0) == kLocalMark)
    refuse("a zip archive without its directory at the end (", size, " bytes): cut off or damaged. Copy it again.");
  refuse("not a zip archive (", size, " bytes).");
}

Directory DirectoryReader::read_end64(uint64_t end) const {
  const uint64_t locator = end - kLocator64Size;
  if (locator < kEnd64Size || u64(locator + 8) != locator - kEnd64Size || u32(locator - kEnd64Size) != kEnd64Mark)
    refuse("inconsistent Zip64: the locator points to byte ", u64(locator + 8), ", the end record must lie ",
           kEnd64Size, " bytes before the locator at byte ", locator, ".");
  const uint64_t record = locator - kEnd64Size;
  if (u32(locator + 4) != 0 || u32(locator + 16) > 1 || u32(record + 16) != 0 || u32(record + 20) != 0)
    refuse("an archive in several parts; one file is allowed.");
  if (u64(record + 4) != kEnd64Size - 12)
    refuse("inconsistent Zip64: the end record says ", u64(record + 4), " bytes, ", kEnd64Size - 12, " are allowed.");
  const Directory directory{u64(record + 48), u64(record + 40), u64(record + 32)};
  if (u64(record + 24) != directory.count)
    refuse("inconsistent Zip64: ", u64(record + 24), " members on this disk, ", directory.count, " in all.");
  const auto agrees = [](uint64_t small, uint64_t none, uint64_t large) { return small == none || small == large; };
  if (!agrees(u16(end + 8), kNone16, directory.count) || !agrees(u16(end + 10), kNone16, directory.count) ||
      !agrees(u32(end + 12), kNone32, directory.size) || !agrees(u32(end + 16), kNone32, directory.offset))
    refuse("inconsistent Zip64: the two end records differ in number of members, size or place of the directory.");
  if (directory.offset > record || directory.size != record - directory.offset)
    refuse("the directory (byte ", directory.offset, ", ", directory.size, " bytes) must end at byte ", record, ".");
  return directory;
}

Directory DirectoryReader::read_end(uint64_t end) const {
  const auto disk = [&](uint64_t at) { return u16(at) == 0 || u16(at) == kNone16; };
  if (!disk(end + 4) || !disk(end + 6)) refuse("an archive in several parts; one file is allowed.");
  if (end >= kLocator64Size && u32(end - kLocator64Size) == kLocator64Mark) return read_end64(end);
  if (u16(end + 4) != 0 || u16(end + 6) != 0) refuse("inconsistent Zip64: the end record asks for it, none is there.");
  const Directory directory{u32(end + 16), u32(end + 12), u16(end + 10)};
  if (u16(end + 8) != directory.count)
    refuse("an archive in several parts: ", u16(end + 8), " of ", directory.count, " members are here.");
  if (directory.offset > end || directory.size != end - directory.offset)
    refuse("the directory (byte ", directory.offset, ", ", directory.size, " bytes) must end at byte ", end,
           directory.offset == kNone32 || directory.size == kNone32 ? ", and there is no Zip64 record." : ".");
  return directory;
}

// Walks the extra fields, which must fill their range exactly, and returns the one Zip64 field.
std::optional<Zip64Field> DirectoryReader::find_zip64(const DirectoryEntry& entry, uint64_t offset,
                                                      uint64_t length) const {
  std::optional<Zip64Field> found;
  const uint64_t end = offset + length;
  while (offset < end) {
    if (end - offset < 4 || end - offset - 4 < u16(offset + 2))
      refuse_member(entry, "has extra fields that do not fill their ", length, " bytes.");
    if (u16(offset) == 1) {
      if (found) refuse_member(entry, "has inconsistent Zip64: two fields.");
      found = Zip64Field{offset + 4, u16(offset + 2)};
    }
    offset += 4 + u16(offset + 2);
  }
  return found;
}

void DirectoryReader::check_name(const DirectoryEntry& entry) const {
  const std::string& name = entry.member.name;
  if (name.empty()) refuse("a member has an empty name.");
  if (const std::string fault = find_name_fault(name); !fault.empty()) refuse_member(entry, fault);
  const bool is_ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  if (!is_ascii && (entry.flags & kUtf8) == 0)
    refuse_member(entry, "has a name that is not marked as UTF-8 (flag bit 11).");
  if (name.back() == '/' && entry.member.size != 0)
    refuse_member(entry, "is a folder with ", entry.member.size, " bytes; 0 are allowed.");
}

void DirectoryReader::check_coding(const DirectoryEntry& entry) const {
  constexpr uint16_t kOtherEncryption = 1 << 6 | 1 << 13;
  if ((entry.flags & (kEncrypted | kOtherEncryption)) != 0)
    refuse_member(entry, "is encrypted (flags ", Hex{entry.flags}, "); write the archive without a password.");
  if (entry.method != kStored && entry.method != kDeflated)
    refuse_member(entry, "is packed by method ", entry.method, "; stored (0) and deflated (8) are allowed.");
  const uint16_t known = kDescriptor | kUtf8 | (entry.method == kDeflated ? kDeflateLevel : 0);
  if ((entry.flags & ~known) != 0)
    refuse_member(entry, "has unknown flags ", Hex{entry.flags}, "; ", Hex{known}, " are allowed.");
  if (entry.method == kStored && entry.member.compressed_size != entry.member.size)
    refuse_member(entry, "is stored, but has ", entry.member.compressed_size, " bytes packed and ", entry.member.size,
                  " unpacked.");
  // No deflate stream holds more: refused here, before anyone reserves memory for it.
  if (entry.method == kDeflated && entry.member.size / kDeflateExpansion > entry.member.compressed_size)
    refuse_member(entry, "claims ", entry.member.size, " bytes unpacked from ", entry.member.compressed_size,
                  "; deflate holds at most ", kDeflateExpansion, " times.");
}

// In the directory the field holds exactly the values that are saturated in the record, in this order.
void DirectoryReader::read_central_zip64(DirectoryEntry* entry, std::optional<Zip64Field> field, bool disk) const {
  std::vector<uint64_t*> wanted;
  for (uint64_t* value : {&entry->member.size, &entry->member.compressed_size, &entry->header})
    if (*value == kNone32) wanted.push_back(value);
  const uint64_t length = field ? field->length : 0;
  if (length != 8 * wanted.size() + (disk ? 4 : 0))
    refuse_member(*entry, "has inconsistent Zip64: the field has ", length, " bytes, its record asks for ",
                  8 * wanted.size() + (disk ? 4 : 0), ".");
  if (!field) return;
  for (size_t i = 0; i < wanted.size(); ++i) *wanted[i] = u64(field->offset + 8 * i);
  if (disk && u32(field->offset + length - 4) != 0) refuse_member(*entry, "lies in another part of the archive.");
}

DirectoryEntry DirectoryReader::read_central(uint64_t* position, uint64_t limit) const {
  const uint64_t at = *position;
  if (limit - at < kCentralSize || u32(at) != kCentralMark)
    refuse("no directory record at byte ", at, ": the number of members does not fit the directory.");
  const uint64_t name_length = u16(at + 28), extra_length = u16(at + 30), comment_length = u16(at + 32);
  if (limit - at - kCentralSize < name_length + extra_length + comment_length)
    refuse("the directory record at byte ", at, " reaches beyond the directory.");
  DirectoryEntry entry;
  entry.member.name = text(at + kCentralSize, name_length);
  entry.member.crc32 = u32(at + 16);
  entry.member.compressed_size = u32(at + 20);
  entry.member.size = u32(at + 24);
  entry.header = u32(at + 42);
  entry.flags = u16(at + 8);
  entry.method = u16(at + 10);
  entry.member.stored = entry.method == kStored;
  const uint16_t disk = u16(at + 34);
  if (disk != 0 && disk != kNone16) refuse_member(entry, "lies in another part of the archive.");
  read_central_zip64(&entry, find_zip64(entry, at + kCentralSize + name_length, extra_length), disk == kNone16);
  check_coding(entry);
  check_name(entry);
  *position = at + kCentralSize + name_length + extra_length + comment_length;
  return entry;
}

void DirectoryReader::check_local_sizes(const DirectoryEntry& entry, std::optional<Zip64Field> field) const {
  const ZipMember& member = entry.member;
  const bool later = (entry.flags & kDescriptor) != 0;  // then 0 stands for "see the descriptor"
  const auto agrees = [&](uint64_t local, uint64_t central) { return local == central || (later && local == 0); };
  if (!agrees(u32(entry.header + 14), member.crc32))
    refuse_member(entry, "has two CRC32: ", Hex{u32(entry.header + 14)}, " in its header, ", Hex{member.crc32},
                  " in the directory.");
  uint64_t packed = u32(entry.header + 18), size = u32(entry.header + 22);
  if (packed == kNone32 || size == kNone32) {
    if (packed != size || !field || field->length < 16)
      refuse_member(entry, "has inconsistent Zip64: its header asks for two sizes in a field of 16 bytes.");
    size = u64(field->offset);
    packed = u64(field->offset + 8);
  } else if (field && !later) {
    // Python before 3.11.4 writes a field that is not asked for (np.savez does): it must repeat the header's sizes.
    if (field->length != 16 || u64(field->offset) != size || u64(field->offset + 8) != packed)
      refuse_member(entry, "has inconsistent Zip64: a field that its header does not ask for, with other sizes.");
  }
  if (!agrees(packed, member.compressed_size) || !agrees(size, member.size))
    refuse_member(entry, "has two sizes: ", packed, " packed and ", size, " unpacked in its header, ",
                  member.compressed_size, " and ", member.size, " in the directory.");
}

void DirectoryReader::check_descriptor(DirectoryEntry* entry, uint64_t limit) const {
  const ZipMember& member = entry->member;
  const uint64_t at = entry->end;
  const auto matches = [&](int width) {
    if (limit - at < 8 + 2 * static_cast<uint64_t>(width) || u32(at) != kDescriptorMark) return false;
    return u32(at + 4) == member.crc32 && number(at + 8, width) == member.compressed_size &&
           number(at + 8 + width, width) == member.size;
  };
  // Sizes have 8 bytes in Zip64 archives and 4 in others. What follows tells: the next member or the directory.
  for (int width : {4, 8}) {
    if (!matches(width)) continue;
    const uint64_t end = at + 8 + 2 * static_cast<uint64_t>(width);
    const bool ends_well = end == limit || (limit - end >= 4 && u32(end) == kLocalMark);
    if (width == 4 && !ends_well && matches(8)) continue;
    entry->end = end;
    return;
  }
  refuse_member(*entry, "has no descriptor behind its data that repeats CRC32 and sizes of the directory.");
}

void DirectoryReader::check_local(DirectoryEntry* entry, uint64_t limit) const {
  const uint64_t at = entry->header;
  if (at > limit || limit - at < kLocalSize)
    refuse_member(*entry, "starts at byte ", at, ", outside of the ", limit, " bytes before the directory.");
  if (u32(at) != kLocalMark) refuse_member(*entry, "has no header at byte ", at, ".");
  const uint64_t name_length = u16(at + 26), extra_length = u16(at + 28);
  if (limit - at - kLocalSize < name_length + extra_length)
    refuse_member(*entry, "has a header that reaches beyond byte ", limit, ".");
  const std::string_view name = text(at + kLocalSize, name_length);
  if (name != entry->member.name) refuse_member(*entry, "is called ", quote(name), " in its header.");
  if (u16(at + 6) != entry->flags)
    refuse_member(*entry, "has two sets of flags: ", Hex{u16(at + 6)}, " in its header, ", Hex{entry->flags},
                  " in the directory.");
  if (u16(at + 8) != entry->method)
    refuse_member(*entry, "has two methods: ", u16(at + 8), " in its header, ", entry->method, " in the directory.");
  check_local_sizes(*entry, find_zip64(*entry, at + kLocalSize + name_length, extra_length));
  entry->member.offset = at + kLocalSize + name_length + extra_length;
  if (limit - entry->member.offset < entry->member.compressed_size)
    refuse_member(*entry, "has ", entry->member.compressed_size, " bytes from byte ", entry->member.offset,
                  ", outside of the ", limit, " bytes before the directory.");
  entry->end = entry->member.offset + entry->member.compressed_size;
  if ((entry->flags & kDescriptor) != 0) check_descriptor(entry, limit);
}

void DirectoryReader::check_tiling(const std::vector<DirectoryEntry>& entries, const Directory& directory) const {
  std::vector<const DirectoryEntry*> order(entries.size());
  std::transform(entries.begin(), entries.end(), order.begin(), [](const DirectoryEntry& entry) { return &entry; });
  std::sort(order.begin(), order.end(),
            [](const DirectoryEntry* a, const DirectoryEntry* b) { return a->header < b->header; });
  uint64_t position = 0;
  const DirectoryEntry* before = nullptr;
  for (const DirectoryEntry* entry : order) {
    if (entry->header < position)
      refuse_member(*entry, "at byte ", entry->header, " overlaps member ", quote(before->member.name),
                    ", which ends at byte ", position, ".");
    if (entry->header > position) break;
    position = entry->end;
    before = entry;
  }
  if (position != directory.offset)
    refuse("bytes from ", position, " on belong to no member; members must follow each other without gaps.");
}

void DirectoryReader::check_unique(const std::vector<DirectoryEntry>& entries) const {
  // A folder and a file of one name count as duplicates too.
  const auto key = [&](size_t index) {
    std::string_view name = entries[index].member.name;
    if (name.back() == '/') name.remove_suffix(1);
    return name;
  };
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  for (size_t i = 1; i < order.size(); ++i)
    if (key(order[i - 1]) == key(order[i])) refuse_member(entries[order[i]], "is there twice; names must be unique.");
}

std::vector<ZipMember> DirectoryReader::read() {
  const Directory directory = read_end(find_end());
  if (directory.count > kMostMembers)
    refuse("the archive has ", directory.count, " members, at most ", kMostMembers, " are allowed.");
  std::vector<DirectoryEntry> entries;
  uint64_t position = directory.offset;
  const uint64_t limit = directory.offset + directory.size;
  for (uint64_t i = 0; i < directory.count; ++i) entries.push_back(read_central(&position, limit));
  if (position != limit) refuse(limit - position, " bytes of the directory belong to no member.");
  check_unique(entries);
  for (DirectoryEntry& entry : entries) check_local(&entry, directory.offset);
  check_tiling(entries, directory);
  std::vector<ZipMember> members;
  members.reserve(entries.size());
  for (DirectoryEntry& entry : entries) members.push_back(std::move(entry.member));
  return members;
}

template <typename... Parts>
[[noreturn]] void refuse_contents(const MappedFile& file, const ZipMember& member, const Parts&... parts) {
  throw_error(ErrorKind::invalid_input, quote(file.path()), ": member ", quote(member.name), " ", parts...);
}

std::span<const std::byte> packed_bytes(const MappedFile& file, const ZipMember& member) {
  LISSOME_CHECK(member.offset <= file.bytes().size() && member.compressed_size <= file.bytes().size() - member.offset,
                "member of another archive");
  return file.bytes().subspan(member.offset, member.compressed_size);
}

void compare_crc32(const MappedFile& file, const ZipMember& member, uint32_t seen) {
  file.check_unchanged();
  if (seen != member.crc32)
    refuse_contents(file, member, "is damaged: its CRC32 is ", Hex{seen}, ", the directory says ", Hex{member.crc32},
                    ". Copy or export the file again.");
}

void check_crc32(const MappedFile& file, const ZipMember& member, std::span<const std::byte> bytes) {
  compare_crc32(file, member, libdeflate_crc32(0, bytes.data(), bytes.size()));
}

// The same of mapped bytes, piece by piece. Pages that this alone brought in go again, so that a member that nobody
// reads takes no memory; the system still has them at hand for whoever does.
void check_mapped_crc32(const MappedFile& file, const ZipMember& member, std::span<const std::byte> bytes) {
  constexpr size_t kPiece = size_t{1} << 20, kPage = 4096;
  uint32_t seen = 0;
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
    seen = libdeflate_crc32(seen, piece.data(), piece.size());
    const auto first = (reinterpret_cast<uintptr_t>(piece.data()) + kPage - 1) / kPage * kPage;
    const auto last = reinterpret_cast<uintptr_t>(piece.data() + piece.size()) / kPage * kPage;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
  compare_crc32(file, member, seen);
}

void check_limit(const MappedFile& file, const ZipMember& member, uint64_t limit) {
  if (member.size > limit)
    refuse_contents(file, member, "has ", member.size, " bytes unpacked, at most ", limit, " are allowed here.");
}

// Unpacks into `out`, which has member.size bytes.
void unpack(const MappedFile& file, const ZipMember& member, std::span<std::byte> out) {
  file.check_unchanged();
  const auto packed = packed_bytes(file, member);
  if (member.stored) {
    std::copy(packed.begin(), packed.end(), out.begin());
  } else {
    const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
        libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
    if (decompressor == nullptr) throw_error(ErrorKind::over_budget, "no memory to unpack ", quote(member.name), ".");
    size_t used = 0, made = 0;
    const libdeflate_result result = libdeflate_deflate_decompress_ex(decompressor.get(), packed.data(), packed.size(),
                                                                      out.data(), out.size(), &used, &made);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
      refuse_contents(file, member, "unpacks to more than the ", member.size, " bytes that the directory says.");
    if (result != LIBDEFLATE_SUCCESS) refuse_contents(file, member, "is damaged: not a deflate stream.");
    if (used != packed.size() || made != out.size())
      refuse_contents(file, member, "unpacks ", used, " of ", packed.size(), " bytes to ", made, " of ", out.size(),
                      "; all are expected.");
  }
  check_crc32(file, member, out);
}

}  // namespace

ZipReader ZipReader::open(const std::string& path) { return from_file(MappedFile::open(path)); }

ZipReader ZipReader::from_file(std::shared_ptr<const MappedFile> file) {
  ZipReader reader;
  file->check_unchanged();
  reader.members_ = DirectoryReader(*file).read();
  file->check_unchanged();
  reader.file_ = std::move(file);
  reader.by_name_.resize(reader.members_.size());
  std::iota(reader.by_name_.begin(), reader.by_name_.end(), 0u);
  std::sort(reader.by_name_.begin(), reader.by_name_.end(),
            [&](uint32_t a, uint32_t b) { return reader.members_[a].name < reader.members_[b].name; });
  return reader;
}

const ZipMember* ZipReader::find(std::string_view name) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                      [&](uint32_t index, std::string_view key) { return members_[index].name < key; });
  return found != by_name_.end() && members_[*found].name == name ? &members_[*found] : nullptr;
}

std::span<const std::byte> ZipReader::view(const ZipMember& member) const {
  if (!member.stored) refuse_contents(*file_, member, "is deflated; data that is mapped must be stored (method 0).");
  file_->check_unchanged();
  const auto bytes = packed_bytes(*file_, member);
  check_mapped_crc32(*file_, member, bytes);
  return bytes;
}

std::string ZipReader::read_text(const ZipMember& member, uint64_t limit) const {
  check_limit(*file_, member, limit);
  if (!member.stored && member.size > kMostExpansion * member.compressed_size)
    refuse_contents(*file_, member, "unpacks from ", member.compressed_size, " to ", member.size, " bytes; at most ",
                    kMostExpansion, " times are allowed.");
  std::string text(member.size, '\0');
  unpack(*file_, member, std::as_writable_bytes(std::span(text)));
  return text;
}

std::vector<std::byte> ZipReader::read_bytes(const ZipMember& member, uint64_t limit) const {
  check_limit(*file_, member, limit);
  std::vector<std::byte> bytes(member.size);
  unpack(*file_, member, bytes);
  return bytes;
}

void ZipReader::read_into(const ZipMember& member, std::span<std::byte> out) const {
  LISSOME_CHECK(out.size() == member.size, out.size(), " bytes for ", member.size);
  unpack(*file_, member, out);
}

std::string find_name_fault(const std::string& name) {
  const auto is_control = [](char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7F; };
  if (name.empty()) return "has an empty name.";
  if (!is_utf8(name)) return "has a name that is not UTF-8.";
  if (std::any_of(name.begin(), name.end(), is_control)) return "has a control character (such as NUL) in its name.";
  if (name.find('\\') != std::string::npos) return "has a backslash in its name; '/' is allowed.";
  if (name[0] == '/' || (name.size() > 1 && name[1] == ':')) return "has an absolute name.";
  const std::string_view inner = name.back() == '/' ? std::string_view(name).substr(0, name.size() - 1) : name;
  for (const std::string& part : split(inner, '/')) {
    if (part.empty() || part == "." || part == "..")
      return "has " + quote(part) + " as a part of its name; only plain folders and names are allowed.";
  }
  return {};
}

}  // namespace lissome
