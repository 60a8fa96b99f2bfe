#include <doctest/doctest.h>

#include "lissome/data/data_test_files.h"
#include "lissome/loader.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

Array make_tokens(const std::vector<int64_t>& values) {
  return make_values<int64_t>(Dtype::i64, {static_cast<int64_t>(values.size())}, values);
}

const Array& array_of(const SampleValue& value) { return std::get<Array>(value.kind); }

const SampleValue& entry(const SampleValue& value, const std::string& key) {
  for (const auto& [name, inner] : std::get<SampleDictionary>(value.kind))
    if (name == key) return inner;
  FAIL("no entry ", key);
  return value;
}

}  // namespace

TEST_CASE("arrays of unequal length are padded, with a mask and their lengths") {
  const std::vector<Array> arrays = {make_tokens({5, 6, 7}), make_tokens({}), make_tokens({8})};
  const Padded padded = pad_and_stack(arrays, {.value = -1, .multiple_of = 4});
  CHECK(padded.values.sizes == Sizes{3, 4});
  CHECK(values_of<int64_t>(padded.values) == std::vector<int64_t>{5, 6, 7, -1, -1, -1, -1, -1, 8, -1, -1, -1});
  CHECK(values_of<bool>(padded.mask) ==
        std::vector<bool>{true, true, true, false, false, false, false, false, true, false, false, false});
  CHECK(values_of<int64_t>(padded.lengths) == std::vector<int64_t>{3, 0, 1});
  const std::vector<Array> rows = {make_values<float>(Dtype::f32, {1, 2}, {1, 2}),
                                   make_values<float>(Dtype::f32, {2, 2}, {3, 4, 5, 6})};
  CHECK(values_of<float>(pad_and_stack(rows, {.value = 0.5}).values) == std::vector<float>{1, 2, 0.5, 0.5, 3, 4, 5, 6});
}

TEST_CASE("what cannot be padded is refused") {
  const Array tokens = make_tokens({1, 2});
  const auto refuses = [&](const Array& other, const std::string& word) {
    EXPECT_ERROR(invalid_input, pad_and_stack(std::vector{tokens, other}), "sample 1", word, "i64[2]");
  };
  refuses(make_array(Dtype::f32, {2}), "f32[2]");
  refuses(make_array(Dtype::i64, {2, 1}), "i64[2, 1]");
  refuses(make_array(Dtype::i64, {}), "i64[]");
  EXPECT_ERROR(invalid_input, pad_and_stack({}), "nothing to stack");
  EXPECT_ERROR(usage, pad_and_stack(std::vector{tokens}, {.value = 0.5}), "0.5", "i64");
  EXPECT_ERROR(usage, pad_and_stack(std::vector{make_array(Dtype::u8, {1})}, {.value = 256}), "256", "u8");
  EXPECT_ERROR(usage, pad_and_stack(std::vector{make_array(Dtype::boolean, {1})}, {.value = 1}), "bool");
  EXPECT_ERROR(usage, pad_and_stack(std::vector{tokens}, {.multiple_of = 0}), "multiple of 0");
}

TEST_CASE("samples of every form are collated element by element") {
  const auto make = [](int64_t i) {
    const SampleSequence pair = {{int64_t{i}}, {make_tokens({i, 10 * i})}};
    return SampleValue{SampleDictionary{{"x", {make_tokens({i})}},
                                        {"weight", {static_cast<double>(i) / 2}},
                                        {"good", {i == 1}},
                                        {"name", {"n" + std::to_string(i)}},
                                        {"pair", {pair}}}};
  };
  const SampleValue batch = collate(std::vector{make(1), make(2)});
  CHECK(values_of<int64_t>(array_of(entry(batch, "x"))) == std::vector<int64_t>{1, 2});
  CHECK(array_of(entry(batch, "x")).sizes == Sizes{2, 1});
  CHECK(values_of<float>(array_of(entry(batch, "weight"))) == std::vector<float>{0.5, 1});
  CHECK(values_of<bool>(array_of(entry(batch, "good"))) == std::vector<bool>{true, false});
  const auto& names = std::get<SampleSequence>(entry(batch, "name").kind);
  CHECK(std::get<std::string>(names.at(1).kind) == "n2");
  const auto& pair = std::get<SampleSequence>(entry(batch, "pair").kind);
  CHECK(values_of<int64_t>(array_of(pair.at(0))) == std::vector<int64_t>{1, 2});
  CHECK(values_of<int64_t>(array_of(pair.at(1))) == std::vector<int64_t>{1, 10, 2, 20});
}

TEST_CASE("samples that differ in form are refused with the place") {
  const auto dictionary = [](const std::string& key, SampleValue value) {
    return SampleValue{SampleDictionary{{key, std::move(value)}}};
  };
  const auto refuses = [](const SampleValue& one, const SampleValue& other, const std::string& place,
                          const std::string& word) {
    EXPECT_ERROR(invalid_input, collate(std::vector{one, other}), "sample 1 of the batch", place, word);
  };
  refuses(dictionary("a", {make_tokens({1})}), dictionary("a", {int64_t{1}}), "'a'", "a whole number");
  refuses(dictionary("a", {make_tokens({1})}), dictionary("a", {make_tokens({1, 2})}), "'a'", "i64[2]");
  refuses(dictionary("a", {true}), dictionary("b", {true}), "", "without 'a'");
  refuses(dictionary("a", {true}), {SampleDictionary{{"a", {true}}, {"b", {true}}}}, "", "2 keys");
  const SampleSequence one = {{true}}, two = {{true}, {false}}, number = {{1.5}};
  refuses({one}, {two}, "", "sequence has 2");
  refuses(dictionary("a", {one}), dictionary("a", {number}), "'a'[0]", "a number");
  EXPECT_ERROR(invalid_input, collate({}), "no samples");
}

namespace {

// Sample i counts up to i, and its label is i.
class Counting : public SampleSource {
 public:
  int64_t samples() const override { return 9; }
  SampleValue sample(int64_t index) const override {
    std::vector<int64_t> tokens;
    for (int64_t i = 1; i <= index; ++i) tokens.push_back(i);
    return {SampleDictionary{{"tokens", {make_tokens(tokens)}},
                             {"labels", {index}},
                             {"more", {SampleDictionary{{"half", {static_cast<double>(index) / 2}}}}}}};
  }
  std::optional<PadOptions> padding() const override { return PadOptions{}; }
};

}  // namespace

TEST_CASE("a class with its samples one by one feeds a loader: padded, bucketed by length") {
  std::vector<int64_t> lengths(9);
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = static_cast<int64_t>(i);
  Loader loader(std::make_shared<Counting>(), {.order = LengthBucketedOrder{lengths}, .batch = 3}, {}, {.workers = 2});
  Batch batch;
  int64_t longest = 0;
  while (loader.next(batch)) {
    REQUIRE(batch.inputs.size() == 3);
    CHECK(batch.inputs[0].name == "tokens");
    CHECK(batch.inputs[1].name == "tokens_mask");
    CHECK(batch.inputs[2].name == "more.half");
    CHECK(values_of<int64_t>(*batch.labels) == batch.samples);
    longest += batch.inputs[0].array.sizes[1];
    for (size_t i = 0; i < 3; ++i) {
      const int64_t length = batch.inputs[0].array.sizes[1];
      for (int64_t k = 0; k < length; ++k) {
        const bool is_there = k < batch.samples[i];
        CHECK(batch.inputs[1].array.data<bool>()[static_cast<int64_t>(i) * length + k] == is_there);
        CHECK(batch.inputs[0].array.data<int64_t>()[static_cast<int64_t>(i) * length + k] == (is_there ? k + 1 : 0));
      }
    }
  }
  CHECK(longest == 2 + 5 + 8);
}
