// The commands that need libtorch, and the hooks through which the program reaches them.
#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>

#include "lissome/cli/command.h"
#include "lissome/cli/model.h"
#include "lissome/cli/native_code.h"
#include "lissome/cli/program_file.h"
#include "lissome/lower.h"
#include "lissome/program.h"
#include "lissome/tune.h"

namespace lissome {
namespace {

constexpr Command kCommands[] = {
    {"optimize", "make a model faster or smaller within a loss, measured on your data", run_optimize},
    {"train", "train a .pt2 on your data; the result is in eval form", run_train},
    {"budget", "show how a model trains inside a memory budget: what it keeps and recomputes", run_budget},
    {"prepare", "make a model faster by exact steps only: eval form, folding, fusion, layout", run_prepare},
    {"quantize", "make the quantized form of a model that the flags describe", run_quantize},
    {"inspect", "show inputs, outputs, dimensions, parameters, ops and program text", run_inspect},
};

// Errors of libtorch carry a stack trace; their first line is for people. A failed check is about the model or the
// data, so invalid_input; a failed internal assertion is not.
template <typename Work>
auto wrap_torch_errors(const Work& work) {
  try {
    return work();
  } catch (const c10::OutOfMemoryError& error) {
    throw_error(ErrorKind::over_budget, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    const bool asserted = text.find("INTERNAL ASSERT") != std::string::npos;
    throw_error(asserted ? ErrorKind::internal : ErrorKind::invalid_input, "libtorch reports: ", text);
  }
}

int run_torch_command(const std::string& name, const std::vector<std::string>& arguments, Console& console) {
  for (const Command& command : kCommands) {
    if (command.name == name) return wrap_torch_errors([&] { return command.run(arguments, console); });
  }
  throw_error(ErrorKind::internal, "the torch library has no command '", name, "': the libraries are of two versions");
}

// The plan of the user's model: imported without optimization, with every node by the reference.
Plan make_plan(const std::string& path, int threads, const std::string& device) {
  check_device(device);
  LowerOptions options;
  options.effort = Effort::fast;
  options.threads = threads;
  options.device = device;
  options.forced = {{"*", "reference"}};
  return wrap_torch_errors([&] { return lower_program(open_program(path), options); });
}

}  // namespace

}  // namespace lissome

extern "C" const lissome::TorchEntry* lissome_torch_entry() {
  static const lissome::TorchEntry entry = {lissome::run_torch_command, lissome::make_plan,
                                            lissome::measure_libtorch_peak, lissome::find_native_code,
                                            lissome::open_native_code};
  return &entry;
}
