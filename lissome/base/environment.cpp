// The table of environment variables and the only place that reads them.
#include "lissome/base/environment.h"

#include <algorithm>
#include <cstdlib>

#include "lissome/base/error.h"

namespace lissome {
namespace {

constexpr EnvironmentVariable kVariables[] = {
    {"HOME", "--cache", "a folder", "The cache is `.cache/lissome` in it, where nothing else says."},
    {"LISSOME_CACHE", "--cache", "a folder, or none",
     "Where measurements of this machine are kept, so that they are made once."},
    {"LISSOME_ISA", "--isa", "none, avx2, avx512, vnni, bf16, amx",
     "Kernels use no instruction set above this one, to try lesser paths on a better processor."},
    {"NO_COLOR", "--no-color", "anything", "No colours on a terminal (no-color.org)."},
    {"XDG_CACHE_HOME", "--cache", "a folder", "The cache is `lissome` in it, unless LISSOME_CACHE is set."},
};

}  // namespace

std::span<const EnvironmentVariable> environment_variables() { return kVariables; }

std::optional<std::string> read_environment(std::string_view name) {
  const bool known = std::any_of(std::begin(kVariables), std::end(kVariables),
                                 [&](const EnvironmentVariable& row) { return row.name == name; });
  LISSOME_CHECK(known, name, " is not in the table of environment variables");
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace lissome
