// Reading and printing quantities. Strict: a number, at most one space, a unit of the list; no sign, no exponent
// tricks.
#include "lissome/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <optional>
#include <span>

#include "lissome/base/error.h"
#include "lissome/base/text.h"

namespace lissome {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kDurations[] = {{"ns", 1e-9},  {"us", 1e-6}, {"ms", 1e-3},  {"s", 1.0},       {"sec", 1.0},
                               {"min", 60.0}, {"m", 60.0},  {"h", 3600.0}, {"\u00b5s", 1e-6}};
constexpr Unit kBytes[] = {{"", 1.0},
                           {"B", 1.0},
                           {"kB", 1e3},
                           {"KB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"TB", 1e12},
                           {"KiB", 1024.0},
                           {"MiB", 1048576.0},
                           {"GiB", 1073741824.0},
                           {"TiB", 1099511627776.0}};
constexpr Unit kRates[] = {{"", 1.0}, {"/s", 1.0}};
constexpr Unit kFractions[] = {{"", 1.0}, {"%", 0.01}};

struct Quantity {
  double value;
  std::string_view unit;
};

// "12.5 ms" -> 12.5 and "ms"; nothing when there is no plain decimal number at the start.
std::optional<Quantity> read_quantity(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && (std::string_view("0123456789.").find(text[digits]) != std::string_view::npos))
    ++digits;
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + digits, value, std::chars_format::fixed);
  if (code != std::errc() || end != text.data() + digits || text[0] == '.') return std::nullopt;
  text.remove_prefix(digits);
  if (text.size() > 1 && text[0] == ' ') text.remove_prefix(1);
  return Quantity{value, text};
}

double parse_quantity(std::string_view text, std::span<const Unit> units, std::string_view what,
                      std::string_view allowed) {
  if (const auto quantity = read_quantity(text))
    for (const Unit& unit : units)
      if (unit.name == quantity->unit) return quantity->value * unit.factor;
  throw_error(ErrorKind::usage, quote(text), " is not ", what, "; allowed is ", allowed, ".");
}

double parse_positive(std::string_view text, std::span<const Unit> units, std::string_view what, double most,
                      std::string_view allowed) {
  const double value = parse_quantity(text, units, what, allowed);
  if (!(value > 0 && value <= most))
    throw_error(ErrorKind::usage, quote(text), " is not ", what, "; allowed is ", allowed, ".");
  return value;
}

std::string format_number(double value, int decimals, std::string_view unit) {
  std::array<char, 64> buffer;
  const auto [end, code] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  if (code != std::errc()) return "? " + std::string(unit);
  return std::string(buffer.data(), end) + " " + std::string(unit);
}

// Three digits that tell something: 4.21, 42.1, 421.
int choose_decimals(double value) { return value < 9.995 ? 2 : value < 99.95 ? 1 : 0; }

}  // namespace

double parse_duration(std::string_view text) {
  constexpr std::string_view kAllowed = "a positive number with ns, us, ms, s, min or h, such as 5ms or 10min";
  return parse_positive(text, kDurations, "a duration", 1e9, kAllowed);
}

int64_t parse_bytes(std::string_view text) {
  constexpr std::string_view kAllowed =
      "a positive number of bytes, or one with kB, MB, GB, KiB, MiB or GiB, such as 200MiB";
  const double bytes = std::round(parse_quantity(text, kBytes, "a size", kAllowed));
  if (!(bytes >= 1 && bytes < 9e18))
    throw_error(ErrorKind::usage, quote(text), " is not a size; allowed is ", kAllowed, ".");
  return static_cast<int64_t>(bytes);
}

double parse_rate(std::string_view text) {
  constexpr std::string_view kAllowed = "a positive number of samples a second, such as 500/s";
  return parse_positive(text, kRates, "a rate", 1e12, kAllowed);
}

double parse_fraction(std::string_view text) {
  constexpr std::string_view kAllowed = "0% to 100%, such as 0.5%, or the same as 0 to 1, such as 0.005";
  const double fraction = parse_quantity(text, kFractions, "a fraction", kAllowed);
  if (!(fraction >= 0 && fraction <= 1))
    throw_error(ErrorKind::usage, quote(text), " is not a fraction; allowed is ", kAllowed, ".");
  return fraction;
}

std::string format_duration(double seconds) {
  if (std::isnan(seconds)) return "? s";
  if (seconds < 0) return "-" + format_duration(-seconds);
  if (seconds == 0) return "0 s";
  constexpr Unit kSteps[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
  for (const Unit& step : kSteps) {
    const double value = seconds / step.factor;
    if (value < 999.5) return format_number(value, choose_decimals(value), step.name);
  }
  if (seconds < 7200) return format_number(seconds / 60, 1, "min");
  return format_number(seconds / 3600, 1, "h");
}

std::string format_bytes(int64_t bytes) {
  if (bytes < 0) return "-" + format_bytes(bytes == INT64_MIN ? INT64_MAX : -bytes);
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return format_number(value, value < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string format_percent(double fraction) {
  if (std::isnan(fraction)) return "? %";
  return format_number(fraction * 100, 2, "%");
}

}  // namespace lissome
