#include "lissome/base/units.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/expect_error.h"

using namespace lissome;

TEST_CASE("durations") {
  CHECK(parse_duration("5ms") == doctest::Approx(0.005));
  CHECK(parse_duration("10 min") == 600);
  CHECK(parse_duration("1us") == doctest::Approx(1e-6));
  CHECK(parse_duration("1\u00b5s") == doctest::Approx(1e-6));
  CHECK(parse_duration("250ns") == doctest::Approx(2.5e-7));
  CHECK(parse_duration("1.5s") == 1.5);
  CHECK(parse_duration("2h") == 7200);
  for (const char* wrong : {"", "5", "ms", "-5ms", "0ms", "5 parsecs", "5ms5", "5  ms", "5ms ", " 5ms", "1e3ms",
                            "nan s", "inf s", "1..5s", ".5s", "1,5s", "+5ms", "0x5s", "99999999999999999999h"})
    EXPECT_ERROR(usage, parse_duration(wrong), "duration", "5ms");
}

TEST_CASE("sizes") {
  CHECK(parse_bytes("200MiB") == 200 << 20);
  CHECK(parse_bytes("4 GiB") == int64_t{4} << 30);
  CHECK(parse_bytes("512kB") == 512'000);
  CHECK(parse_bytes("1.5KiB") == 1536);
  CHECK(parse_bytes("100") == 100);
  CHECK(parse_bytes("7B") == 7);
  for (const char* wrong :
       {"", "0", "-1", "5Mb", "5 mib", "1e9", "B", "9999999999999999999", "8000000000TiB", "nan", "0.1"})
    EXPECT_ERROR(usage, parse_bytes(wrong), "size", "200MiB");
}

TEST_CASE("rates") {
  CHECK(parse_rate("500/s") == 500);
  CHECK(parse_rate("0.5 /s") == 0.5);
  CHECK(parse_rate("12") == 12);
  for (const char* wrong : {"", "/s", "-1/s", "0", "5/min", "fast", "5/s/s"})
    EXPECT_ERROR(usage, parse_rate(wrong), "a rate", "500/s");
}

TEST_CASE("fractions") {
  CHECK(parse_fraction("0.5%") == doctest::Approx(0.005));
  CHECK(parse_fraction("0.005") == 0.005);
  CHECK(parse_fraction("100 %") == 1);
  CHECK(parse_fraction("0") == 0);
  for (const char* wrong : {"", "%", "-1%", "101%", "1.5", "half", "0.5%%"})
    EXPECT_ERROR(usage, parse_fraction(wrong), "fraction", "0.5%");
}

TEST_CASE("quantities are printed with the digits that matter") {
  CHECK(format_duration(0.00421) == "4.21 ms");
  CHECK(format_duration(0.0421) == "42.1 ms");
  CHECK(format_duration(0.421) == "421 ms");
  CHECK(format_duration(0.9996) == "1.00 s");
  CHECK(format_duration(12e-9) == "12.0 ns");
  CHECK(format_duration(90) == "90.0 s");
  CHECK(format_duration(1800) == "30.0 min");
  CHECK(format_duration(36000) == "10.0 h");
  CHECK(format_duration(0) == "0 s");
  CHECK(format_duration(-0.001) == "-1.00 ms");
  CHECK(format_duration(std::nan("")) == "? s");
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(3565158) == "3.4 MiB");
  CHECK(format_bytes(int64_t{200} << 20) == "200 MiB");
  CHECK(format_bytes((int64_t{1} << 30) - 1) == "1.0 GiB");
  CHECK(format_bytes(INT64_MAX) == "8388608 TiB");
  CHECK(format_bytes(-2048) == "-2.0 KiB");
  CHECK(format_percent(0.005) == "0.50 %");
}
