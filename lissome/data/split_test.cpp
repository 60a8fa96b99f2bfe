#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lissome/data.h"
#include "lissome/data/data_test_files.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

// `distinct` different samples, each `copies` times; labels cycle through `classes`.
Dataset make_dataset(int64_t distinct, int64_t copies, int64_t classes) {
  Dataset dataset;
  dataset.source = "d";
  const int64_t samples = distinct * copies;
  DataColumn column{"x", make_array(Dtype::f32, {samples, 3}), Dtype::f32, {3}, 1};
  Array labels = make_array(Dtype::i64, {samples});
  for (int64_t i = 0; i < samples; ++i) {
    column.array.data<float>()[3 * i] = static_cast<float>(i % distinct);
    labels.data<int64_t>()[i] = classes > 0 ? i % distinct % classes : 0;
    dataset.rows.push_back(i);
  }
  dataset.columns = {column};
  if (classes > 0) dataset.labels = labels;
  return dataset;
}

std::set<float> contents(const Dataset& dataset) {
  std::set<float> values;
  for (int64_t row : dataset.rows) values.insert(dataset.columns[0].array.data<float>()[3 * row]);
  return values;
}

std::map<int64_t, int64_t> count_classes(const Dataset& dataset) {
  std::map<int64_t, int64_t> counts;
  for (int64_t i = 0; i < dataset.samples(); ++i) ++counts[take_labels(dataset, i, 1).data<int64_t>()[0]];
  return counts;
}

}  // namespace

TEST_CASE("the parts share nothing and lose nothing") {
  for (int64_t distinct : {2, 3, 10, 101})
    for (int64_t copies : {1, 3})
      for (int64_t classes : {0, 1, 4})
        for (double share : {0.01, 0.5, 0.99}) {
          const Dataset dataset = make_dataset(distinct, copies, classes);
          const DataSplit split = split_dataset(dataset, {.seed = 1, .calibration = share});
          CHECK(split.calibration.samples() >= 1);
          CHECK(split.validation.samples() >= 1);
          std::vector<int64_t> all = split.calibration.rows;
          all.insert(all.end(), split.validation.rows.begin(), split.validation.rows.end());
          std::sort(all.begin(), all.end());
          CHECK(all == dataset.rows);
          // Not even an equal sample is on both sides.
          const std::set<float> a = contents(split.calibration), b = contents(split.validation);
          CHECK(std::none_of(a.begin(), a.end(), [&](float value) { return b.count(value) > 0; }));
        }
}

TEST_CASE("the share is kept, in every class") {
  const DataSplit split = split_dataset(make_dataset(1000, 1, 5), {.seed = 3, .calibration = 0.2});
  CHECK(split.calibration.samples() == 200);
  for (const auto& [label, count] : count_classes(split.calibration)) CHECK(count == 40);
  for (const auto& [label, count] : count_classes(split.validation)) CHECK(count == 160);
  CHECK(split_dataset(make_dataset(1000, 1, 5), {.calibration = 0.5, .most_calibration = 10}).calibration.samples() ==
        10);
}

TEST_CASE("same seed, same parts; another seed, others") {
  const Dataset dataset = make_dataset(100, 1, 3);
  const DataSplit first = split_dataset(dataset, {.seed = 7}), again = split_dataset(dataset, {.seed = 7});
  CHECK(first.calibration.rows == again.calibration.rows);
  CHECK(first.validation.rows == again.validation.rows);
  CHECK(first.calibration.rows != split_dataset(dataset, {.seed = 8}).calibration.rows);
  CHECK_FALSE(std::is_sorted(first.validation.rows.begin(), first.validation.rows.end()));
}

TEST_CASE("a part can be split again") {
  const DataSplit split = split_dataset(make_dataset(100, 1, 0));
  const DataSplit half = split_dataset(split.validation);
  CHECK(half.calibration.samples() + half.validation.samples() == split.validation.samples());
}

TEST_CASE("too few samples are refused") {
  EXPECT_ERROR(invalid_input, split_dataset(make_dataset(1, 1, 0)), "1 sample;", "two different");
  EXPECT_ERROR(invalid_input, split_dataset(make_dataset(1, 5, 0)), "5 samples, all alike");
  EXPECT_ERROR(usage, split_dataset(make_dataset(5, 1, 0), {.calibration = 0}), "share of 0");
  EXPECT_ERROR(usage, split_dataset(make_dataset(5, 1, 0), {.calibration = 1}), "share of 1");
}
