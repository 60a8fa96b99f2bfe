#include <doctest/doctest.h>

#include "lissome/base/error.h"
#include "lissome/base/zip.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

TEST_CASE("what is written is read, aligned, and the same every time") {
  const TemporaryFolder folder;
  for (const char* name : {"a.zip", "b.zip"}) {
    ZipWriter writer(folder.file(name));
    writer.add("text", std::string("hello"));
    writer.add("empty", std::string());
    writer.add("data/\u00e4", std::string(1000, '\1'));
    const std::string head = "head", tail = "tail";
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(head)), {}, std::as_bytes(std::span(tail))};
    writer.add_parts("parts", parts);
    writer.commit();
  }
  CHECK(folder.read("a.zip") == folder.read("b.zip"));
  const ZipReader zip = ZipReader::open(folder.file("a.zip"));
  REQUIRE(zip.members().size() == 4);
  for (const ZipMember& member : zip.members()) {
    CHECK(member.offset % 64 == 0);
    CHECK(member.stored);
  }
  CHECK(zip.read_text(*zip.find("text"), 5) == "hello");
  CHECK(zip.read_text(*zip.find("empty"), 0).empty());
  CHECK(zip.read_text(*zip.find("parts"), 8) == "headtail");
  CHECK(zip.view(*zip.find("data/\u00e4")).size() == 1000);
}

TEST_CASE("a text is deflated where that halves it and a reader takes it") {
  const TemporaryFolder folder;
  std::string words, digits;
  for (int i = 0; i < 3000; ++i) words += "word " + std::to_string(i * i % 1009) + " ";
  for (uint32_t i = 0, x = 1; i < 3000; ++i) digits += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  const std::string repeated(1 << 20, 'a');
  ZipWriter writer(folder.file("a.zip"));
  writer.add_text("words", words);
  writer.add_text("digits", digits);
  writer.add_text("repeated", repeated);
  writer.add_text("short", "short");
  writer.commit();
  const ZipReader zip = ZipReader::open(folder.file("a.zip"));
  CHECK(!zip.find("words")->stored);
  for (const char* name : {"digits", "repeated", "short"}) CHECK(zip.find(name)->stored);
  CHECK(zip.read_text(*zip.find("words"), words.size()) == words);
  CHECK(zip.read_text(*zip.find("digits"), digits.size()) == digits);
  CHECK(zip.read_text(*zip.find("repeated"), repeated.size()) == repeated);
}

TEST_CASE("many members need Zip64 and are read") {
  const TemporaryFolder folder;
  ZipWriter writer(folder.file("many.zip"), 1);
  for (int i = 0; i < 70'000; ++i) writer.add(std::to_string(i), std::string("x"));
  writer.commit();
  CHECK(ZipReader::open(folder.file("many.zip")).members().size() == 70'000);
}

TEST_CASE("an archive that is not committed leaves nothing") {
  const TemporaryFolder folder;
  {
    ZipWriter writer(folder.file("a.zip"));
    writer.add("text", std::string("hello"));
  }
  CHECK(folder.list().empty());
  EXPECT_ERROR(usage, ZipWriter(folder.file("absent/a.zip")), "absent", "does not exist");
}
