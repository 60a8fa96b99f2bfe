#include "lissome/cli/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <sstream>
#include <type_traits>

#include "lissome/base.h"
#include "lissome/cli/flag_help.h"

namespace lissome {
namespace {

template <typename T>
struct Range {
  T least, most;

  // Leaves out a limit that only the type sets.
  std::string describe() const {
    if (least == std::numeric_limits<T>::lowest()) return "a whole number";
    std::ostringstream text;
    text << least;
    if (most == std::numeric_limits<T>::max()) return text.str() + " or more";
    text << " to " << most;
    return text.str();
  }
  bool holds(T number) const { return number >= least && number <= most; }  // false for NaN
};

// The help with a note in parentheses before its last period.
std::string append_note(std::string help, const std::string& note) {
  const bool ends = help.ends_with('.');
  if (ends) help.pop_back();
  return help + " (" + note + ")" + (ends ? "." : "");
}

template <typename T>
void add_number(CLI::App& app, const std::string& name, T& to, const std::string& help, const Range<T>& range) {
  const auto refuse_others = [range](const std::string& word) {
    T number{};
    const bool read = CLI::detail::lexical_cast(word, number);
    return read && range.holds(number) ? std::string() : word + " was given; " + range.describe() + " is allowed";
  };
  const bool is_whole = std::is_integral_v<T>;
  std::ostringstream text;
  text << range.describe();
  if (range.holds(to)) text << "; default " << to;
  app.add_option(name, to, append_note(help, text.str()))
      ->type_name(is_whole ? "N" : "NUMBER")
      ->check(CLI::Validator(refuse_others, std::string()));
}

}  // namespace

Flags::Flags(const std::string& command, const std::string& help) : app_(std::make_unique<CLI::App>(help, command)) {}
Flags::~Flags() = default;

void Flags::require(const std::string& name, std::string& to, const std::string& help) {
  app_->add_option(name, to, help)->required();
}

void Flags::require(const std::string& name, std::vector<std::string>& to, const std::string& help) {
  app_->add_option(name, to, help)->required()->allow_extra_args(false);
}

void Flags::add(const std::string& name, std::string& to, const std::string& help, const char* type) {
  app_->add_option(name, to, to.empty() ? help : append_note(help, "default " + to))->type_name(type);
}

// A flag takes one value at a time, so that a model may follow it.
void Flags::add(const std::string& name, std::vector<std::string>& to, const std::string& help) {
  CLI::Option* option = app_->add_option(name, to, help);
  if (name.starts_with("--")) option->allow_extra_args(false);
}

void Flags::add(const std::string& name, bool& to, const std::string& help) { app_->add_flag(name, to, help); }

void Flags::add(const std::string& name, uint64_t& to, const std::string& help) {
  // CLI11 reads -1 as the largest number.
  const auto refuse_negative = [](const std::string& word) {
    return word.starts_with('-') ? word + " was given; 0 or more is allowed" : std::string();
  };
  app_->add_option(name, to, append_note(help, "default " + std::to_string(to)))
      ->type_name("N")
      ->check(CLI::Validator(refuse_negative, std::string()));
}

void Flags::add(const std::string& name, int& to, const std::string& help, int least, int most) {
  add_number(*app_, name, to, help, Range<int>{least, most});
}

void Flags::add(const std::string& name, int64_t& to, const std::string& help, int64_t least, int64_t most) {
  add_number(*app_, name, to, help, Range<int64_t>{least, most});
}

void Flags::add(const std::string& name, double& to, const std::string& help, double least) {
  add_number(*app_, name, to, help, Range<double>{least, std::numeric_limits<double>::max()});
}

void Flags::add_hidden(const std::string& name, std::string& to) { app_->add_option(name, to)->group(""); }

void Flags::add_hidden(const std::string& name, bool& to) { app_->add_flag(name, to)->group(""); }

void Flags::add_json(bool& to) { add("--json", to, kJsonHelp); }

void Flags::parse(const std::vector<std::string>& arguments) {
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    throw HelpRequest{app_->help()};
  } catch (const CLI::ParseError& error) {
    throw_error(ErrorKind::usage, error.what(), suggest(arguments), "\nSee lissome ", app_->get_name(), " --help");
  }
}

// "; did you mean --threads?" for a flag that the command does not have.
std::string Flags::suggest(const std::vector<std::string>& arguments) const {
  std::vector<std::string> known;
  for (const CLI::Option* option : app_->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const std::string& argument : arguments) {
    const std::string flag = argument.substr(0, argument.find('='));
    if (!flag.starts_with("--") || std::find(known.begin(), known.end(), flag) != known.end()) continue;
    const auto begins = [&](const std::string& name) { return flag.size() > 4 && name.starts_with(flag); };
    const bool is_shortened = std::ranges::count_if(known, begins) == 1;
    const std::string nearest = is_shortened ? *std::ranges::find_if(known, begins) : find_nearest(flag, known);
    if (!nearest.empty()) return "; did you mean " + nearest + "?";
  }
  return {};
}

void add_call_flags(Flags& flags, CallFlags& call) {
  flags.add("--input", call.input, kInputHelp);
  flags.add("--batch", call.batch, kCallBatchHelp, 0);
  flags.add("--threads", call.threads, kModelThreadsHelp, 0, kMostThreads);
  flags.add("--seed", call.seed, kSeedHelp);
  flags.add("--device", call.device, kDeviceHelp);
}

}  // namespace lissome
