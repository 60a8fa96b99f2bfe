#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "lissome/base/archive_test_builder.h"
#include "lissome/base/error.h"
#include "lissome/base/zip.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

ZipReader open_archive(const TemporaryFolder& folder, const std::string& bytes) {
  return ZipReader::open(folder.write("a.zip", bytes));
}

ZipReader open_members(const TemporaryFolder& folder, const std::vector<ArchiveMember>& members,
                       const ArchiveEnd& end = {}) {
  return open_archive(folder, build_archive(members, end));
}

ArchiveMember plain(const std::string& name, const std::string& data = "data") {
  ArchiveMember member;
  member.name = name;
  member.data = data;
  return member;
}

ArchiveMember deflated(const std::string& name, const std::string& data) {
  ArchiveMember member = plain(name, data);
  member.method = 8;
  return member;
}

template <typename Part, typename Change>
Part changed(Part part, Change change) {
  change(part);
  return part;
}

std::string read_all(const ZipReader& zip) {
  std::string text;
  for (const ZipMember& member : zip.members()) text += member.name + "=" + zip.read_text(member, 1 << 20) + ";";
  return text;
}

#define REFUSES(members, ...) EXPECT_ERROR(invalid_input, open_members(folder, members), "a.zip", __VA_ARGS__)

using Members = std::vector<ArchiveMember>;

}  // namespace

TEST_CASE("sound archives are read") {
  const TemporaryFolder folder;
  const ZipReader zip = open_members(folder, {plain("a/b", "one"), deflated("c", std::string(50, 'x')),
                                              plain("empty", ""), plain("d/", ""), plain("\u00fcml\u00e4ut", "two")});
  CHECK(read_all(zip) == "a/b=one;c=" + std::string(50, 'x') + ";empty=;d/=;\u00fcml\u00e4ut=two;");
  REQUIRE(zip.find("a/b") != nullptr);
  CHECK(zip.find("a/b")->size == 3);
  CHECK(zip.find("a") == nullptr);
  CHECK(zip.find("") == nullptr);
  CHECK(zip.view(*zip.find("a/b")).size() == 3);
  CHECK(zip.read_bytes(*zip.find("c"), 50).size() == 50);
  CHECK(open_members(folder, {}).members().empty());
}

TEST_CASE("descriptors as PyTorch writes them are read") {
  const TemporaryFolder folder;
  for (int width : {4, 8}) {
    auto member = plain("archive/data/0", std::string(256, '\7'));
    member.descriptor = width;
    member.local_extra = "FB" + number_bytes(5, 2) + "ZZZZZ";
    auto packed = deflated("archive/code", std::string(99, 'y'));
    packed.descriptor = width;
    ArchiveEnd end;
    end.zip64 = true;
    const ZipReader zip = open_members(folder, {member, packed, plain("archive/version", "3")}, end);
    CHECK(zip.view(zip.members()[0]).size() == 256);
    CHECK(zip.read_text(zip.members()[1], 99) == std::string(99, 'y'));
  }
}

TEST_CASE("a descriptor whose bytes could be read both ways is read the right way") {
  // An empty member with a CRC32 of 0: the short form is a prefix of the long one.
  const TemporaryFolder folder;
  for (int width : {4, 8}) {
    auto member = plain("empty", "");
    member.descriptor = width;
    CHECK(open_members(folder, {member, plain("next")}).members().size() == 2);
    CHECK(open_members(folder, {plain("first"), member}).members().size() == 2);
  }
}

TEST_CASE("Zip64 fields as NumPy writes them are read") {
  const TemporaryFolder folder;
  auto member = plain("x.npy", "12345678");
  member.local_size = member.local_packed_size = 0xFFFFFFFF;
  member.local_extra = zip64_field({8, 8});
  CHECK(read_all(open_members(folder, {member})) == "x.npy=12345678;");
  auto unasked = plain("x.npy", "12345678");  // by Python before 3.11.4
  unasked.local_extra = zip64_field({8, 8});
  CHECK(read_all(open_members(folder, {unasked})) == "x.npy=12345678;");
  member.central_size = member.central_packed_size = 0xFFFFFFFF;
  member.central_extra = zip64_field({8, 8});
  CHECK(read_all(open_members(folder, {member})) == "x.npy=12345678;");
}

TEST_CASE("a comment at the end is read over") {
  const TemporaryFolder folder;
  ArchiveEnd end;
  end.comment = std::string(65535, 'c');
  CHECK(open_members(folder, {plain("a")}, end).members().size() == 1);
}

TEST_CASE("duplicate names are refused") {
  const TemporaryFolder folder;
  REFUSES((Members{plain("a"), plain("b"), plain("a")}), "'a'", "twice");
  REFUSES((Members{plain("a"), plain("a/", "")}), "twice");
}

TEST_CASE("headers that disagree are refused") {
  const TemporaryFolder folder;
  REFUSES((Members{changed(plain("good"), [](auto& m) { m.local_name = "evil"; })}), "'good'", "'evil'");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.local_name = "ab"; })}), "'ab'");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.local_flags = 0; })}), "'a'", "flags");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.local_method = 8; })}), "'a'", "methods");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.local_crc32 = 1; })}), "'a'", "CRC32", "0x1");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.local_size = 3; })}), "'a'", "sizes");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.local_packed_size = 3; })}), "'a'", "sizes");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.local_size = 0; })}), "sizes");
  REFUSES((Members{changed(deflated("a", "text"), [](auto& m) { m.central_size = 5; })}), "sizes");
}

TEST_CASE("descriptors that disagree are refused") {
  const TemporaryFolder folder;
  for (int width : {4, 8}) {
    auto member = plain("a", "four");
    member.descriptor = width;
    CHECK(open_members(folder, {member, plain("b")}).members().size() == 2);
    std::string bytes = build_archive({member, plain("b")});
    const size_t descriptor = 30 + 1 + 4;
    for (size_t at : {descriptor, descriptor + 4, descriptor + 8, descriptor + 8 + static_cast<size_t>(width)}) {
      std::string broken = bytes;
      broken[at] = static_cast<char>(broken[at] ^ 1);
      EXPECT_ERROR(invalid_input, open_archive(folder, broken), "'a'", "descriptor");
    }
  }
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.flags |= 8; })}), "descriptor");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.descriptor = 4, m.local_crc32 = 7; })}), "CRC32");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.descriptor = 4, m.local_size = 7; })}), "sizes");
}

TEST_CASE("members that overlap are refused") {
  const TemporaryFolder folder;
  // Two entries with one header each, one body inside the other: the classic bomb.
  const std::string inner = build_archive({plain("b", "12")});
  auto outer = plain("a", inner.substr(0, 33));
  auto nested = plain("b", "12");
  const std::string probe = build_archive({outer});
  nested.central_offset = static_cast<uint32_t>(30 + 1);
  REFUSES((Members{outer, nested}), "overlap");
  // The same header for two entries of one name is a duplicate; of another name, a disagreement.
  REFUSES((Members{plain("a"), changed(plain("b"), [](auto& m) { m.central_offset = 0; })}), "'a' in its header");
}

TEST_CASE("members outside of the file are refused") {
  const TemporaryFolder folder;
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.central_offset = 1000; })}), "'a'", "outside");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.central_offset = 0xFFFFFFFE; })}), "'a'", "outside");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.central_offset = 2; })}), "no header");
  REFUSES((Members{changed(
              plain("a"),
              [](auto& m) { m.central_size = m.central_packed_size = m.local_size = m.local_packed_size = 1000; })}),
          "outside");
  REFUSES((Members{changed(plain("a"),
                           [](auto& m) {
                             m.central_size = m.central_packed_size = m.local_size = m.local_packed_size = 0xFFFFFFFF;
                             m.local_extra = m.central_extra = zip64_field({UINT64_MAX, UINT64_MAX});
                           })}),
          "outside");
  // A member whose data reach into the directory.
  REFUSES((Members{changed(
              plain("a"),
              [](auto& m) { m.central_size = m.central_packed_size = m.local_size = m.local_packed_size = 5; })}),
          "outside");
}

TEST_CASE("bytes that belong to no member are refused") {
  const TemporaryFolder folder;
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.after = "hidden"; }), plain("b")}), "belong to no member");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.after = "hidden"; })}), "belong to no member");
  auto second = plain("b");
  second.central_offset = 30 + 1 + 4 + 4;
  const std::string shifted =
      "junk" + build_archive({changed(plain("a"), [](auto& m) { m.central_offset = 4; }), second});
  EXPECT_ERROR(invalid_input, open_archive(folder, shifted), "a.zip");
  // A whole member that the directory leaves out.
  std::string hidden = build_archive({plain("a"), plain("b")});
  const std::string only_b = build_archive({changed(plain("b"), [](auto& m) { m.central_offset = 35; })});
  const std::string archive =
      hidden.substr(0, 70) + only_b.substr(35, 46 + 1) +
      build_archive({}, changed(ArchiveEnd{}, [](auto& e) { e.count = 1, e.size = 47, e.offset = 70; }));
  EXPECT_ERROR(invalid_input, open_archive(folder, archive), "belong to no member");
}

TEST_CASE("encryption, flags and methods that are unknown are refused") {
  const TemporaryFolder folder;
  for (int flag : {0x1, 0x40, 0x2000})
    REFUSES((Members{changed(plain("a"), [&](auto& m) { m.flags |= flag; })}), "encrypted");
  for (int flag : {0x2, 0x4, 0x10, 0x20, 0x80, 0x100, 0x200, 0x400, 0x1000, 0x4000, 0x8000})
    REFUSES((Members{changed(plain("a"), [&](auto& m) { m.flags |= flag; })}), "unknown flags");
  for (int method : {1, 6, 7, 9, 12, 14, 93, 95, 99, 65535})
    REFUSES((Members{changed(plain("a"), [&](auto& m) { m.method = method; })}), "method " + std::to_string(method));
  CHECK(open_members(folder, {changed(deflated("a", "text"), [](auto& m) { m.flags |= 6; })}).members().size() == 1);
}

TEST_CASE("dangerous names are refused") {
  const TemporaryFolder folder;
  for (const char* name : {"/etc/passwd", "//host/share", "C:/x", "c:x"}) REFUSES((Members{plain(name)}), "absolute");
  for (const char* name : {"..", "../x", "a/../../x", "a/..", "a/../"}) REFUSES((Members{plain(name, "")}), "'..'");
  for (const char* name : {"./x", "a/./x", "."}) REFUSES((Members{plain(name)}), "'.'");
  REFUSES((Members{plain("a//b")}), "''");
  REFUSES((Members{plain("a\\b")}), "backslash");
  REFUSES((Members{plain(std::string("a\0b", 3))}), "control", "\\x00");
  REFUSES((Members{plain("a\nb")}), "control", "\\x0a");
  REFUSES((Members{plain("")}), "empty");
  REFUSES((Members{plain("folder/", "data")}), "folder");
  for (const char* name : {"\xff",
                           "a\xc0\xaf"
                           "b",
                           "\xed\xa0\x80", "\xf5\x80\x80\x80", "cut\xe2\x82"})
    REFUSES((Members{plain(name)}), "not UTF-8");
  REFUSES((Members{changed(plain("\u00fc"), [](auto& m) { m.flags = 0; })}), "not marked as UTF-8");
  CHECK(open_members(folder, {changed(plain("ascii"), [](auto& m) { m.flags = 0; })}).members().size() == 1);
}

TEST_CASE("too many members are refused") {
  const TemporaryFolder folder;
  Members members(100'001);
  for (size_t i = 0; i < members.size(); ++i) members[i].name = std::to_string(i);
  ArchiveEnd end;
  end.zip64 = true;
  end.count = end.count_here = 0xFFFF;
  EXPECT_ERROR(invalid_input, open_members(folder, members, end), "100001 members", "100000");
  members.pop_back();
  CHECK(open_members(folder, members, end).members().size() == 100'000);
}

TEST_CASE("inconsistent Zip64 is refused") {
  const TemporaryFolder folder;
  const auto refuses_end = [&](auto change, const std::string& word) {
    ArchiveEnd end;
    end.zip64 = true;
    change(end);
    EXPECT_ERROR(invalid_input, open_members(folder, {plain("a")}, end), word);
  };
  refuses_end([](auto& e) { e.count64 = e.count_here64 = 2; }, "Zip64");
  refuses_end([](auto& e) { e.count_here64 = 0; }, "Zip64");
  refuses_end([](auto& e) { e.size64 = 1; }, "Zip64");
  refuses_end([](auto& e) { e.offset64 = UINT64_MAX; }, "Zip64");
  refuses_end([](auto& e) { e.length64 = 45; }, "Zip64");
  refuses_end([](auto& e) { e.locator64 = 0; }, "Zip64");
  refuses_end([](auto& e) { e.locator64 = UINT64_MAX; }, "Zip64");
  refuses_end([](auto& e) { e.offset = 0xFFFFFFFF, e.offset64 = UINT64_MAX - 10; }, "directory");
  refuses_end([](auto& e) { e.size = 0xFFFFFFFF, e.size64 = UINT64_MAX; }, "directory");
  refuses_end([](auto& e) { e.count = 0xFFFF, e.count64 = e.count_here64 = 2; }, "record");
  // Saturated values without the field, a field without saturated values, two fields, short and long ones.
  const auto saturated = [](auto& m) { m.central_size = m.central_packed_size = 0xFFFFFFFF; };
  REFUSES((Members{changed(plain("a"), saturated)}), "Zip64");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.central_extra = zip64_field({4, 4}); })}), "Zip64");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.local_extra = zip64_field({4, 5}); })}), "Zip64");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.local_extra = zip64_field({4}); })}), "Zip64");
  for (const std::vector<uint64_t>& values : {std::vector<uint64_t>{4}, {4, 4, 0}, {}})
    REFUSES((Members{changed(plain("a"), [&](auto& m) { saturated(m), m.central_extra = zip64_field(values); })}),
            "Zip64");
  REFUSES(
      (Members{changed(plain("a"),
                       [&](auto& m) { saturated(m), m.central_extra = zip64_field({4, 4}) + zip64_field({4, 4}); })}),
      "Zip64");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.local_size = 0xFFFFFFFF; })}), "Zip64");
  REFUSES((Members{changed(
              plain("a"),
              [](auto& m) { m.local_size = m.local_packed_size = 0xFFFFFFFF, m.local_extra = zip64_field({4, 5}); })}),
          "sizes");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.central_extra = "FB" + number_bytes(9, 2) + "short"; })}),
          "extra");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.local_extra = "FB"; })}), "extra");
}

TEST_CASE("an end that does not fit is refused") {
  const TemporaryFolder folder;
  const auto refuses_end = [&](auto change, const std::string& word) {
    ArchiveEnd end;
    change(end);
    EXPECT_ERROR(invalid_input, open_members(folder, {plain("a"), plain("b")}, end), "a.zip", word);
  };
  refuses_end([](auto& e) { e.count = 1; }, "belong to no member");
  refuses_end([](auto& e) { e.count = 3; }, "no directory record");
  refuses_end([](auto& e) { e.count_here = 1; }, "parts");
  refuses_end([](auto& e) { e.disk = 1; }, "parts");
  refuses_end([](auto& e) { e.disk = 0xFFFF; }, "Zip64");
  refuses_end([](auto& e) { e.offset = 3; }, "must end");
  refuses_end([](auto& e) { e.offset = 0xFFFFFFFF; }, "Zip64");
  refuses_end([](auto& e) { e.size = 3; }, "must end");
  refuses_end([](auto& e) { e.after = "x"; }, "bytes follow");
  refuses_end([](auto& e) { e.after = std::string(70'000, 'x'); }, "directory");
  refuses_end([](auto& e) { e.comment_length = 9; }, "cut off");
  refuses_end([](auto& e) { e.comment = build_archive({}); }, "two end records");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.central_disk = 1; })}), "another part");
}

TEST_CASE("what is no archive is told so") {
  const TemporaryFolder folder;
  EXPECT_ERROR(invalid_input, open_archive(folder, ""), "not a zip archive", "0 bytes");
  EXPECT_ERROR(invalid_input, open_archive(folder, "hello"), "not a zip archive");
  EXPECT_ERROR(invalid_input, open_archive(folder, std::string(100'000, 'x')), "not a zip archive");
  EXPECT_ERROR(usage, ZipReader::open(folder.file("absent.zip")), "absent.zip", "no such file");
  EXPECT_ERROR(usage, ZipReader::open(folder.path()), "directory");
  EXPECT_ERROR(invalid_input, ZipReader::open("/dev/null"), "device");
}

TEST_CASE("a wrong CRC32 names the member") {
  const TemporaryFolder folder;
  const auto wrong = changed(plain("data/weight_3"), [](auto& m) { m.central_crc32 = m.local_crc32 = 5; });
  const ZipReader zip = open_members(folder, {plain("a"), wrong});
  EXPECT_ERROR(invalid_input, zip.view(zip.members()[1]), "'data/weight_3'", "CRC32", "0x5");
  EXPECT_ERROR(invalid_input, zip.read_text(zip.members()[1], 100), "'data/weight_3'", "CRC32");
  EXPECT_ERROR(invalid_input, zip.read_bytes(zip.members()[1], 100), "'data/weight_3'", "CRC32");
  CHECK(zip.view(zip.members()[0]).size() == 4);
}

TEST_CASE("tensor members must be stored") {
  const TemporaryFolder folder;
  const ZipReader zip = open_members(folder, {deflated("data/weight_0", "0000")});
  EXPECT_ERROR(invalid_input, zip.view(zip.members()[0]), "'data/weight_0'", "deflated", "stored");
}

TEST_CASE("bombs are refused") {
  const TemporaryFolder folder;
  const std::string zeros(1 << 20, '\0');
  const ZipReader zip = open_members(folder, {deflated("model.json", zeros), plain("big", zeros)});
  EXPECT_ERROR(invalid_input, zip.read_text(zip.members()[0], 1 << 30), "'model.json'", "100 times");
  EXPECT_ERROR(invalid_input, zip.read_text(zip.members()[1], 1000), "'big'", "at most 1000");
  EXPECT_ERROR(invalid_input, zip.read_bytes(zip.members()[0], 1000), "at most 1000");
  CHECK(zip.read_bytes(zip.members()[0], 1 << 20).size() == zeros.size());
  // More than deflate can hold is refused before memory is asked for.
  REFUSES((Members{changed(deflated("a", "xxxx"), [](auto& m) { m.central_size = m.local_size = 0x7FFFFFFF; })}),
          "1032 times");
  REFUSES((Members{changed(plain("a"), [](auto& m) { m.central_size = m.local_size = 400; })}), "'a'", "stored", "400");
}

TEST_CASE("broken deflate streams are refused") {
  const TemporaryFolder folder;
  const std::string text = "some text, some text, some text";
  const std::string packed = deflate_text(text);
  const auto read = [&](const std::string& stream, uint32_t size) {
    const ZipReader zip = open_members(folder, {changed(deflated("a", text), [&](auto& m) {
                                         m.packed = stream;
                                         m.local_size = m.central_size = size;
                                       })});
    return zip.read_text(zip.members()[0], 1000);
  };
  const auto size = static_cast<uint32_t>(text.size());
  CHECK(read(packed, size) == text);
  EXPECT_ERROR(invalid_input, read(packed, size - 1), "'a'", "more than");
  EXPECT_ERROR(invalid_input, read(packed, size + 1), "'a'");
  EXPECT_ERROR(invalid_input, read(packed + "x", size), "'a'");
  EXPECT_ERROR(invalid_input, read(packed.substr(0, packed.size() - 1), size), "'a'");
  EXPECT_ERROR(invalid_input, read("\xff\xff\xff", size), "'a'", "not a deflate stream");
  EXPECT_ERROR(invalid_input, read("", size), "100 times");
}

TEST_CASE("an archive cut off anywhere is refused") {
  const TemporaryFolder folder;
  auto member = plain("data/0", std::string(64, 'd'));
  member.descriptor = 4;
  ArchiveEnd end;
  end.zip64 = true;
  const std::string bytes = build_archive({member, deflated("text", "text text text"), plain("last", "l")}, end);
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_ERROR(invalid_input, open_archive(folder, bytes.substr(0, length)), "a.zip");
  CHECK(open_archive(folder, bytes).members().size() == 3);
}

TEST_CASE("an archive with any byte changed is read rightly or refused") {
  const TemporaryFolder folder;
  auto member = plain("data/0", std::string(64, 'd'));
  member.descriptor = 4;
  const std::string bytes = build_archive({member, deflated("text", "text text text"), plain("last", "l")});
  const std::string truth = read_all(open_archive(folder, bytes));
  for (size_t at = 0; at < bytes.size(); ++at)
    for (int change : {0x01, 0x80, 0xFF}) {
      std::string broken = bytes;
      broken[at] = static_cast<char>(broken[at] ^ change);
      std::string seen;
      try {
        seen = read_all(open_archive(folder, broken));
      } catch (const Error& error) {
        CHECK_MESSAGE(error.kind() == ErrorKind::invalid_input, std::string(error.what()));
        continue;
      }
      // Times, versions and attributes mean nothing here; everything else must have been noticed.
      CHECK_MESSAGE(seen == truth, "byte ", at, " changed by ", change);
    }
}

TEST_CASE("a file that changes while it is read is refused") {
  const TemporaryFolder folder;
  const std::string bytes = build_archive({plain("a", "before")});
  const ZipReader zip = open_archive(folder, bytes);
  std::string later = bytes;
  later[31] = 'X';
  const auto time = std::filesystem::last_write_time(zip.file()->path());
  std::ofstream(zip.file()->path(), std::ios::binary | std::ios::in) << later;
  std::filesystem::last_write_time(zip.file()->path(), time + std::chrono::seconds(1));
  EXPECT_ERROR(invalid_input, zip.view(zip.members()[0]), "changed while it was read");
  const ZipReader grown = open_archive(folder, bytes);
  std::ofstream(zip.file()->path(), std::ios::binary | std::ios::app) << "more";
  EXPECT_ERROR(invalid_input, grown.read_text(grown.members()[0], 100), "changed while it was read");
}

TEST_CASE("another file under the same name does not disturb a reader") {
  const TemporaryFolder folder;
  const ZipReader zip = open_archive(folder, build_archive({plain("a", "old")}));
  write_file(folder.file("a.zip"), build_archive({plain("a", "new")}));
  CHECK(zip.read_text(zip.members()[0], 10) == "old");
  CHECK(read_all(ZipReader::open(folder.file("a.zip"))) == "a=new;");
}
