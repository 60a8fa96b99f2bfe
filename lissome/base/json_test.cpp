#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "lissome/base/text.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

std::string nest(int levels) {
  return std::string(static_cast<size_t>(levels), '[') + std::string(static_cast<size_t>(levels), ']');
}

std::string build_object(int keys) {
  std::string text = "{";
  for (int i = 0; i < keys; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":" + std::to_string(i);
  return text;
}

}  // namespace

TEST_CASE("JSON is read as it stands") {
  const std::string text =
      R"({"z":1,"a":[true,false,null,-2,1.5,18446744073709551615,"x\u00fc\n"],"o":{"e":{},"l":[]}})";
  const Json json = parse_json(text, "doc");
  CHECK(json.begin().key() == "z");  // order is kept
  CHECK(json["a"][3].get<int64_t>() == -2);
  CHECK(json["a"][5].get<uint64_t>() == UINT64_MAX);
  CHECK(json["a"][6].get<std::string>() == "x\u00fc\n");
  CHECK(Json::parse(text) == json);
  CHECK(parse_json(" 5 ", "doc") == 5);
  CHECK(parse_json("\"x\"", "doc") == "x");
}

TEST_CASE("large objects keep all their keys") {
  const Json json = parse_json(build_object(1000) + "}", "doc");
  CHECK(json.size() == 1000);
  CHECK(json["999"] == 999);
}

TEST_CASE("what is no JSON is refused with its place") {
  EXPECT_ERROR(invalid_input, parse_json("", "doc"), "doc, line 1, column 1");
  EXPECT_ERROR(invalid_input, parse_json("{\n  \"a\": tru\n}", "model.json"), "model.json, line 2, column 11");
  EXPECT_ERROR(invalid_input, parse_json("[1, 2", "doc"), "line 1");
  EXPECT_ERROR(invalid_input, parse_json("[1] x", "doc"), "line 1, column 5");
  EXPECT_ERROR(invalid_input, parse_json("{\"a\" 1}", "doc"), "column 7");
  EXPECT_ERROR(invalid_input, parse_json("[NaN]", "doc"), "doc");
  EXPECT_ERROR(invalid_input, parse_json("[1e999]", "doc"), "number overflow");
  EXPECT_ERROR(invalid_input, parse_json("['a']", "doc"), "doc");
  EXPECT_ERROR(invalid_input, parse_json("// comment\n1", "doc"), "doc");
  EXPECT_ERROR(invalid_input, parse_json("\"\xff\"", "doc"), "doc");
  EXPECT_ERROR(invalid_input, parse_json("\"\\ud800\"", "doc"), "surrogate");
  EXPECT_ERROR(invalid_input, parse_json(std::string("[\0]", 3), "doc"), "doc");
}

TEST_CASE("depth is bounded") {
  CHECK(parse_json(nest(64), "doc").is_array());
  EXPECT_ERROR(invalid_input, parse_json(nest(65), "doc"), "deeper than 64", "column 65");
  EXPECT_ERROR(invalid_input, parse_json(std::string(5'000'000, '['), "doc"), "deeper");
  EXPECT_ERROR(invalid_input, parse_json("{\"a\":{\"a\":1}}", "doc", 1), "deeper than 1");
}

TEST_CASE("the number of values is bounded") {
  CHECK(parse_json("[1,2,3]", "doc", 64, 4).size() == 3);
  EXPECT_ERROR(invalid_input, parse_json("[1,2,3]", "doc", 64, 3), "more than 3 values");
}

TEST_CASE("duplicate keys are refused, in small objects and large ones") {
  EXPECT_ERROR(invalid_input, parse_json("{\"a\":1,\n\"a\":2}", "doc"), "'a'", "twice", "line 2");
  EXPECT_ERROR(invalid_input, parse_json(build_object(100) + ",\"3\":0}", "doc"), "'3'", "twice");
  EXPECT_ERROR(invalid_input, parse_json(build_object(100) + ",\"99\":0}", "doc"), "'99'", "twice");
  EXPECT_ERROR(invalid_input, parse_json("{\"a\":1,\"\\u0061\":2}", "doc"), "twice");
  CHECK(parse_json("{\"a\":{\"a\":1},\"b\":{\"a\":1}}", "doc").size() == 2);
}
