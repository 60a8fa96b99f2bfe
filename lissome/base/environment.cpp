// The table of environment variables and the only place that reads them.
#include "lissome/base/environment.h"

#include <algorithm>
#include <cstdlib>

#include "lissome/base/error.h"

namespace lissome {
namespace {

constexpr EnvironmentVariable kVariables[] = {
    {"GLOO_SOCKET_IFNAME", "launch", "a network interface, for example eth0",
     "Over which ranks of a training reach each other, where the host's name does not say it."},
    {"HOME", "--cache", "a folder", "The cache is `.cache/lissome` in it, where nothing else says."},
    {"LISSOME_CACHE", "--cache", "a folder, or none",
     "Where measurements of this machine are kept, so that they are made once."},
    {"LISSOME_ISA", "--isa", "none, avx2, avx512, vnni, bf16, amx",
     "Kernels use no instruction set above this one, to try lesser paths on a better processor."},
    {"MASTER_ADDR", "launch", "a host", "Where ranks of a training meet (lissome launch, torchrun)."},
    {"MASTER_PORT", "launch --port", "1 to 65535", "The port there."},
    {"NO_COLOR", "--no-color", "anything", "No colours on a terminal (no-color.org)."},
    {"RANK", "launch", "0 to WORLD_SIZE - 1", "Which of the ranks that train together this process is."},
    {"TORCHELASTIC_USE_AGENT_STORE", "launch", "True or False",
     "The launcher keeps the store where ranks meet, not rank 0."},
    {"WORLD_SIZE", "launch --processes", "1 to 65536", "How many ranks train together."},
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
