// Every environment variable that lissome reads, in one table. Each has a flag or a function too; the page
// docs/environment.md shows the same rows, and a test compares both.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lissome {

struct EnvironmentVariable {
  std::string_view name;
  std::string_view flag;     // the command line's spelling of the same
  std::string_view allowed;  // values
  std::string_view effect;
};

std::span<const EnvironmentVariable> environment_variables();

// The value, nothing when it is unset or empty. The name must be in the table (internal error otherwise).
std::optional<std::string> read_environment(std::string_view name);

}  // namespace lissome
