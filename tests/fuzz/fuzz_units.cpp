// Quantities and patterns as typed by people.
#include <cstring>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lissome;
  const std::string_view text = as_text(data, size);
  expect_refusal_or_result([&] {
    if (!(parse_duration(text) > 0)) std::abort();
  });
  expect_refusal_or_result([&] {
    if (parse_bytes(text) < 1) std::abort();
  });
  expect_refusal_or_result([&] {
    const double fraction = parse_fraction(text);
    if (!(fraction >= 0 && fraction <= 1)) std::abort();
  });
  if (!is_utf8(quote(text))) std::abort();
  const std::string_view first = text.substr(0, size / 2), second = text.substr(size / 2);
  if (size < 200) static_cast<void>(matches_pattern(first, second));
  if (size < 200) static_cast<void>(find_nearest(first, {std::string(second), "relu"}));
  if (size < sizeof(double)) return 0;
  double number = 0;
  int64_t whole = 0;
  std::memcpy(&number, data, sizeof number);
  std::memcpy(&whole, data, sizeof whole);
  static_cast<void>(format_duration(number) + format_percent(number) + format_bytes(whole));
  return 0;
}
