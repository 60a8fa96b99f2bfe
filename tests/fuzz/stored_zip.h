// A zip archive in memory whose members are stored, checksums right: what the product's own writer would put on a disk.
#pragma once

#include <string>
#include <string_view>

namespace lissome {

class StoredZip {
 public:
  void add(std::string_view name, std::string_view data);
  std::string finish();  // the archive; nothing may be added after it

 private:
  std::string body_, directory_;
  unsigned members_ = 0;
};

}  // namespace lissome
