#include "lissome/tune/front.h"

#include <ATen/core/ivalue.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/expect_error.h"
#include "tests/program_helpers.h"
#include "tests/temporary_folder.h"

namespace lissome {
namespace {

PointRecord make_point(const std::string& name, double ratio, int64_t memory, int64_t size, double quality,
                       bool allowed = true) {
  PointRecord point{.name = name, .file = {}, .ratio = {ratio, {ratio, ratio}, 1}, .memory = memory, .size = size};
  point.seconds = ratio;
  point.quality = quality;
  point.allowed = allowed;
  return point;
}

std::vector<std::string> list_names(const Front& front) {
  std::vector<std::string> names;
  for (const PointRecord& point : front.points()) names.push_back(point.name);
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("a version stays as long as no other one beats it in everything") {
  Front front({}, "m", true, 0.005);
  const Variant none;
  front.add(make_point("f32", 1, 100, 100, 1), none);
  front.add(make_point("bf16", 0.5, 60, 50, 0.99), none);
  front.add(make_point("slow", 1.2, 100, 100, 1), none);     // f32 beats it
  front.add(make_point("small", 0.8, 30, 20, 0.98), none);   // smaller
  front.add(make_point("same", 0.505, 60, 50, 0.99), none);  // within the noise of bf16
  CHECK(list_names(front) == Names{"bf16", "small", "f32"});
  front.add(make_point("best", 0.4, 20, 20, 1), none);
  CHECK(list_names(front) == Names{"best"});
  PointRecord result = make_point("result", 0.4, 20, 20, 1);  // no better, but what the search gives
  result.chosen = true;
  front.add(result, none);
  CHECK(list_names(front) == Names{"result"});
  CHECK(front.points().front().chosen);
}

TEST_CASE("time, memory and size each keep a version that is best in it alone") {
  const Variant none;
  const std::vector<PointRecord> points = {make_point("fast", 0.5, 100, 100, 1), make_point("lean", 1, 50, 100, 1),
                                           make_point("small", 1, 100, 50, 1)};
  for (const auto& order : {std::vector<size_t>{0, 1, 2}, {2, 1, 0}}) {
    Front front({}, "m", true, 0.005);
    for (const size_t i : order) front.add(points[i], none);
    CHECK(front.points().size() == 3);
  }
}

TEST_CASE("quality counts by its direction, and is not needed") {
  const Variant none;
  for (const bool higher : {true, false}) {
    Front front({}, "m", higher, 0.005);
    front.add(make_point("exact", 1, 100, 100, higher ? 1 : 0), none);
    front.add(make_point("worse", 1, 100, 100, 0.5), none);
    CHECK(list_names(front) == Names{"exact"});
    front.add(make_point("lossy", 0.9, 100, 100, 0.5), none);
    CHECK(list_names(front).size() == 2);
  }
  Front front({}, "m", true, 0.005);
  PointRecord unknown = make_point("a", 1, 100, 100, 0);
  unknown.quality.reset();
  front.add(unknown, none);
  unknown.name = "b";
  unknown.ratio.median = 0.5;
  front.add(unknown, none);
  CHECK(list_names(front) == Names{"b"});
}

TEST_CASE("only what loses too much leaves the quality of a slower and larger version open") {
  Front front({}, "m", true, 0.005);
  const Variant none;
  front.add(make_point("lossy", 0.5, 50, 50, 0.5, false), none);
  CHECK(front.may_hold(make_point("x", 0.9, 90, 90, 0)));
  front.add(make_point("good", 0.6, 60, 60, 0.99), none);
  CHECK_FALSE(front.may_hold(make_point("x", 0.9, 90, 90, 0)));
  CHECK(front.may_hold(make_point("x", 0.9, 90, 40, 0)));
}

TEST_CASE("the folder holds the files of the front and no others, and one front alone") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/front";
  const Program program = parse_program("input %x: f32[2, 3]\n%1: f32[2, 3] = aten::relu(%x)\nreturn %1\n");
  Variant variant;
  variant.program = std::make_shared<const Program>(program);
  variant.plan = std::make_shared<const Plan>(lower_program(program));
  const auto list_files = [&] {
    Names files;
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path().filename());
    std::ranges::sort(files);
    return files;
  };
  Front front(path, "m", true, 0.005);
  front.add(make_point("a", 1, 100, 100, 1), variant);
  front.add(make_point("b", 0.5, 100, 100, 0.9), variant);
  CHECK(list_files() == Names{"01.lissome", "02.lissome", "front.json"});
  front.add(make_point("c", 0.4, 100, 100, 0.95), variant);
  CHECK(list_files() == Names{"01.lissome", "03.lissome", "front.json"});
  EXPECT_ERROR(usage, Front(path, "m", true, 0.005), "holds the front of an earlier search");
}

}  // namespace
}  // namespace lissome
