#include "lissome/cli/model.h"

#include <dlfcn.h>

#include "lissome/base.h"

namespace lissome {
namespace {

constexpr const char* kTorchLibrary = "liblissome_torch.so";
constexpr std::string_view kZipMagic("PK\x03\x04", 4);

// The folder of liblissome_runtime.so, where its neighbours are.
std::string find_library_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&lissome_version), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

// A .lissome by its content, whatever it is called; other archives and files are the torch library's to name.
std::optional<ModelFile> try_load_model_file(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 4));
  if (start != kZipMagic) return std::nullopt;
  if (ZipReader::from_file(file).find("lissome.json") == nullptr) return std::nullopt;
  return load_model_file(path);
}

}  // namespace

const TorchEntry& load_torch() {
  static const TorchEntry* entry = [] {
    require_space_for_libtorch();
    const std::string path = find_library_folder() + kTorchLibrary;
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

std::vector<DataSignature> describe_inputs(const Plan& plan) {
  std::vector<DataSignature> signature;
  for (const PlanInput& input : plan.inputs) {
    DataSignature entry;
    entry.name = input.name;
    if (input.value >= 0) {
      const PlanValue& value = plan.values.at(static_cast<size_t>(input.value));
      entry.dtype = value.dtype;
      for (const SizeExpression& size : value.sizes) entry.sizes.push_back(size.constant().value_or(-1));
    }
    signature.push_back(std::move(entry));
  }
  return signature;
}

std::vector<NamedArray> choose_inputs(const Plan& plan, const std::string& path, int64_t batch, uint64_t seed,
                                      std::vector<std::string>* notes) {
  const std::vector<DataSignature> signature = describe_inputs(plan);
  if (!path.empty()) return fit_inputs(load_arrays(path), signature, path, notes);
  GenerateOptions options;
  options.batch = batch;
  options.seed = seed;
  return generate_inputs(signature, options);
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
