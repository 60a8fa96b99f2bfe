// Reading flags with CLI11, the same way in every command: a wrong flag is a usage error with the help at hand.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lissome/base.h"

namespace lissome {

// Parses; returns false when help was printed and the command is done. Throws usage for anything wrong.
inline bool parse_flags(CLI::App& app, std::vector<std::string> arguments) {
  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
    return true;
  } catch (const CLI::CallForHelp& help) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    throw_error(ErrorKind::usage, error.what(), "\nSee lissome ", app.get_name(), " --help");
  }
}

}  // namespace lissome
