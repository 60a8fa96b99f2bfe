#include "lissome/cli/model.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "lissome/base.h"
#include "lissome/own_folder.h"

namespace lissome {
namespace {

constexpr const char* kTorchLibrary = "liblissome_torch.so";

}  // namespace

const TorchEntry& load_torch() {
  static const TorchEntry* entry = [] {
    const std::string path = find_own_folder() + kTorchLibrary;
    struct stat file{};  // access() asks for the real user, whatever rights this process has
    if (stat(path.c_str(), &file) != 0) {
      throw_error(ErrorKind::unsupported, "this needs libtorch and the part of lissome that makes models, and ", path,
                  " is not there; only finished models run without\nInstall both with: pip install lissome torch");
    }
    require_space_for_libtorch();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      throw_error(ErrorKind::unsupported, "this needs libtorch, which could not be loaded: ", dlerror(),
                  "\nInstall it with: pip install torch==2.13.0, and build lissome against it");
    }
    void* symbol = dlsym(library, "lissome_torch_entry");
    LISSOME_CHECK(symbol != nullptr, path, " is of another version");
    return reinterpret_cast<const TorchEntry* (*)()>(symbol)();
  }();
  return *entry;
}

std::shared_ptr<const Plan> open_plan(const std::string& path, int threads, const std::string& device) {
  if (device != "cpu") return std::make_shared<const Plan>(load_torch().make_plan(path, threads, device));
  if (const std::optional<ModelFile> file = try_load_model_file(path); file && !file->plan.empty()) {
    return std::make_shared<const Plan>(read_plan(*file));
  }
  return std::make_shared<const Plan>(load_torch().make_plan(path, threads, device));
}

namespace {

bool asks_for_nonfinite(const Plan& plan, PlanValueId value) {
  return std::ranges::any_of(plan.steps, [&](const PlanStep& step) {
    return std::ranges::find(step.operands, value) != step.operands.end() &&
           std::ranges::any_of(step.origins,
                               [](const PlanOrigin& origin) { return lissome::asks_for_nonfinite(origin.op); });
  });
}

}  // namespace

std::vector<DataSignature> describe_inputs(const Plan& plan) {
  std::vector<DataSignature> signature;
  for (const PlanInput& input : plan.inputs) {
    DataSignature entry;
    entry.name = input.name;
    if (is_value(input.value)) {
      const PlanValue& value = plan.value(input.value);
      entry.dtype = value.dtype;
      for (const SizeExpression& size : value.sizes) entry.sizes.push_back(size.constant().value_or(-1));
      entry.allow_nonfinite = asks_for_nonfinite(plan, input.value);
    }
    signature.push_back(std::move(entry));
  }
  return signature;
}

CallSizes describe_call(const Plan& plan) {
  std::vector<DimensionRange> dimensions;
  for (const PlanDimension& dimension : plan.dimensions) dimensions.push_back({dimension.minimum, dimension.maximum});
  const auto make_formula = [](const SizeExpression& size) -> SizeFormula {
    return [size](std::span<const int64_t> values) {
      return size.evaluate(DimensionValues(values.begin(), values.end()));
    };
  };
  std::vector<std::vector<SizeFormula>> inputs;
  for (const PlanInput& input : plan.inputs) {
    std::vector<SizeFormula>& sizes = inputs.emplace_back();
    if (!is_value(input.value)) continue;
    for (const SizeExpression& size : plan.value(input.value).sizes) sizes.push_back(make_formula(size));
  }
  std::vector<SizeFormula> requirements;
  for (const PlanRequirement& requirement : plan.requirements) requirements.push_back(make_formula(requirement.slack));
  return {std::move(dimensions), std::move(inputs), std::move(requirements)};
}

std::vector<NamedArray> choose_inputs(const Plan& plan, const std::string& path, int64_t batch, uint64_t seed,
                                      const NoteSink& note) {
  const std::vector<DataSignature> signature = describe_inputs(plan);
  if (!path.empty()) {
    std::vector<std::string> notes;
    std::vector<NamedArray> inputs = fit_inputs(load_arrays(path), signature, path, &notes);
    if (note)
      for (const std::string& text : notes) note(text);
    return inputs;
  }
  return generate_inputs(signature, describe_call(plan).choose(batch), seed);
}

NoteSink say_notes(const Console& console) {
  return [&console](const std::string& note) { console.say("note: " + note); };
}

NoteSink say_notes_once(const Console& console, const std::vector<std::string>& files) {
  return [&console, files, said = std::make_shared<std::set<std::string>>()](const std::string& note) {
    const auto about = std::find_if(files.begin(), files.end(),
                                    [&](const std::string& file) { return note.starts_with(quote(file)); });
    const std::string text = about == files.end() ? note : note.substr(quote(*about).size());
    if (said->insert(text).second) console.say("note: " + note);
  };
}

std::vector<TensorView> view_arrays(std::span<const NamedArray> arrays) {
  std::vector<TensorView> views;
  for (const NamedArray& array : arrays) views.push_back(array.array.view());
  return views;
}

std::string describe_stream(const StreamFacts& stream) {
  return format_bytes(stream.streamed) + " of " + format_bytes(stream.weights) +
         " of weights are read with every call, at " + format_bytes(static_cast<int64_t>(stream.bytes_per_second)) +
         " a second: about " + format_duration(stream.seconds()) + " more";
}

}  // namespace lissome
