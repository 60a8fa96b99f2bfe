// Quantities and patterns as typed by people.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = lissome::as_text(data, size);
  lissome::expect_refusal_or_result([&] { lissome::parse_duration(text); });
  lissome::expect_refusal_or_result([&] { lissome::parse_bytes(text); });
  lissome::expect_refusal_or_result([&] { lissome::parse_fraction(text); });
  lissome::quote(text);
  const size_t half = size / 2;
  if (size < 200) lissome::matches_pattern(text.substr(0, half), text.substr(half));
  return 0;
}
