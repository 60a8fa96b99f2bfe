#include "lissome/base/text.h"

#include <doctest/doctest.h>

using namespace lissome;

TEST_CASE("join and split") {
  CHECK(join({}, ", ").empty());
  CHECK(join({"a"}, ", ") == "a");
  CHECK(join({"a", "b", ""}, ", ") == "a, b, ");
  CHECK(join_few({"a", "b"}, 2) == "a, b");
  CHECK(join_few({"a", "b", "c"}, 1, "\n") == "a\nand 2 more");
  CHECK(join_few({}, 2).empty());
  CHECK(split("a,b,", ',') == std::vector<std::string>{"a", "b", ""});
  CHECK(split("", ',') == std::vector<std::string>{""});
}

TEST_CASE("UTF-8") {
  for (const char* good : {"", "ascii", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    CHECK(is_utf8(good));
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xfe", "\xe2\x82", "\xf0\x9f\x98"})
    CHECK_FALSE(is_utf8(bad));
}

TEST_CASE("quote shows what cannot be printed and shortens") {
  CHECK(quote("plain \u00fc") == "'plain \u00fc'");
  CHECK(quote(std::string_view("a\0\n\x7f\xff", 5)) == "'a\\x00\\x0a\\x7f\\xff'");
  CHECK(quote("\u009b1m\u202e\u200f\u2066") == "'\\xc2\\x9b1m\\xe2\\x80\\xae\\xe2\\x80\\x8f\\xe2\\x81\\xa6'");
  CHECK(quote("\u00a0\u2013\u2065") == "'\u00a0\u2013\u2065'");
  const std::string cut = quote(std::string(1000, 'x'));
  CHECK(cut.size() < 130);
  CHECK(cut.substr(cut.size() - 4) == "...'");
}

TEST_CASE("the nearest name") {
  const std::vector<std::string> known = {"relu", "gelu", "linear", "softmax"};
  CHECK(find_nearest("rleu", known) == "relu");
  CHECK(find_nearest("softmx", known) == "softmax");
  CHECK(find_nearest("completely different", known).empty());
  CHECK(find_nearest("xy", {"ab"}).empty());
  CHECK(find_nearest("foo", {"top1"}).empty());
  CHECK(find_nearest("", known).empty());
}

TEST_CASE("patterns") {
  CHECK(matches_pattern("*", ""));
  CHECK(matches_pattern("encoder.*.weight", "encoder.layer.0.weight"));
  CHECK(matches_pattern("f?o*", "foobar"));
  CHECK(matches_pattern("**a*b**", "xxaxxb"));
  CHECK_FALSE(matches_pattern("f?o", "fo"));
  CHECK_FALSE(matches_pattern("", "a"));
  CHECK_FALSE(matches_pattern("*.bias", "fc.weight"));
  CHECK_FALSE(matches_pattern(std::string(50, '*') + "b", std::string(2000, 'a')));
}
