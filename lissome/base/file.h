// Files: mapped reading that refuses special files and notices a change underneath, and writing that is all or nothing
// (temporary name in the same folder, fsync, rename).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lissome/base/mapped_range.h"
#include "lissome/base/temporary_file.h"

namespace lissome {

// A whole regular file, mapped privately: a write through a borrowed pointer copies the page and never reaches the
// file. Throws usage when the path is missing or is a directory, invalid_input for special files, io when it cannot be
// read. A file that another process truncates meanwhile: see mapped_range.h.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // These bytes are not read for a while: pages that lie wholly among them leave this process's memory.
  void release(std::span<const std::byte> bytes) const;
  // Throws invalid_input when size or modification time differ from those at opening, and what check_mappings() throws.
  void check_unchanged() const;

 private:
  MappedFile() = default;
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int64_t modified_ns_ = 0;
  int file_ = -1;
  std::optional<MappedRange> range_;
};

// Writes through a temporary file beside `path`; nothing appears under `path` unless `write` returned and every byte
// was synced. A symbolic link is followed, an older file keeps its permissions. Throws usage (the folder is missing,
// the path is a folder or a device) and io (no permission, full disk: with the path, what was seen and what to do). On
// any failure the temporary file is removed and an older `path` is left as it was. The first file that a process writes
// into a folder removes temporary files there whose writers were killed.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(const std::string& text);
  // Overwrites bytes that were written before; the position stays.
  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  uint64_t position() const { return position_; }
  void seal();     // writes all to the disk, but for the file system's journal; nothing more can be written
  void publish();  // after seal(): renames, and throws what check_mappings() throws
  void commit();   // seals where that was not done, syncs and publishes

 private:
  std::string path_;                        // as given, for messages
  std::string target_;                      // links resolved
  std::optional<TemporaryFile> temporary_;  // until it is published
  bool sealed_ = false;
  uint64_t position_ = 0;
};

// For a program that must end: from here on files get their names without fsync, whose wait for a busy disk nothing can
// end. Data is on the disk before the name all the same, where the file system keeps that order. Async-signal-safe.
void stop_file_syncs() noexcept;

// What the first AtomicFile in the folder of `path` would sweep, ahead of long work.
void sweep_temporary_files_beside(const std::string& path);
void write_file(const std::string& path, const std::string& text);
// At most `limit` bytes, else invalid_input.
std::string read_text_file(const std::string& path, size_t limit);

}  // namespace lissome
