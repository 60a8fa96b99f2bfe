// What a file that was given as a model is, told from its first bytes and, for archives, from the names of its members.
// Nothing in the file is run, unpickled or trusted. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lissome {

enum class ModelKind : uint8_t {
  pt2,             // torch.export.save
  old_pt2,         // torch.export.save of torch 2.7 and before: another container
  lissome,         // model.lissome
  torchscript,     // torch.jit.save
  state_dict,      // torch.save of tensors by name
  pickled_module,  // torch.save of a whole module
  legacy_pickle,   // torch.save before 1.6, or any other pickle
  aotinductor,     // native code, without a graph
  executorch,      // a program for a phone
  onnx,
  safetensors,
  numpy,  // .npy, .npz: data
  zip,    // some other archive
  directory,
  text,
  empty,
  unknown,
};

// Throws usage when there is no such file, invalid_input for special files, io when it cannot be read.
ModelKind detect_model_kind(const std::string& path);
// "a TorchScript archive": for messages.
std::string_view describe_model_kind(ModelKind kind);
// Says what the file is, what is read instead and how to make it (Python lines). Throws usage for a directory,
// invalid_input for what is no model, unsupported for models of other kinds.
[[noreturn]] void refuse_model_kind(const std::string& path, ModelKind kind);

}  // namespace lissome
