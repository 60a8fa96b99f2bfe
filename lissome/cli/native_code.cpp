#include "lissome/cli/native_code.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <algorithm>

#include "lissome/cli/copy_tensor.h"
#include "lissome/program.h"

namespace lissome {
namespace {

using Loader = torch::inductor::AOTIModelPackageLoader;

// Finds a package without a program as detect_model_kind() does; the first folder is the archive's own.
bool holds_native_code(const std::string& path) {
  const ZipReader zip = ZipReader::from_file(MappedFile::open(path));
  return std::any_of(zip.members().begin(), zip.members().end(), [](const ZipMember& member) {
    return member.name.find("/data/aotinductor/") != std::string::npos;
  });
}

// Reports errors of the code as errors of the file.
template <typename Work>
auto blame_file(const std::string& path, const Work& work) {
  const auto refuse = [&](const std::string& why) {
    throw_error(ErrorKind::invalid_input, "the native code of ", quote(path),
                " does not run: ", why.substr(0, why.find('\n')));
  };
  try {
    return work();
  } catch (const c10::Error& error) {
    refuse(error.what_without_backtrace());
  } catch (const std::runtime_error& error) {
    refuse(error.what());
  }
  throw_error(ErrorKind::internal, "a refusal returned");
}

}  // namespace

NativeCode find_native_code(const std::string& path) {
  const ModelKind kind = detect_model_kind(path);
  if (kind == ModelKind::aotinductor) return NativeCode::alone;
  return kind == ModelKind::pt2 && holds_native_code(path) ? NativeCode::beside_program : NativeCode::none;
}

NativeRun open_native_code(const std::string& path, int threads) {
  if (threads > 0) at::set_num_threads(threads);
  const auto loader = blame_file(path, [&] { return std::make_shared<Loader>(path); });
  return [loader, path](std::span<const TensorView> inputs) {
    const c10::InferenceMode inference;
    std::vector<at::Tensor> tensors;
    for (const TensorView& input : inputs) {
      tensors.push_back(at::from_blob(const_cast<void*>(static_cast<const void*>(input.data)), input.sizes,
                                      at::TensorOptions().dtype(scalar_type_of(input.dtype))));
    }
    std::vector<Array> outputs;
    for (const at::Tensor& output : blame_file(path, [&] { return loader->run(tensors); }))
      outputs.push_back(copy_tensor(output));
    return outputs;
  };
}

}  // namespace lissome
