// Files that are mapped now, listed for a program's SIGBUS handler: reading a mapping behind the end of a file that was
// truncated raises that signal. The library installs no handler; a program whose handler calls cover_mapped_range()
// gets an error in place of its end.
#pragma once

#include <cstddef>
#include <string>

namespace lissome {

// Lists a mapping as long as it stands; must end before the memory is unmapped.
class MappedRange {
 public:
  MappedRange(const void* data, size_t bytes, const std::string& path);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  struct Entry;
  struct Block;
  static Block first_block;

  Entry* entry_;

  friend bool cover_mapped_range(const void* address) noexcept;
  friend void check_mappings();
};

// For a SIGBUS handler, async-signal-safe: where `address` lies in a listed mapping, zero pages take the place of the
// whole mapping, and check_mappings() throws from then on. False elsewhere: the fault is not of a listed mapping.
bool cover_mapped_range(const void* address) noexcept;

// Throws io, naming the file, once zero pages have taken the place of any mapping of this process: whatever was read
// since may be wrong. Costs one atomic load. Sessions call it after each run, files before they get their name.
void check_mappings();

}  // namespace lissome
