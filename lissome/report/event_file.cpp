// The format, little endian: records of
//
//   u64  length of the event          u32  masked CRC-32C of these 8 bytes
//   the event                         u32  masked CRC-32C of the event
//
// An event is a protocol buffer: 1 double wall_time, 2 int64 step, then 3 string file_version in the first one
// ("brain.Event:2") and in the others 5 Summary { 1 repeated Value { 1 string tag, 2 float simple_value } }.
#include "lissome/report/event_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "lissome/base.h"
#include "lissome/report/crc32c.h"

namespace lissome {
namespace {

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void append_fixed(std::string& to, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(number >> (8 * i) & 0xFF);
}

void append_varint(std::string& to, uint64_t number) {
  for (; number >= 0x80; number >>= 7) to += static_cast<char>((number & 0x7F) | 0x80);
  to += static_cast<char>(number);
}

void append_key(std::string& to, int field, WireType type) {
  append_varint(to, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type));
}

void append_bytes(std::string& to, int field, std::string_view bytes) {
  append_key(to, field, WireType::bytes);
  append_varint(to, bytes.size());
  to += bytes;
}

double read_wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string begin_event(int64_t step) {
  std::string event;
  append_key(event, 1, WireType::fixed64);
  append_fixed(event, std::bit_cast<uint64_t>(read_wall_time()), 8);
  append_key(event, 2, WireType::varint);
  append_varint(event, static_cast<uint64_t>(step));
  return event;
}

// The checksum of a checksum is weak, so it is rotated and shifted.
uint32_t mask_crc(std::string_view bytes) { return std::rotr(measure_crc32c(bytes), 15) + 0xA282EAD8; }

[[noreturn]] void fail(const std::string& path, int code) {
  throw_error(code == ENOENT ? ErrorKind::usage : ErrorKind::io, "cannot write ", quote(path), ": ",
              std::error_code(code, std::generic_category()).message());
}

// Unique in its folder: TensorBoard wants "tfevents" and a time in the name.
std::string make_name() {
  char text[80];
  const auto time = static_cast<long long>(read_wall_time() * 1e6);
  std::snprintf(text, sizeof text, "events.out.tfevents.%010lld.%06lld.%d.lissome", time / 1'000'000, time % 1'000'000,
                static_cast<int>(getpid()));
  return text;
}

}  // namespace

EventFile::EventFile(const std::string& folder) : path_(folder + "/" + make_name()) {
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) fail(folder, errno);
  file_.reset(std::fopen(path_.c_str(), "wxe"));
  if (!file_) fail(path_, errno);
  std::string event = begin_event(0);
  append_bytes(event, 3, "brain.Event:2");
  write_record(event);
  flush();
}

void EventFile::add_scalar(std::string_view tag, int64_t step, double value) {
  std::string tagged, summary, event = begin_event(step);
  append_bytes(tagged, 1, tag);
  append_key(tagged, 2, WireType::fixed32);
  append_fixed(tagged, std::bit_cast<uint32_t>(static_cast<float>(value)), 4);
  append_bytes(summary, 1, tagged);
  append_bytes(event, 5, summary);
  write_record(event);
}

void EventFile::write_record(const std::string& event) {
  std::string record;
  append_fixed(record, event.size(), 8);
  append_fixed(record, mask_crc(record), 4);
  record += event;
  append_fixed(record, mask_crc(event), 4);
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size()) fail(path_, errno);
}

void EventFile::flush() {
  if (std::fflush(file_.get()) != 0) fail(path_, errno);
}

}  // namespace lissome
