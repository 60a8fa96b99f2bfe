// A command of the program: its name, one line of help, and the function that reads its flags and runs it. The table of
// commands without libtorch is in main.cpp, that of the others in torch_commands.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lissome/cli/console.h"

namespace lissome {

struct Command {
  std::string_view name;
  std::string_view summary;
  // `arguments`: those after the command's name. Returns the exit code; throws Error.
  int (*run)(const std::vector<std::string>& arguments, Console& console);
};

int run_run(const std::vector<std::string>& arguments, Console& console);
int run_bench(const std::vector<std::string>& arguments, Console& console);
int run_profile(const std::vector<std::string>& arguments, Console& console);
int run_audit(const std::vector<std::string>& arguments, Console& console);
int run_peaks(const std::vector<std::string>& arguments, Console& console);
int run_inspect(const std::vector<std::string>& arguments, Console& console);
int run_prepare(const std::vector<std::string>& arguments, Console& console);
int run_quantize(const std::vector<std::string>& arguments, Console& console);
int run_optimize(const std::vector<std::string>& arguments, Console& console);
int run_budget(const std::vector<std::string>& arguments, Console& console);
int run_train(const std::vector<std::string>& arguments, Console& console);
int run_launch(const std::vector<std::string>& arguments, Console& console);

}  // namespace lissome
