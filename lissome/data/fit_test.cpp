#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "lissome/data.h"
#include "lissome/data/data_test_files.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

Dataset make_dataset(const std::vector<NamedArray>& arrays) {
  const TemporaryFolder folder;
  save_arrays(folder.file("d.npz"), arrays);
  return load_dataset(folder.file("d.npz"));
}

Dataset make_images(const std::vector<uint8_t>& bytes) {
  const TemporaryFolder folder;
  const auto samples = static_cast<uint32_t>(bytes.size() / 4);
  return load_dataset(folder.write("i", build_idx(8, {samples, 2, 2}, std::string(bytes.begin(), bytes.end()))));
}

DataSignature make_input(const std::string& name, Dtype dtype, Sizes sizes) {
  DataSignature input;
  input.name = name;
  input.dtype = dtype;
  input.sizes = std::move(sizes);
  return input;
}

std::vector<NamedArray> fit_one(const NamedArray& array, const DataSignature& input,
                                std::vector<std::string>* notes = nullptr) {
  std::vector<std::string> unused;
  return fit_inputs({array}, {&input, 1}, "x.npz", notes != nullptr ? notes : &unused);
}

const DataSignature kFloat = make_input("x", Dtype::f32, {-1, 2});

}  // namespace

TEST_CASE("arrays go to inputs by name, whatever their order") {
  const Dataset dataset = make_dataset({{"b", make_array(Dtype::i64, {3})},
                                        {"extra", make_array(Dtype::f32, {3})},
                                        {"a", make_array(Dtype::f32, {3, 2})}});
  const DataSignature inputs[] = {make_input("a", Dtype::f32, {-1, 2}), make_input("b", Dtype::i64, {-1})};
  const Dataset fitted = fit_dataset(dataset, inputs);
  REQUIRE(fitted.columns.size() == 2);
  CHECK(fitted.columns[0].name == "a");
  CHECK(fitted.columns[1].array.dtype == Dtype::i64);
  REQUIRE(fitted.notes.size() == 1);
  CHECK(fitted.notes[0].find("'extra'") != std::string::npos);
}

TEST_CASE("names that fit nothing are matched where types and sizes leave one way") {
  const Dataset dataset = make_dataset({{"q", make_array(Dtype::i64, {3})}, {"p", make_array(Dtype::f32, {3, 2})}});
  const DataSignature inputs[] = {make_input("a", Dtype::f32, {-1, 2}), make_input("b", Dtype::i64, {-1})};
  const Dataset fitted = fit_dataset(dataset, inputs);
  CHECK(fitted.columns[0].array.dtype == Dtype::f32);
  CHECK(fitted.columns[1].array.dtype == Dtype::i64);
  REQUIRE(fitted.notes.size() == 1);
  CHECK(fitted.notes[0].find("'p' feeds input 'a', 'q' feeds input 'b'") != std::string::npos);
  EXPECT_ERROR(invalid_input, fit_dataset(dataset, std::span(inputs).first(1)), "2 arrays (q i64[3], p f32[3, 2])",
               "1 input (a f32[any, 2])", "labels");
  const DataSignature alike[] = {make_input("a", Dtype::f32, {-1, 2}), make_input("b", Dtype::f32, {-1, 2})};
  const Dataset two = make_dataset({{"p", make_array(Dtype::f32, {3, 2})}, {"q", make_array(Dtype::f32, {3, 2})}});
  const DataSignature half[] = {make_input("p", Dtype::f32, {-1, 2}), make_input("b", Dtype::i64, {-1})};
  EXPECT_ERROR(invalid_input, fit_dataset(dataset, half), "q i64[3]", "b i64[any]");
  EXPECT_ERROR(invalid_input, fit_dataset(two, alike), "p f32[3, 2], q f32[3, 2]", "a f32[any, 2], b f32[any, 2]");
}

TEST_CASE("the ends of names decide where only one pairing is possible") {
  const Array one = make_values<float>(Dtype::f32, {1}, {1}), two = make_values<float>(Dtype::f32, {1}, {2});
  const DataSignature inputs[] = {make_input("a.ids", Dtype::f32, {-1}), make_input("b.mask", Dtype::f32, {-1})};
  std::vector<std::string> notes;
  CHECK(fit_inputs({{"mask", two}, {"ids", one}}, inputs, "x.npz", &notes)[0].array.data<float>()[0] == 1);
  CHECK(fit_inputs({{"x.b.mask", two}, {"x.a.ids", one}}, inputs, "x.npz", &notes)[0].array.data<float>()[0] == 1);
  EXPECT_ERROR(invalid_input, fit_inputs({{"b.ids", two}, {"a.mask", one}}, inputs, "x.npz", &notes), "b.ids", "a.ids");
  const DataSignature same[] = {make_input("a.ids", Dtype::f32, {-1}), make_input("b.ids", Dtype::f32, {-1})};
  EXPECT_ERROR(invalid_input, fit_inputs({{"ids", two}, {"other", one}}, same, "x.npz", &notes), "other", "b.ids");
}

TEST_CASE("arr_0, arr_1, ... go to the inputs in the order of their numbers") {
  std::vector<NamedArray> arrays;
  std::vector<DataSignature> inputs;
  for (int i = 11; i >= 0; --i)
    arrays.push_back({"arr_" + std::to_string(i), make_values<float>(Dtype::f32, {1}, {static_cast<float>(i)})});
  for (int i = 0; i < 12; ++i) inputs.push_back(make_input("x" + std::to_string(i), Dtype::f32, {1}));
  std::vector<std::string> notes;
  const std::vector<NamedArray> fitted = fit_inputs(arrays, inputs, "x.npz", &notes);
  for (size_t i = 0; i < fitted.size(); ++i) CHECK(fitted[i].array.data<float>()[0] == static_cast<float>(i));
  inputs.pop_back();
  EXPECT_ERROR(invalid_input, fit_inputs(arrays, inputs, "x.npz", &notes), "12 arrays", "11 inputs", "arr_11");
}

TEST_CASE("sizes must fit, the number of samples is free") {
  const Dataset dataset = make_dataset({{"x", make_array(Dtype::f32, {3, 2})}});
  for (const Sizes& sizes : {Sizes{-1, 2}, Sizes{1, 2}, Sizes{64, -1}}) {
    const DataSignature input = make_input("x", Dtype::f32, sizes);
    CHECK(fit_dataset(dataset, {&input, 1}).samples() == 3);
  }
  for (const Sizes& sizes : {Sizes{-1, 3}, Sizes{-1}, Sizes{-1, 2, 1}, Sizes{-1, 1, 2}, Sizes{}}) {
    const DataSignature input = make_input("x", Dtype::f32, sizes);
    EXPECT_ERROR(invalid_input, fit_dataset(dataset, {&input, 1}), "d.npz", "'x'", "[3, 2]");
  }
  const DataSignature input = make_input("x", Dtype::f32, {-1, 3});
  EXPECT_ERROR(invalid_input, fit_dataset(dataset, {&input, 1}), "[any, 3]");
  EXPECT_ERROR(invalid_input, fit_one({"x", make_array(Dtype::f32, {3, 2})}, make_input("x", Dtype::f32, {4, 2})),
               "[3, 2]", "[4, 2]");
  CHECK(fit_one({"x", make_array(Dtype::f32, {})}, make_input("x", Dtype::f32, {}))[0].array.elements() == 1);
}

TEST_CASE("types are converted where nothing surprising happens") {
  std::vector<std::string> notes;
  const auto convert = [&](const Array& array, Dtype to) {
    notes.clear();
    return fit_one({"x", array}, make_input("x", to, {-1}), &notes)[0].array;
  };
  CHECK(values_of<float>(convert(make_values<double>(Dtype::f64, {2}, {1.5, -2}), Dtype::f32)) ==
        std::vector<float>{1.5, -2});
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].find("f64 to f32") != std::string::npos);
  CHECK(values_of<int64_t>(convert(make_values<int32_t>(Dtype::i32, {2}, {7, -7}), Dtype::i64)) ==
        std::vector<int64_t>{7, -7});
  CHECK(values_of<int32_t>(convert(make_values<int64_t>(Dtype::i64, {2}, {7, -7}), Dtype::i32)) ==
        std::vector<int32_t>{7, -7});
  CHECK(values_of<double>(convert(make_values<float>(Dtype::f32, {1}, {0.5}), Dtype::f64)) == std::vector<double>{0.5});
  CHECK(values_of<int64_t>(convert(make_values<bool>(Dtype::boolean, {2}, {true, false}), Dtype::i64)) ==
        std::vector<int64_t>{1, 0});
  CHECK(notes.empty());
  CHECK(convert(make_values<float>(Dtype::f32, {1}, {0.1f}), Dtype::bf16).dtype == Dtype::bf16);
  CHECK(notes.size() == 1);
  EXPECT_ERROR(invalid_input, convert(make_values<int64_t>(Dtype::i64, {2}, {7, int64_t{1} << 40}), Dtype::i32), "'x'",
               "1099511627776", "[1]", "i32");
  EXPECT_ERROR(invalid_input, convert(make_values<int8_t>(Dtype::i8, {1}, {-1}), Dtype::u8), "-1", "u8");
  EXPECT_ERROR(invalid_input, convert(make_array(Dtype::u8, {2}), Dtype::f32), "u8", "f32", "Scale");
  EXPECT_ERROR(invalid_input, convert(make_array(Dtype::f32, {2}), Dtype::i64), "f32", "takes i64");
  EXPECT_ERROR(invalid_input, convert(make_array(Dtype::i64, {2}), Dtype::boolean), "takes bool");
  EXPECT_ERROR(invalid_input, convert(make_array(Dtype::f32, {2}), Dtype::c64), "takes c64");
}

TEST_CASE("an array that fits as it is is not copied") {
  const NamedArray array{"x", make_array(Dtype::f32, {3, 2})};
  CHECK(fit_one(array, kFloat)[0].array.storage.get() == array.array.storage.get());
}

TEST_CASE("NaN, infinity and integers out of range are named with their place") {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_ERROR(invalid_input, fit_one({"x", make_values<float>(Dtype::f32, {2, 2}, {0, 0, 0, NAN})}, kFloat), "x.npz",
               "'x'", "nan", "[1, 1]", "finite");
  EXPECT_ERROR(invalid_input, fit_one({"x", make_values<float>(Dtype::f32, {1, 2}, {0, -inf})}, kFloat), "-inf",
               "[0, 1]");
  EXPECT_ERROR(invalid_input,
               fit_dataset(make_dataset({{"x", make_values<float>(Dtype::f32, {2, 2}, {0, 0, NAN, 0})}}), {&kFloat, 1}),
               "nan", "[1, 0]");
  DataSignature masked = kFloat;
  masked.allow_nonfinite = true;
  CHECK(fit_one({"x", make_values<float>(Dtype::f32, {1, 2}, {0, -inf})}, masked)[0].array.data<float>()[1] == -inf);
  DataSignature tokens = make_input("x", Dtype::i64, {-1, 2});
  tokens.range = {0, 9};
  CHECK(fit_one({"x", make_values<int64_t>(Dtype::i64, {1, 2}, {0, 9})}, tokens).size() == 1);
  EXPECT_ERROR(invalid_input, fit_one({"x", make_values<int64_t>(Dtype::i64, {1, 2}, {0, 10})}, tokens), "10", "[0, 1]",
               "0 to 9");
  EXPECT_ERROR(invalid_input, fit_one({"x", make_values<int32_t>(Dtype::i32, {1, 2}, {-1, 0})}, tokens), "-1",
               "[0, 0]");
  tokens.dtype = Dtype::u64;
  EXPECT_ERROR(invalid_input, fit_one({"x", make_values<uint64_t>(Dtype::u64, {1, 2}, {UINT64_MAX, 0})}, tokens),
               "18446744073709551615");
}

TEST_CASE("images of bytes become floats in 0..1 with the sizes that the model takes") {
  std::vector<uint8_t> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  const Dataset dataset = make_images(bytes);
  for (const Sizes& sizes : {Sizes{-1, 1, 2, 2}, Sizes{-1, 2, 2}, Sizes{-1, 4}}) {
    const DataSignature input = make_input("x", Dtype::f32, sizes);
    const auto batch = take_batch(fit_dataset(dataset, {&input, 1}), 0, 64);
    Sizes expected = sizes;
    expected[0] = 64;
    CHECK(batch[0].array.sizes == expected);
    for (int i = 0; i < 256; ++i) REQUIRE(batch[0].array.data<float>()[i] == static_cast<float>(i) / 255.0f);
  }
  const DataSignature wrong = make_input("x", Dtype::f32, {-1, 3, 2, 2});
  EXPECT_ERROR(invalid_input, fit_dataset(dataset, {&wrong, 1}), "[64, 2, 2]", "[any, 3, 2, 2]");
  const DataSignature open = make_input("x", Dtype::f32, {-1, 1, -1, -1});
  EXPECT_ERROR(invalid_input, fit_dataset(dataset, {&open, 1}), "[any, 1, any, any]");
  const DataSignature raw = make_input("x", Dtype::u8, {-1, 2, 2});
  CHECK(take_batch(fit_dataset(dataset, {&raw, 1}), 0, 1)[0].array.data<uint8_t>()[3] == 3);
}

TEST_CASE("batches are rows in order") {
  Dataset dataset = make_dataset({{"x", make_values<double>(Dtype::f64, {3, 2}, {0, 1, 2, 3, 4, 5})}});
  dataset.labels = make_values<int64_t>(Dtype::i64, {3}, {7, 8, 9});
  dataset = fit_dataset(dataset, {&kFloat, 1});
  CHECK(values_of<float>(take_batch(dataset, 1, 2)[0].array) == std::vector<float>{2, 3, 4, 5});
  CHECK(values_of<int64_t>(take_labels(dataset, 1, 2)) == std::vector<int64_t>{8, 9});
  dataset.rows = {2, 0};
  CHECK(values_of<float>(take_batch(dataset, 0, 2)[0].array) == std::vector<float>{4, 5, 0, 1});
  CHECK(values_of<int64_t>(take_labels(dataset, 0, 1)) == std::vector<int64_t>{9});
  CHECK(take_batch(dataset, 2, 0)[0].array.elements() == 0);
  EXPECT_ERROR(internal, take_batch(dataset, 1, 2), "of 2");
}
