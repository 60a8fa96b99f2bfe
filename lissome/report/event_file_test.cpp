// The bytes of an event file, against known checksums; tests/cli reads whole files back.
#include "lissome/report/event_file.h"

#include <doctest/doctest.h>

#include "lissome/report/crc32c.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

namespace lissome {
namespace {

// RFC 3720, B.4.
TEST_CASE("the checksum is that of the standard") {
  CHECK(measure_crc32c("123456789") == 0xE3069283);
  CHECK(measure_crc32c(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(measure_crc32c(std::string(32, '\xff')) == 0x62A8AB43);
}

TEST_CASE("a file begins with its version and grows by one record a scalar") {
  const TemporaryFolder folder;
  EventFile events(folder.file("run"));
  const std::string name = folder.list().at(0) + events.path().substr(folder.file("run").size());
  CHECK(name.find("tfevents") != std::string::npos);
  const std::string first = folder.read(name);
  CHECK(first.size() == 16 + 9 + 2 + 2 + 13);  // frame, wall time, step 0, length and text of the version
  CHECK(first.find("brain.Event:2") != std::string::npos);
  events.add_scalar("loss/train", 300, 0.25);
  events.flush();
  const std::string second = folder.read(name).substr(first.size());
  // Frame, wall time, step 300 in two bytes, a summary of a value of tag and float.
  CHECK(second.size() == 16 + 9 + 3 + (2 + 2 + (2 + 10) + 5));
  CHECK(second.find(std::string("\x15\x00\x00\x80\x3e", 5)) == 12 + 9 + 3 + 2 + 2 + 12);
}

TEST_CASE("a folder without a parent is a wrong path") {
  const TemporaryFolder folder;
  EXPECT_ERROR(usage, EventFile(folder.file("no/run")), "no/run");
}

}  // namespace
}  // namespace lissome
