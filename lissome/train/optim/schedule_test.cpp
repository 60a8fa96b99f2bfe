#include "lissome/train/optim/schedule.h"

#include "lissome/base.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

Schedule parse(std::string_view text) { return parse_schedule(text, {0.1, 100, 10}); }

}  // namespace

TEST_CASE("parts hold from their first steps, each counting from zero") {
  const Schedule schedule = parse("linear:start=0,steps=4+step:size=1e,gamma=0.5@20");
  CHECK(schedule.at(0).learning_rate == 0);
  CHECK(schedule.at(2).learning_rate == doctest::Approx(0.05));
  CHECK(schedule.at(19).learning_rate == doctest::Approx(0.1));
  CHECK(schedule.at(20).learning_rate == doctest::Approx(0.1));
  CHECK(schedule.at(30).learning_rate == doctest::Approx(0.05));
}

TEST_CASE("a cosine fills what a warm-up leaves of its part") {
  const Schedule schedule = parse("cosine:warmup=20+constant:factor=0.5@60");
  CHECK(schedule.at(0).learning_rate == doctest::Approx(0.1 / 20));
  CHECK(schedule.at(20).learning_rate == doctest::Approx(0.1));
  CHECK(schedule.at(40).learning_rate == doctest::Approx(0.05));
  CHECK(schedule.at(60).learning_rate == doctest::Approx(0.05));
}

TEST_CASE("one-cycle ends where it should and stays there") {
  const Schedule schedule = parse("onecycle");
  CHECK(schedule.at(0).learning_rate == doctest::Approx(0.1 / 25));
  CHECK(schedule.at(29).learning_rate == doctest::Approx(0.1));
  CHECK(schedule.at(29).momentum.value() == doctest::Approx(0.85));
  CHECK(schedule.at(99).learning_rate == doctest::Approx(0.1 / 25 / 1e4));
  CHECK(schedule.at(1000).learning_rate == schedule.at(99).learning_rate);
}

TEST_CASE("a plateau goes on where its state was kept, and NaN is no better metric") {
  Schedule schedule = parse("plateau:patience=1,factor=0.5");
  schedule.observe(1);
  schedule.observe(std::numeric_limits<double>::quiet_NaN());
  Schedule resumed = parse("plateau:patience=1,factor=0.5");
  resumed.restore_plateau(schedule.plateau());
  resumed.observe(1);
  CHECK(resumed.at(0).learning_rate == doctest::Approx(0.05));
  CHECK(schedule.at(0).learning_rate == doctest::Approx(0.1));
}

TEST_CASE("texts that say nothing are refused with what is allowed") {
  EXPECT_ERROR(usage, parse("cosin"), "there is no shape 'cosin'", "constant, cosine, exponential");
  EXPECT_ERROR(usage, parse(""), "there is no shape ''");
  EXPECT_ERROR(usage, parse("step:gamma=0.1"), "a value is missing for the field 'size'");
  EXPECT_ERROR(usage, parse("step:size=10,gama=0.1"), "there is no field 'gama'", "warmup, size, gamma");
  EXPECT_ERROR(usage, parse("step:size"), "no value in 'size'", "key=value");
  EXPECT_ERROR(usage, parse("step:size=1.5"), "cannot read the number of steps '1.5'", "30e (epochs)");
  EXPECT_ERROR(usage, parse("step:size=-3"), "cannot read the number of steps '-3'");
  EXPECT_ERROR(usage, parse("step:size=9999999999999999999e"), "cannot read the number of steps");
  EXPECT_ERROR(usage, parse("step:size=0"), "size must be at least 1, not 0");
  EXPECT_ERROR(usage, parse("exponential:gamma=a"), "cannot read the number 'a'");
  EXPECT_ERROR(usage, parse("onecycle:anneal=cubic"), "anneal is not 'cubic'", "cos, linear");
  EXPECT_ERROR(usage, parse("linear+cosine"), "no first step in 'cosine'", "cosine@100");
  EXPECT_ERROR(usage, parse("linear:steps=5+cosine@0"), "begins at step 0");
  EXPECT_ERROR(usage, parse("cosine@5"), "begins at step 0");
  EXPECT_ERROR(usage, parse("linear+plateau@10"), "the only part of a schedule");
  EXPECT_ERROR(usage, parse("cosine:warmup=100"), "cosine", "a warm-up of 100 steps leaves none of the 100");
  EXPECT_ERROR(invalid_input, Schedule(-1, {{0, ConstantRate{}}}), "at least 0 and fit f32, not -1");
  EXPECT_ERROR(invalid_input, Schedule(1e39, {{0, ConstantRate{}}}), "fit f32, not 1e+39");
}
