#include "lissome/base/npy.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "lissome/base/archive_test_builder.h"
#include "lissome/base/dispatch.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

std::string build_npy(const std::string& header, const std::string& data, int version = 1) {
  std::string text = header;
  text.append((64 - (10 + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  return "\x93NUMPY" + std::string{static_cast<char>(version), '\0'} + number_bytes(text.size(), version == 1 ? 2 : 4) +
         text + data;
}

std::string describe(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Array parse(const std::string& bytes) { return parse_npy(std::as_bytes(std::span(bytes)), "a.npy", nullptr); }

template <typename T>
std::vector<T> values_of(const Array& array) {
  return {array.data<T>(), array.data<T>() + array.elements()};
}

template <typename T>
NamedArray make_named(const std::string& name, Dtype dtype, Sizes sizes, const std::vector<T>& values) {
  NamedArray named{name, make_array(dtype, std::move(sizes))};
  std::memcpy(named.array.storage.get(), values.data(), values.size() * sizeof(T));
  return named;
}

}  // namespace

TEST_CASE("a .npy in C order, Fortran order and big endian") {
  const std::vector<float> data = {0, 1, 2, 3, 4, 5};
  const Array c = parse(build_npy(describe("<f4", "(2, 3)"), bytes_of(data)));
  CHECK(c.dtype == Dtype::f32);
  CHECK(c.sizes == Sizes{2, 3});
  CHECK(values_of<float>(c) == data);
  CHECK(values_of<float>(parse(build_npy(describe("<f4", "(3, 2)", true), bytes_of(data)))) ==
        std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(values_of<uint16_t>(parse(build_npy(describe(">u2", "(2,)"), std::string("\x01\x02\x03\x04", 4)))) ==
        std::vector<uint16_t>{0x0102, 0x0304});
  const std::string swapped("\x3f\x80\x00\x00\x40\x00\x00\x00", 8);
  CHECK(parse(build_npy(describe(">c8", "()"), swapped)).data<std::complex<float>>()[0] == std::complex<float>(1, 2));
  CHECK(values_of<float>(parse(build_npy(describe(">f4", "(1, 2)", true), swapped))) == std::vector<float>{1, 2});
}

TEST_CASE("single numbers, empty arrays and all header versions") {
  CHECK(parse(build_npy(describe("<i8", "()"), bytes_of<int64_t>({7}))).sizes.empty());
  const Array empty = parse(build_npy(describe("<f4", "(0, 3)"), ""));
  CHECK(empty.sizes == Sizes{0, 3});
  CHECK(empty.elements() == 0);
  for (int version : {1, 2, 3})
    CHECK(parse(build_npy(describe("|u1", "(1,)"), "x", version)).data<uint8_t>()[0] == 'x');
  CHECK(parse(build_npy("{\"shape\":(1,),\"descr\":\"|u1\",\"fortran_order\":False}", "x")).elements() == 1);
  CHECK(std::isnan(parse(build_npy(describe("<f4", "(1,)"), bytes_of<float>({NAN}))).data<float>()[0]));
}

TEST_CASE("headers that are not NumPy's are refused") {
  for (const char* header :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (05, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "__import__('os').system('true')",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}"})
    EXPECT_ERROR(invalid_input, parse(build_npy(header, "0000")), "a.npy");
  std::string axes = "(";
  for (int i = 0; i < 65; ++i) axes += "1,";
  EXPECT_ERROR(invalid_input, parse(build_npy(describe("<f4", axes + ")"), "0000")), "more than 64 dimensions");
}

TEST_CASE("types that lissome has not are refused by name") {
  const auto refuses = [](const std::string& descr, const std::string& word) {
    EXPECT_ERROR(invalid_input, parse(build_npy(describe(descr, "(1,)"), "00000000")), "a.npy", descr, word);
  };
  refuses("|O", "Python objects");
  refuses("<U3", "strings");
  refuses("|S3", "strings");
  refuses("<M8[ns]", "dates");
  refuses("|V2", "raw bytes");
  refuses("<f16", "no type");
  refuses("<i3", "no type");
  refuses("!f4", "no type");
  refuses("", "no type");
  EXPECT_ERROR(invalid_input,
               parse(build_npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "0000")),
               "named fields");
}

TEST_CASE("lengths must fit") {
  EXPECT_ERROR(invalid_input, parse(build_npy(describe("<f4", "(3,)"), "00000000")), "f32[3]", "12 bytes",
               "8 are there");
  EXPECT_ERROR(invalid_input, parse(build_npy(describe("<f4", "(1,)"), "00000000")), "4 bytes", "8 are there");
  EXPECT_ERROR(invalid_input, parse(build_npy(describe("<f8", "(4611686018427387904, 2)"), "")), "overflow");
  EXPECT_ERROR(invalid_input, parse(build_npy(describe("<f8", "(4611686018427387904,)"), "")), "overflow");
  EXPECT_ERROR(invalid_input, parse(build_npy(describe("|b1", "(2,)"), std::string("\1\2", 2))), "element 1", "2");
  const std::string bytes = build_npy(describe("<f4", "(2,)"), "00000000");
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_ERROR(invalid_input, parse(bytes.substr(0, length)), "a.npy");
  EXPECT_ERROR(invalid_input, parse("\x93NUMPY" + std::string("\x09\0", 2) + bytes.substr(8)), "version 9.0");
}

TEST_CASE("arrays of every dtype survive an .npz") {
  const TemporaryFolder folder;
  std::vector<NamedArray> arrays;
  for (Dtype dtype : {Dtype::u8, Dtype::i8, Dtype::i16, Dtype::i32, Dtype::i64, Dtype::f16, Dtype::f32, Dtype::f64,
                      Dtype::boolean, Dtype::c64, Dtype::c128, Dtype::u16, Dtype::u32, Dtype::u64}) {
    NamedArray named{"array." + std::string(dtype_name(dtype)), make_array(dtype, {2, 3})};
    auto* bytes = named.array.data<uint8_t>();
    for (int64_t i = 0; i < named.array.bytes(); ++i)
      bytes[i] = dtype == Dtype::boolean ? i % 2 : static_cast<uint8_t>(i * 7);
    arrays.push_back(named);
  }
  arrays.push_back({"scalar", make_array(Dtype::f32, {})});
  arrays.push_back({"empty", make_array(Dtype::f32, {0, 4})});
  arrays.push_back({"one", make_array(Dtype::f32, {5})});
  save_arrays(folder.file("a.npz"), arrays);
  const auto loaded = load_arrays(folder.file("a.npz"));
  REQUIRE(loaded.size() == arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    CHECK(loaded[i].name == arrays[i].name);
    CHECK(loaded[i].array.dtype == arrays[i].array.dtype);
    CHECK(loaded[i].array.sizes == arrays[i].array.sizes);
    CHECK(reinterpret_cast<uintptr_t>(loaded[i].array.storage.get()) % 64 == 0);
    CHECK(std::memcmp(loaded[i].array.storage.get(), arrays[i].array.storage.get(),
                      static_cast<size_t>(arrays[i].array.bytes())) == 0);
  }
}

TEST_CASE("an archive is not written with names that its reader refuses") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.npz");
  for (const std::string name : {"../x", "/etc/x", "a\\b", "a\x1b]0;b", "a//b", "\xff"}) {
    const auto named = make_named<float>(name, Dtype::f32, {1}, {1});
    EXPECT_ERROR(invalid_input, save_arrays(path, {named}), "an .npz cannot hold", "name");
  }
  EXPECT_ERROR(invalid_input, save_arrays(path, {make_named<float>(std::string(1001, 'a'), Dtype::f32, {1}, {1})}),
               "1001 bytes");
  CHECK_THROWS(load_arrays(path));  // no file is there
}

TEST_CASE("what NumPy has no type for is written wider") {
  const TemporaryFolder folder;
  const auto brain = make_named<uint16_t>("b", Dtype::bf16, {2}, {0x3F80, 0x4000});
  const auto halves = make_named<uint16_t>("h", Dtype::c32, {1}, {0x3C00, 0x4000});
  save_arrays(folder.file("a.npz"), {brain, halves});
  const auto loaded = load_arrays(folder.file("a.npz"));
  CHECK(values_of<float>(loaded[0].array) == std::vector<float>{1, 2});
  CHECK(loaded[1].array.dtype == Dtype::c64);
  CHECK(loaded[1].array.data<std::complex<float>>()[0] == std::complex<float>(1, 2));
}

TEST_CASE("an .npz with deflated members, and a single .npy") {
  const TemporaryFolder folder;
  const std::string npy = build_npy(describe("<f4", "(1000,)"), std::string(4000, '\0'));
  ArchiveMember member;
  member.name = "zeros.npy";
  member.data = npy;
  member.method = 8;
  const auto loaded = load_arrays(folder.write("a.npz", build_archive({member})));
  REQUIRE(loaded.size() == 1);
  CHECK(loaded[0].name == "zeros");
  CHECK(loaded[0].array.elements() == 1000);
  const auto single = load_arrays(folder.write("images.npy", npy));
  CHECK(single[0].name == "images");
  CHECK(single[0].array.elements() == 1000);
  // Behind the mapping the file may go, the array stays.
  std::filesystem::remove(folder.file("images.npy"));
  CHECK(single[0].array.data<float>()[999] == 0);
}

TEST_CASE("files that hold no arrays are refused") {
  const TemporaryFolder folder;
  EXPECT_ERROR(usage, load_arrays(folder.file("absent.npz")), "absent.npz");
  EXPECT_ERROR(invalid_input, load_arrays(folder.write("a.npz", "")), "a.npz", "empty");
  EXPECT_ERROR(invalid_input, load_arrays(folder.write("a.npz", "hello")), "neither");
  ArchiveMember member;
  member.name = "readme.txt";
  member.data = "hello";
  EXPECT_ERROR(invalid_input, load_arrays(folder.write("a.npz", build_archive({member}))), "a.npz", "'readme.txt'");
  member.name = "x.npy";
  EXPECT_ERROR(invalid_input, load_arrays(folder.write("a.npz", build_archive({member}))), "a.npz", "'x.npy'",
               "not a .npy");
  member.data = build_npy(describe("|O", "(1,)"), "pickle");
  EXPECT_ERROR(invalid_input, load_arrays(folder.write("a.npz", build_archive({member}))), "'x.npy'", "pickle");
  member.data = build_npy(describe("<f4", "(2,)"), "00000000");
  member.central_crc32 = member.local_crc32 = 1;
  EXPECT_ERROR(invalid_input, load_arrays(folder.write("a.npz", build_archive({member}))), "'x.npy'", "CRC32");
}
