#include "lissome/base/safetensors.h"

#include <doctest/doctest.h>

#include <cstring>

#include "lissome/base/archive_test_builder.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

std::string build_safetensors(const std::string& header, const std::string& data) {
  return number_bytes(header.size(), 8) + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, int begin, int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

}  // namespace

TEST_CASE("arrays survive safetensors") {
  const TemporaryFolder folder;
  std::vector<NamedArray> arrays;
  for (Dtype dtype : {Dtype::f32, Dtype::boolean, Dtype::bf16, Dtype::i64, Dtype::f16, Dtype::c64, Dtype::u8}) {
    NamedArray named{std::string(dtype_name(dtype)), make_array(dtype, {3, 2})};
    for (int64_t i = 0; i < named.array.bytes(); ++i) named.array.data<uint8_t>()[i] = static_cast<uint8_t>(i % 2);
    arrays.push_back(named);
  }
  arrays.push_back({"scalar", make_array(Dtype::f32, {})});
  arrays.push_back({"empty", make_array(Dtype::f32, {0})});
  save_safetensors(folder.file("a"), arrays);
  const auto loaded = load_safetensors(folder.file("a"));
  REQUIRE(loaded.size() == arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    CHECK(loaded[i].name == arrays[i].name);
    CHECK(loaded[i].array.dtype == arrays[i].array.dtype);
    CHECK(loaded[i].array.sizes == arrays[i].array.sizes);
    CHECK(std::memcmp(loaded[i].array.storage.get(), arrays[i].array.storage.get(),
                      static_cast<size_t>(arrays[i].array.bytes())) == 0);
  }
  EXPECT_ERROR(unsupported, save_safetensors(folder.file("b"), {{"x", make_array(Dtype::c128, {1})}}), "'x'", "c128");
  EXPECT_ERROR(invalid_input, save_safetensors(folder.file("b"), {arrays[0], arrays[0]}), "unique");
}

TEST_CASE("metadata and unaligned arrays are read") {
  const TemporaryFolder folder;
  const auto loaded = load_safetensors(
      folder.write("a", build_safetensors("{\"__metadata__\":{\"format\":\"pt\"}," + entry("a", "U8", "[1]", 0, 1) +
                                              "," + entry("b", "F32", "[1]", 1, 5) + "}   ",
                                          std::string("\x07\x00\x00\x80\x3f", 5))));
  REQUIRE(loaded.size() == 2);
  CHECK(loaded[1].array.data<float>()[0] == 1.0f);
}

TEST_CASE("broken safetensors are refused") {
  const TemporaryFolder folder;
  const auto load = [&](const std::string& bytes) { return load_safetensors(folder.write("a.st", bytes)); };
  const auto refuses = [&](const std::string& header, const std::string& data, const std::string& word) {
    EXPECT_ERROR(invalid_input, load(build_safetensors(header, data)), "a.st", word);
  };
  EXPECT_ERROR(invalid_input, load(""), "not a safetensors file");
  EXPECT_ERROR(invalid_input, load(number_bytes(UINT64_MAX, 8) + "{}"), "header");
  EXPECT_ERROR(invalid_input, load(number_bytes(200'000'000, 8) + "{}"), "header");
  EXPECT_ERROR(invalid_input, load(number_bytes(3, 8) + "{}"), "header");
  refuses("[]", "", "JSON object");
  refuses("{\"a\":", "", "line 1");
  refuses("{\"a\":1}", "", "'a'");
  refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", "0000", "data_offsets");
  refuses("{" + entry("a", "F32", "[1]", 0, 4) + "," + entry("a", "F32", "[1]", 4, 8) + "}", "00000000", "twice");
  refuses("{" + entry("a", "F4", "[1]", 0, 4) + "}", "0000", "'F4'");
  refuses("{" + entry("a", "F32", "[-1]", 0, 4) + "}", "0000", "whole numbers");
  refuses("{" + entry("a", "F32", "[1.5]", 0, 4) + "}", "0000", "whole numbers");
  refuses("{" + entry("a", "F32", "[18446744073709551615]", 0, 4) + "}", "0000", "size");
  refuses("{" + entry("a", "F32", "[2]", 0, 4) + "}", "0000", "8 bytes");
  refuses("{" + entry("a", "F32", "[1]", 0, 8) + "}", "0000", "4 are there");
  refuses("{" + entry("a", "F32", "[1]", 4, 0) + "}", "0000", "bytes 4 to 0");
  refuses("{" + entry("a", "F32", "[4611686018427387904,4]", 0, 4) + "}", "0000", "overflow");
  refuses("{" + entry("a", "F32", "[1]", 0, 4) + "," + entry("b", "F32", "[1]", 0, 4) + "}", "0000", "overlaps");
  refuses("{" + entry("a", "F32", "[1]", 0, 4) + "," + entry("b", "F32", "[1]", 8, 12) + "}", "000000000000", "gaps");
  refuses("{" + entry("a", "F32", "[1]", 0, 4) + "}", "00000000", "8 bytes of data");
  refuses("{" + entry("a", "BOOL", "[1]", 0, 1) + "}", "\x02", "'a'");
}
