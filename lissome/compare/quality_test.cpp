#include <doctest/doctest.h>

#include <cmath>

#include "lissome/compare.h"

namespace lissome {
namespace {

OutputRows make_rows(int64_t width, std::vector<float> values) {
  return {static_cast<int64_t>(values.size()) / width, width, std::move(values)};
}

Dataset make_data(int64_t samples) { return make_dataset({{"x", make_array(Dtype::f32, {samples, 3})}}, {}, "data"); }

Dataset make_labelled(const std::vector<int64_t>& classes) {
  const auto samples = static_cast<int64_t>(classes.size());
  Array labels = make_array(Dtype::i64, {samples});
  std::copy(classes.begin(), classes.end(), labels.data<int64_t>());
  return make_dataset({{"x", make_array(Dtype::f32, {samples, 3})}, {"labels", labels}}, {.labels = "labels"}, "data");
}

TEST_CASE("metrics are read by name, and an unknown one lists the known") {
  for (const char* name : {"top1", "cosine", "rel_error", "mse"}) CHECK(metric_name(parse_metric(name)) == name);
  CHECK(is_higher_better(Metric::top1));
  CHECK(is_higher_better(Metric::cosine));
  CHECK_FALSE(is_higher_better(Metric::relative_error));
  CHECK_FALSE(is_higher_better(Metric::mean_squared_error));
  try {
    parse_metric("cosin");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(error.message().find("top1, cosine, rel_error, mse") != std::string::npos);
    CHECK(error.message().find("Did you mean 'cosine'") != std::string::npos);
  }
}

TEST_CASE("top1 with labels counts right classes; loss is absolute") {
  const QualityJudge judge(Metric::top1, make_labelled({0, 1, 2, 1}),
                           make_rows(3, {9, 0, 0, 0, 9, 0, 0, 0, 9, 9, 0, 0}));
  CHECK(judge.original() == doctest::Approx(0.75));
  const double quality = judge.measure(make_rows(3, {9, 0, 0, 9, 0, 0, 9, 0, 0, 9, 0, 0}));
  CHECK(quality == doctest::Approx(0.25));
  CHECK(judge.loss(quality) == doctest::Approx(0.5));
  CHECK(judge.loss(1.0) == doctest::Approx(-0.25));
  CHECK(judge.describe().find("labels of 4") != std::string::npos);
}

TEST_CASE("without labels the original is the target and scores full marks") {
  const OutputRows original = make_rows(2, {1, 0, 0, 1});
  const OutputRows other = make_rows(2, {0, 1, 0, 1});
  const QualityJudge top1(Metric::top1, make_data(2), original);
  CHECK(top1.original() == 1);
  CHECK(top1.measure(other) == doctest::Approx(0.5));
  const QualityJudge cosine(Metric::cosine, make_data(2), original);
  CHECK(cosine.original() == doctest::Approx(1));
  CHECK(cosine.measure(other) == doctest::Approx(0.5));
  const QualityJudge error(Metric::relative_error, make_data(2), original);
  CHECK(error.original() == 0);
  CHECK(error.measure(other) == doctest::Approx(1));  // |d| = sqrt 2, |target| = sqrt 2
  CHECK(error.loss(1) == doctest::Approx(1));
  const QualityJudge squared(Metric::mean_squared_error, make_data(2), original);
  CHECK(squared.measure(other) == doctest::Approx(0.5));
  CHECK(squared.describe().find("original model") != std::string::npos);
}

TEST_CASE("scores that the original masks too do not count, others that are not finite do") {
  const OutputRows masked = make_rows(2, {1, -INFINITY, 0.5f, -INFINITY}),
                   near = make_rows(2, {1, -INFINITY, 0.4f, -INFINITY});
  const OutputRows open = make_rows(2, {1, 0, 0.5f, -INFINITY});
  const QualityJudge cosine(Metric::cosine, make_data(2), masked);
  CHECK(cosine.original() == doctest::Approx(1));
  CHECK(cosine.measure(near) == doctest::Approx(1));
  CHECK(cosine.measure(open) == doctest::Approx(0.5));
  const QualityJudge error(Metric::relative_error, make_data(2), masked);
  CHECK(error.original() == 0);
  CHECK(error.measure(near) == doctest::Approx(0.1 / std::sqrt(1.25)));
  CHECK(error.measure(open) == INFINITY);
  const QualityJudge squared(Metric::mean_squared_error, make_data(2), masked);
  CHECK(squared.original() == 0);
  CHECK(squared.measure(near) == doctest::Approx(0.01 / 4));
}

TEST_CASE("outputs that are not finite are never good") {
  const float nan = std::nanf("");
  const OutputRows original = make_rows(2, {1, 0, 0, 1}), broken = make_rows(2, {nan, 0, 0, nan});
  CHECK(QualityJudge(Metric::top1, make_data(2), original).measure(broken) == 0);
  CHECK(QualityJudge(Metric::cosine, make_data(2), original).measure(broken) == 0);
  CHECK(QualityJudge(Metric::relative_error, make_data(2), original).measure(broken) == INFINITY);
  CHECK(QualityJudge(Metric::mean_squared_error, make_data(2), original).measure(broken) == INFINITY);
}

TEST_CASE("float labels are targets for errors") {
  Array labels = make_array(Dtype::f32, {2, 2});
  for (int i = 0; i < 4; ++i) labels.data<float>()[i] = static_cast<float>(i);
  const Dataset data = make_dataset({{"x", make_array(Dtype::f32, {2, 3})}, {"y", labels}}, {.labels = "y"}, "data");
  const QualityJudge judge(Metric::mean_squared_error, data, make_rows(2, {0, 1, 2, 5}));
  CHECK(judge.original() == doctest::Approx(1));
  CHECK(judge.loss(judge.measure(make_rows(2, {0, 1, 2, 3}))) == doctest::Approx(-1));
  CHECK_THROWS_AS(QualityJudge(Metric::mean_squared_error, data, make_rows(1, {0, 1})), Error);
}

TEST_CASE("inputs that index an embedding carry its range") {
  const Program program = parse_program(R"(
    input %ids: i64[batch, 5]
    input %x: f32[batch, 8]
    parameter @words: f32[50, 8]
    %1: f32[batch, 5, 8] = aten::embedding(@words, %ids)
    %2: f32[batch, 8] = aten::mean.dim(%1, [1])
    %3: f32[batch, 8] = aten::add.Tensor(%2, %x)
    return %3
  )");
  const std::vector<DataSignature> inputs = describe_inputs(program);
  REQUIRE(inputs.size() == 2);
  CHECK(inputs[0].dtype == Dtype::i64);
  CHECK((inputs[0].sizes == Sizes{-1, 5}));
  REQUIRE(inputs[0].range.has_value());
  CHECK((*inputs[0].range == std::pair<int64_t, int64_t>{0, 49}));
  CHECK_FALSE(inputs[1].range.has_value());
}

}  // namespace
}  // namespace lissome
