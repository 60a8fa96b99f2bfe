#include "tests/fuzz/byte_container.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "tests/fuzz/fuzz_hooks.h"
#include "tests/fuzz/json_edits.h"
#include "tests/fuzz/stored_zip.h"

namespace lissome {
namespace {

constexpr size_t kMostUnpacked = 1 << 16;
constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";

uint64_t read_little(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(at + i < bytes.size() ? bytes[at + i] : 0);
  return value;
}

void write_little(std::string& bytes, size_t at, uint64_t value, size_t count) {
  for (size_t i = 0; i < count && at + i < bytes.size(); ++i) bytes[at + i] = static_cast<char>(value >> 8 * i);
}

void write_big(std::string& bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (24 - 8 * i));
}

enum class Packing { deflate, zlib, gzip };

std::string unpack(std::string_view packed, Packing packing) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> tool(
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  const auto call = packing == Packing::deflate ? libdeflate_deflate_decompress
                    : packing == Packing::zlib  ? libdeflate_zlib_decompress
                                                : libdeflate_gzip_decompress;
  std::string result(kMostUnpacked, '\0');
  size_t size = 0;
  const auto outcome = call(tool.get(), packed.data(), packed.size(), result.data(), result.size(), &size);
  result.resize(outcome == LIBDEFLATE_SUCCESS ? size : 0);
  return result;
}

std::string pack(std::string_view plain, Packing packing) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> tool(
      libdeflate_alloc_compressor(1), &libdeflate_free_compressor);
  const auto call = packing == Packing::zlib ? libdeflate_zlib_compress : libdeflate_gzip_compress;
  std::string result(plain.size() + 256, '\0');
  result.resize(call(tool.get(), plain.data(), plain.size(), result.data(), result.size()));
  return result;
}

struct Member {
  std::string name, data;
};

// By the directory; members that cannot be read are left out.
std::vector<Member> list_members(std::string_view zip) {
  std::vector<Member> members;
  const size_t end = zip.rfind("PK\x05\x06");
  if (end == std::string_view::npos) return members;
  size_t at = read_little(zip, end + 16, 4);
  while (at + 46 <= zip.size() && zip.substr(at, 4) == "PK\x01\x02" && members.size() < 64) {
    const size_t packed = read_little(zip, at + 20, 4), name = read_little(zip, at + 28, 2),
                 extra = read_little(zip, at + 30, 2), comment = read_little(zip, at + 32, 2),
                 local = read_little(zip, at + 42, 4);
    const size_t data = local + 30 + read_little(zip, local + 26, 2) + read_little(zip, local + 28, 2);
    if (at + 46 + name <= zip.size() && data <= zip.size() && packed <= zip.size() - data) {
      const std::string_view bytes = zip.substr(data, packed);
      const bool is_packed = read_little(zip, at + 10, 2) == 8;
      members.push_back(
          {std::string(zip.substr(at + 46, name)), is_packed ? unpack(bytes, Packing::deflate) : std::string(bytes)});
    }
    at += 46 + name + extra + comment;
  }
  return members;
}

std::string change_zip(const std::string& bytes, FuzzRandom& random) {
  std::vector<Member> members = list_members(bytes);
  if (members.empty()) return change_bytes(bytes);
  Member& member = random.pick(members);
  if (random.once_in(12)) {
    member.name = change_bytes(member.name, 8);
  } else if (random.once_in(20)) {
    members.push_back(random.pick(members));
  } else if (random.once_in(20)) {
    members.erase(members.begin());
  } else if (member.data.starts_with('{')) {
    member.data = change_json_text(member.data, static_cast<unsigned>(random.next()));
  } else {
    member.data = change_bytes(member.data);
  }
  StoredZip zip;
  for (const Member& kept : members) zip.add(kept.name, kept.data);
  return zip.finish();
}

// Every chunk's checksum right; now and then the pixels change beneath their packing.
std::string change_png(const std::string& bytes, FuzzRandom& random) {
  std::string made(kPng);
  const bool deep = random.once_in(2);
  const std::string changed = deep ? bytes : change_bytes(bytes);
  for (size_t at = kPng.size(); at + 12 <= changed.size();) {
    const auto stated =
        static_cast<uint32_t>(static_cast<uint8_t>(changed[at]) << 24 | static_cast<uint8_t>(changed[at + 1]) << 16 |
                              static_cast<uint8_t>(changed[at + 2]) << 8 | static_cast<uint8_t>(changed[at + 3]));
    const size_t length = std::min<size_t>(stated, changed.size() - at - 12);
    std::string chunk = changed.substr(at + 4, 4 + length);
    if (deep && chunk.starts_with("IDAT")) {
      chunk = "IDAT" + pack(change_bytes(unpack(std::string_view(chunk).substr(4), Packing::zlib)), Packing::zlib);
    } else if (deep && random.once_in(3) && chunk.size() > 4) {
      chunk = chunk.substr(0, 4) + change_bytes(chunk.substr(4), 4);
    }
    std::string head(4, '\0'), sum(4, '\0');
    write_big(head, 0, static_cast<uint32_t>(chunk.size() - 4));
    write_big(sum, 0, libdeflate_crc32(0, chunk.data(), chunk.size()));
    made += head + chunk + sum;
    at += 12 + length;
  }
  return made;
}

std::string change_safetensors(const std::string& bytes, size_t length, FuzzRandom& random) {
  const std::string head = change_json_text(bytes.substr(8, length), static_cast<unsigned>(random.next()));
  std::string made(8, '\0');
  write_little(made, 0, head.size(), 8);
  return made + head + bytes.substr(8 + length);
}

}  // namespace

std::string change_bytes(std::string bytes, size_t room) {
  const size_t size = bytes.size();
  bytes.resize(size + room);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
  return bytes;
}

std::string change_json_text(const std::string& text, unsigned seed) {
  FuzzRandom random(seed);
  Json json = Json::parse(text, nullptr, false);
  if (random.once_in(2) || json.is_discarded()) return change_bytes(text);
  change_any_leaf(json, random);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string change_container(const std::string& bytes, unsigned seed) {
  FuzzRandom random(seed);
  if (random.once_in(8)) return change_bytes(bytes);
  if (bytes.starts_with("PK")) return change_zip(bytes, random);
  if (bytes.starts_with(kPng)) return change_png(bytes, random);
  if (bytes.starts_with("\x1f\x8b")) return pack(change_bytes(unpack(bytes, Packing::gzip)), Packing::gzip);
  if (bytes.starts_with('{')) return change_json_text(bytes, static_cast<unsigned>(random.next()));
  const uint64_t length = read_little(bytes, 0, 8);
  if (bytes.size() > 9 && length <= bytes.size() - 8 && bytes[8] == '{')
    return change_safetensors(bytes, length, random);
  return change_bytes(bytes);
}

}  // namespace lissome
