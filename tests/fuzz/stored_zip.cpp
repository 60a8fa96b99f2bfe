#include "tests/fuzz/stored_zip.h"

#include <libdeflate.h>

#include <cstdint>

namespace lissome {
namespace {

constexpr size_t kAlignment = 64;

void put(std::string& text, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
}

// What local and central header share: from the version needed to the length of the name.
void put_facts(std::string& text, std::string_view name, std::string_view data) {
  put(text, 20, 2);  // version
  put(text, 0, 2);   // flags
  put(text, 0, 2);   // stored
  put(text, 0, 4);   // time
  put(text, libdeflate_crc32(0, data.data(), data.size()), 4);
  put(text, data.size(), 4);
  put(text, data.size(), 4);
  put(text, name.size(), 2);
}

}  // namespace

void StoredZip::add(std::string_view name, std::string_view data) {
  const size_t offset = body_.size();
  put(body_, 0x04034b50, 4);
  put_facts(body_, name, data);
  // Padded by an extra field, so that arrays are aligned.
  const size_t start = body_.size() + 2 + name.size() + 4;
  const size_t padding = (kAlignment - start % kAlignment) % kAlignment;
  put(body_, padding + 4, 2);
  body_ += name;
  put(body_, 0x4246, 2);
  put(body_, padding, 2);
  body_.append(padding, '\0');
  body_ += data;
  put(directory_, 0x02014b50, 4);
  put(directory_, 20, 2);
  put_facts(directory_, name, data);
  put(directory_, 0, 2);  // extra
  put(directory_, 0, 2);  // comment
  put(directory_, 0, 2);  // disk
  put(directory_, 0, 2);  // internal attributes
  put(directory_, 0, 4);  // external attributes
  put(directory_, offset, 4);
  directory_ += name;
  ++members_;
}

std::string StoredZip::finish() {
  const size_t offset = body_.size();
  body_ += directory_;
  put(body_, 0x06054b50, 4);
  put(body_, 0, 4);  // disks
  put(body_, members_, 2);
  put(body_, members_, 2);
  put(body_, directory_.size(), 4);
  put(body_, offset, 4);
  put(body_, 0, 2);  // comment
  return std::move(body_);
}

}  // namespace lissome
