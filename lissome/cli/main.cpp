// The program. It does not use torch: commands that need torch are in liblissome_torch.so, which is loaded on demand.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "lissome/allow_op.h"
#include "lissome/base.h"
#include "lissome/cli/command.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/interrupt.h"
#include "lissome/cli/model.h"
#include "lissome/op_library.h"

namespace lissome {
namespace {

constexpr Command kCommands[] = {
    {"run", "run a model on arrays from a file", run_run},
    {"bench", "time models against each other, in turns", run_bench},
    {"profile", "show time, memory and kernel of every node", run_profile},
    {"audit", "show the kernel, dtype and device of every node", run_audit},
    {"peaks", "show the peak performance of this machine", run_peaks},
    {"launch", "start processes that train one model together", run_launch},
};

// Commands of the torch library, for the help and to tell a typing error from a command.
struct TorchCommand {
  std::string_view name, summary;
};
constexpr TorchCommand kTorchCommands[] = {
    {"optimize", "make a model faster or smaller within a loss, measured on your data"},
    {"train", "train a .pt2 on your data; the result is in eval form"},
    {"budget", "show how a model trains inside a memory budget: what it keeps and recomputes"},
    {"prepare", "make a model faster by exact steps only: eval form, folding, fusion, layout"},
    {"quantize", "make the quantized form of a model that the flags describe"},
    {"inspect", "show inputs, outputs, dimensions, parameters, ops and program text"},
};

std::string make_help() {
  std::string text = "lissome " + std::string(lissome_version()) +
                     ": makes PyTorch models fast, small and cheap to train\n\n" +
                     "  lissome COMMAND MODEL [flags]        lissome COMMAND --help\n\n";
  text += "Every command takes --json, --no-color, --isa LEVEL (use kernels up to it), --cache FOLDER,\n";
  text += "--op-library FILE (load your own ops), --allow-op NAME (let models call this op).\n\n";
  const auto add = [&](std::string_view name, std::string_view summary) {
    text += "  " + std::string(name) + std::string(12 - name.size(), ' ') + std::string(summary) + "\n";
  };
  for (const TorchCommand& command : kTorchCommands) add(command.name, command.summary);
  for (const Command& command : kCommands) add(command.name, command.summary);
  return text +
         "\nA MODEL is a .pt2 of torch.export.save or a .lissome. Exit codes: 0 done, 1 failed, 2 usage, 3 goal or "
         "budget not met,\n"
         "4 a model or data file refused, 130 interrupted.\n";
}

// Applies the flags that every command has, at any position; see make_help(). Returns the other arguments.
std::vector<std::string> apply_common_flags(const std::vector<std::string>& arguments, Console& console) {
  std::vector<std::string> others;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto take_value = [&](const char* what) {
      if (i + 1 == arguments.size()) throw_error(ErrorKind::usage, arguments[i], " needs ", what);
      return arguments[++i];
    };
    if (arguments[i] == "--no-color") {
      console.disable_color();
    } else if (arguments[i] == "--isa") {
      mask_features(take_value("a level: none, avx2, avx512, vnni, bf16 or amx"));
    } else if (arguments[i] == "--cache") {
      set_cache_folder(take_value("a folder, or none"));
    } else if (arguments[i] == "--op-library") {
      load_op_library(take_value("a shared library that defines ops (TORCH_LIBRARY)"));
    } else if (arguments[i] == "--allow-op") {
      allow_op(take_value("the full name of an op, for example mylib::my_op"));
    } else {
      others.push_back(arguments[i]);
    }
  }
  return others;
}

int dispatch_command(const std::vector<std::string>& arguments, Console& console) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    console.print(make_help());
    return arguments.empty() ? exit_code(ErrorKind::usage) : 0;
  }
  if (arguments[0] == "--version") {
    console.print("lissome " + std::string(lissome_version()) + "\n");
    return 0;
  }
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  std::vector<std::string> known;
  for (const Command& command : kCommands) {
    if (command.name == arguments[0]) return command.run(rest, console);
    known.emplace_back(command.name);
  }
  for (const TorchCommand& command : kTorchCommands) {
    if (command.name == arguments[0]) return load_torch().run_command(arguments[0], rest, console);
    known.emplace_back(command.name);
  }
  const std::string nearest = find_nearest(arguments[0], known);
  throw_error(ErrorKind::usage, "there is no command '", arguments[0], "'",
              nearest.empty() ? std::string() : "; did you mean '" + nearest + "'?", "\nCommands: ", join(known, ", "));
}

int run_program(const std::vector<std::string>& words, Console& console) {
  try {
    return dispatch_command(apply_common_flags(words, console), console);
  } catch (const HelpRequest& help) {
    console.print(help.text);
    return 0;
  }
}

// Threads of libtorch that have nothing to do look for work 300,000 times by default, some 15 ms, before they sleep.
// Where another process wants the processor, libtorch's own threads wait for them. 3,000 times take 0.1 ms, which is
// beyond the time between two ops.
void limit_spinning() { setenv("GOMP_SPINCOUNT", "3000", /*overwrite=*/0); }

// Prints the error to stderr and returns the exit code. A broken mapping is the cause of any other error.
int report_failure(const Console& console, const std::exception_ptr& failure) {
  const auto report = [&](ErrorKind kind, const std::string& message) {
    console.say("error " + std::string(error_kind_name(kind)) + ": " + message);
    return exit_code(kind);
  };
  try {
    check_mappings();
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return report(error.kind(), error.message());
  } catch (const std::bad_alloc&) {
    return report(ErrorKind::over_budget, "out of memory");
  } catch (const std::system_error& error) {
    const bool scarce = error.code() == std::errc::resource_unavailable_try_again;
    if (scarce) return report(ErrorKind::over_budget, "no memory for another thread, or no permission to start one");
    return report(ErrorKind::internal, error.what());
  } catch (const std::exception& error) {
    return report(ErrorKind::internal, error.what());
  }
}

}  // namespace
}  // namespace lissome

int main(int count, char** arguments) {
  lissome::install_signal_handlers();
  lissome::limit_spinning();
  lissome::Console console;
  int code = 0;
  try {
    code = lissome::run_program({arguments + 1, arguments + count}, console);
    lissome::check_mappings();
  } catch (...) {
    code = lissome::report_failure(console, std::current_exception());
  }
  return lissome::finish_program(code);
}
