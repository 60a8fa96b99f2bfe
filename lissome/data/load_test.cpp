#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "lissome/data.h"
#include "lissome/data/data_test_files.h"
#include "lissome/data/idx.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

std::string write_npz(const TemporaryFolder& folder, const std::vector<NamedArray>& arrays) {
  save_arrays(folder.file("d.npz"), arrays);
  return folder.file("d.npz");
}

// Three images of 2 x 2 and their labels, as the folder of a dataset.
void write_images(const TemporaryFolder& folder, const std::string& part, bool packed) {
  const std::string images = build_idx(8, {3, 2, 2}, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c");
  const std::string labels = build_idx(8, {3}, std::string("\x02\x00\x01", 3));
  folder.write(part + "-images-idx3-ubyte" + (packed ? ".gz" : ""), packed ? gzip_text(images) : images);
  folder.write(part + "-labels-idx1-ubyte" + (packed ? ".gz" : ""), packed ? gzip_text(labels) : labels);
}

}  // namespace

TEST_CASE("a dataset from an .npz, with labels by name") {
  const TemporaryFolder folder;
  const std::string path = write_npz(folder, {{"x", make_array(Dtype::f32, {4, 3})},
                                              {"mask", make_array(Dtype::boolean, {4})},
                                              {"y", make_values<uint8_t>(Dtype::u8, {4, 1}, {3, 1, 0, 2})}});
  const Dataset dataset = load_dataset(path, {.labels = "y"});
  CHECK(dataset.samples() == 4);
  REQUIRE(dataset.columns.size() == 2);
  CHECK(dataset.columns[0].name == "x");
  CHECK(dataset.columns[0].sample_sizes == Sizes{3});
  CHECK(dataset.columns[1].sample_sizes.empty());
  REQUIRE(dataset.labels.has_value());
  CHECK(dataset.labels->dtype == Dtype::i64);
  CHECK(dataset.labels->sizes == Sizes{4});
  CHECK(values_of<int64_t>(*dataset.labels) == std::vector<int64_t>{3, 1, 0, 2});
  CHECK(load_dataset(path).columns.size() == 3);
  CHECK_FALSE(load_dataset(path).labels.has_value());
}

TEST_CASE("a dataset from a .safetensors file") {
  const TemporaryFolder folder;
  save_safetensors(folder.file("d.safetensors"), {{"x", make_values<float>(Dtype::f32, {2, 2}, {1, 2, 3, 4})},
                                                  {"y", make_values<int64_t>(Dtype::i64, {2}, {1, 0})}});
  const Dataset dataset = load_dataset(folder.file("d.safetensors"), {.labels = "y"});
  CHECK(values_of<float>(take_batch(dataset, 1, 1)[0].array) == std::vector<float>{3, 4});
  CHECK(values_of<int64_t>(*dataset.labels) == std::vector<int64_t>{1, 0});
  EXPECT_ERROR(usage, load_dataset(folder.file("d.safetensors"), {.labels = "z"}), "'z'", "x, y");
  EXPECT_ERROR(invalid_input, load_dataset(folder.write("b.safetensors", "hello, this is no data")), "b.safetensors");
}

TEST_CASE("float labels stay targets") {
  const TemporaryFolder folder;
  const std::string path =
      write_npz(folder, {{"x", make_array(Dtype::f32, {2, 3})}, {"y", make_array(Dtype::f32, {2, 5})}});
  CHECK(load_dataset(path, {.labels = "y"}).labels->sizes == Sizes{2, 5});
}

TEST_CASE("data that is wrong as a whole is refused") {
  const TemporaryFolder folder;
  const NamedArray x{"x", make_array(Dtype::f32, {4, 3})};
  const auto refuses = [&](const std::vector<NamedArray>& arrays, const std::string& word,
                           const std::string& other = "") {
    EXPECT_ERROR(invalid_input, load_dataset(write_npz(folder, arrays), {.labels = arrays.size() > 1 ? "y" : ""}),
                 "d.npz", word, other);
  };
  const Dataset many = load_dataset(write_npz(folder, {x, {"y", make_array(Dtype::i32, {4, 2})}}), {.labels = "y"});
  CHECK(many.labels->dtype == Dtype::i64);
  CHECK(many.labels->sizes == Sizes{4, 2});
  const Dataset column = load_dataset(write_npz(folder, {x, {"y", make_array(Dtype::i64, {4, 1})}}), {.labels = "y"});
  CHECK(column.labels->sizes == Sizes{4});
  refuses({}, "no arrays");
  refuses({{"x", make_array(Dtype::f32, {0, 3})}}, "'x'", "no samples");
  refuses({{"x", make_array(Dtype::f32, {3, 0})}}, "'x'", "without elements");
  refuses({{"x", make_array(Dtype::f32, {})}}, "'x'", "single number");
  refuses({x, {"y", make_array(Dtype::i64, {5})}}, "i64[5]", "4 samples");
  refuses({x, {"y", make_array(Dtype::i64, {})}}, "i64[]");
  refuses({x, {"y", make_array(Dtype::c64, {4})}}, "c64[4]", "integers");
  refuses({x, {"y", make_values<float>(Dtype::f32, {4}, {0, 1, NAN, 3})}}, "nan", "element 2");
  EXPECT_ERROR(invalid_input, load_dataset(write_npz(folder, {x, {"m", make_array(Dtype::f32, {5})}})), "'x'",
               "4 samples", "'m'", "5");
  const Dataset both = load_dataset(write_npz(folder, {x}), {.labels = "x"});
  CHECK(both.columns.at(0).name == "x");
  CHECK(both.labels.value().sizes == x.array.sizes);
  CHECK(both.notes.at(0).find("the only array") != std::string::npos);
  EXPECT_ERROR(usage, load_dataset(write_npz(folder, {x, {"label", x.array}}), {.labels = "labels"}), "'labels'",
               "x, label", "Did you mean label?");
}

TEST_CASE("paths that are no data are refused") {
  const TemporaryFolder folder;
  EXPECT_ERROR(usage, load_dataset(folder.file("absent.npz")), "absent.npz", "no such file");
  EXPECT_ERROR(usage, load_dataset(folder.file("absent:test")), "no such file");
  EXPECT_ERROR(invalid_input, load_dataset(folder.path()), "neither IDX files", ".npz");
  EXPECT_ERROR(invalid_input, load_dataset(folder.write("a.txt", "hello")), "a.txt", "neither");
  EXPECT_ERROR(invalid_input, load_dataset("/dev/zero"), "device");
  // Billions of samples of nothing, in twelve bytes.
  EXPECT_ERROR(invalid_input, load_dataset(folder.write("n", build_idx(8, {0xFFFFFFFF, 0}, ""))), "without elements");
}

TEST_CASE("IDX: a folder and its parts, packed or plain") {
  for (bool packed : {true, false}) {
    const TemporaryFolder folder;
    write_images(folder, "train", packed);
    write_images(folder, "t10k", packed);
    const Dataset dataset = load_dataset(folder.path() + ":test");
    CHECK(dataset.samples() == 3);
    CHECK(dataset.is_images);
    CHECK(dataset.columns[0].array.dtype == Dtype::u8);
    CHECK(dataset.columns[0].sample_sizes == Sizes{2, 2});
    CHECK(values_of<int64_t>(*dataset.labels) == std::vector<int64_t>{2, 0, 1});
    CHECK(load_dataset(folder.path() + ":train").samples() == 3);
    CHECK(load_dataset(folder.path() + "/:train", {.labels = "labels"}).samples() == 3);
    EXPECT_ERROR(usage, load_dataset(folder.path()), ":train", ":test");
    EXPECT_ERROR(usage, load_dataset(folder.path() + ":validation"), "'validation'", "train and test");
  }
}

TEST_CASE("IDX: a file takes the labels beside it") {
  const TemporaryFolder folder;
  write_images(folder, "t10k", true);
  const std::string images = folder.file("t10k-images-idx3-ubyte.gz");
  CHECK(load_dataset(images).labels->elements() == 3);
  const std::string other = folder.write("other", build_idx(8, {3}, "\x09\x09\x09"));
  CHECK(load_dataset(images, {.labels = other}).labels->data<int64_t>()[0] == 9);
  EXPECT_ERROR(usage, load_dataset(images, {.labels = "absent"}), "'absent'");
  EXPECT_ERROR(invalid_input, load_dataset(images, {.labels = folder.write("two", build_idx(8, {2}, "xx"))}),
               "3 samples");
  std::filesystem::remove(folder.file("t10k-labels-idx1-ubyte.gz"));
  CHECK_FALSE(load_dataset(images).labels.has_value());
  EXPECT_ERROR(usage, load_dataset(images, {.labels = "labels"}), "no label file");
}

TEST_CASE("IDX: every type, big endian") {
  const TemporaryFolder folder;
  const auto load = [&](const std::string& bytes) { return load_idx(folder.write("i", bytes)); };
  CHECK(values_of<int8_t>(load(build_idx(9, {2}, "\xff\x01"))) == std::vector<int8_t>{-1, 1});
  CHECK(values_of<int16_t>(load(build_idx(11, {1}, "\x01\x02"))) == std::vector<int16_t>{0x0102});
  CHECK(values_of<int32_t>(load(build_idx(12, {1}, std::string("\0\1\2\3", 4)))) == std::vector<int32_t>{0x010203});
  CHECK(values_of<float>(load(build_idx(13, {1, 1}, std::string("\x3f\x80\0\0", 4)))) == std::vector<float>{1});
  CHECK(values_of<double>(load(build_idx(14, {1}, std::string("\x3f\xf0\0\0\0\0\0\0", 8)))) == std::vector<double>{1});
}

TEST_CASE("IDX: broken files are refused") {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& bytes, const std::string& word = "") {
    EXPECT_ERROR(invalid_input, load_idx(folder.write("i.gz", bytes)), "i.gz", word);
  };
  const std::string good = build_idx(8, {3, 2}, "abcdef");
  refuses(build_idx(10, {3}, "abc"), "type 10");
  refuses(build_idx(8, {}, ""), "0 dimensions");
  refuses(build_idx(8, {3}, "ab"), "3 bytes, and the file has 2");
  refuses(build_idx(8, {1}, "ab"), "1 bytes, and the file has 2");
  refuses(build_idx(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "ab"), "overflow");
  for (size_t length = 0; length < good.size(); ++length) refuses(good.substr(0, length));
  const std::string packed = gzip_text(good);
  for (size_t length = 2; length < packed.size(); ++length) refuses(packed.substr(0, length));
  refuses(packed + packed, "gzip");
  refuses(packed + "x", "gzip");
  std::string bomb = packed;
  bomb.replace(bomb.size() - 4, 4, "\xff\xff\xff\x7f");
  refuses(bomb, "claims");
  EXPECT_ERROR(invalid_input, load_dataset(folder.write("d.gz", gzip_text("hello, this is no data"))),
               "not an IDX file");
}
