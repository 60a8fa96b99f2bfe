// Reading flags with CLI11, the same way in every command: a wrong flag is a usage error with the help at hand.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lissome/base.h"

namespace lissome {

// "; did you mean --threads?" for a flag that the command does not have.
inline std::string suggest_flag(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const std::string& argument : arguments) {
    const std::string flag = argument.substr(0, argument.find('='));
    if (!flag.starts_with("--") || std::find(known.begin(), known.end(), flag) != known.end()) continue;
    const std::string nearest = find_nearest(flag, known);
    if (!nearest.empty()) return "; did you mean " + nearest + "?";
  }
  return {};
}

// Parses; returns false when help was printed and the command is done. Throws usage for anything wrong.
inline bool parse_flags(CLI::App& app, const std::vector<std::string>& arguments) {
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return true;
  } catch (const CLI::CallForHelp& help) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    throw_error(ErrorKind::usage, error.what(), suggest_flag(app, arguments), "\nSee lissome ", app.get_name(), " --help");
  }
}

}  // namespace lissome
