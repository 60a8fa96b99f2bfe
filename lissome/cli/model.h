// Opens a model of the command line: a finished .lissome without libtorch, anything else through the torch library,
// which is loaded on demand.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lissome/cli/console.h"
#include "lissome/data.h"
#include "lissome/runtime.h"

namespace lissome {

// The plan of a finished model, or of any other model without optimization (imported, each node by the reference). For
// a device other than "cpu", the torch library lowers the program of a finished model for that device.
std::shared_ptr<const Plan> open_plan(const std::string& path, int threads, const std::string& device = "cpu");

// The signature of a plan's inputs, for matching data. Index ranges come from the plan.
std::vector<DataSignature> describe_inputs(const Plan& plan);
// The batches that the plan takes, and the sizes of its inputs for one.
CallSizes describe_call(const Plan& plan);

// The inputs for one call: from `path`, matched as described in docs/data.md, or generated if it is empty. `batch` sets
// the first size of generated inputs and does not change given ones. `note`, which may be empty, receives which array
// feeds which input if their names differ, and which data was left out or rounded.
using NoteSink = std::function<void(const std::string& note)>;
std::vector<NamedArray> choose_inputs(const Plan& plan, const std::string& path, int64_t batch, uint64_t seed,
                                      const NoteSink& note);
// Prints each note.
NoteSink say_notes(const Console& console);
// Prints each note once, whichever of many files it is about.
NoteSink say_notes_once(const Console& console, const std::vector<std::string>& files);

std::vector<TensorView> view_arrays(std::span<const NamedArray> arrays);

// "34.0 MiB of 128.0 MiB of weights are read with every call, at 3.1 GiB a second: about 11 ms more"
std::string describe_stream(const StreamFacts& stream);

// Whether a file holds native code, and whether it also holds a program.
enum class NativeCode : uint8_t { none, beside_program, alone };
// A call of native code, with inputs and outputs in its order.
using NativeRun = std::function<std::vector<Array>(std::span<const TensorView>)>;

// ---- the torch library, loaded on demand ----
// The symbol `lissome_torch_entry` of liblissome_torch.so.
struct TorchEntry {
  int (*run_command)(const std::string& name, const std::vector<std::string>& arguments, class Console& console);
  Plan (*make_plan)(const std::string& path, int threads, const std::string& device);
  int64_t (*measure_peak)(const std::function<void()>& work);  // see measure_libtorch_peak
  NativeCode (*find_native_code)(const std::string& path);     // see native_code.h
  NativeRun (*open_native_code)(const std::string& path, int threads);
};
// Throws unsupported if the library or libtorch is absent.
const TorchEntry& load_torch();

}  // namespace lissome
