// Tells model files apart without trusting them; see detect.h. Archives are opened by the strict reader, so a hostile
// one is refused here already.
#include "lissome/program/import/detect.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <span>

#include "lissome/base.h"

namespace lissome {
namespace {

using Bytes = std::span<const std::byte>;

uint8_t byte_at(Bytes bytes, size_t index) { return std::to_integer<uint8_t>(bytes[index]); }

bool starts_with(Bytes bytes, std::string_view mark) {
  return bytes.size() >= mark.size() && std::memcmp(bytes.data(), mark.data(), mark.size()) == 0;
}

bool is_pickle(Bytes bytes) {
  return bytes.size() > 2 && byte_at(bytes, 0) == 0x80 && byte_at(bytes, 1) >= 2 && byte_at(bytes, 1) <= 5;
}

// Eight bytes of length, then a JSON header of that length.
bool is_safetensors(Bytes bytes) {
  if (bytes.size() < 10 || byte_at(bytes, 8) != '{') return false;
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= uint64_t{byte_at(bytes, i)} << (8 * i);
  return length >= 2 && length <= bytes.size() - 8;
}

// A protobuf message that opens with field 1, a small version, and goes on with a field that ONNX's ModelProto has.
bool is_onnx(Bytes bytes) {
  if (bytes.size() < 4 || byte_at(bytes, 0) != 0x08 || byte_at(bytes, 1) == 0 || byte_at(bytes, 1) > 0x20) return false;
  constexpr std::array<uint8_t, 7> kFields = {0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42};
  return std::find(kFields.begin(), kFields.end(), byte_at(bytes, 2)) != kFields.end();
}

bool is_text(Bytes bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 4096));
  // A cut in the middle of a character is no mistake of the file's.
  while (!text.empty() && text.size() == 4096 && (static_cast<uint8_t>(text.back()) & 0x80) != 0) text.remove_suffix(1);
  return is_utf8(text) && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<uint8_t>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
         });
}

// What torch.save pickled, told from the first class that the pickle names: tensors by name are a plain or ordered
// dict.
ModelKind detect_pickled(const ZipReader& zip, const ZipMember& member) {
  if (!member.stored) return ModelKind::pickled_module;
  const Bytes bytes = zip.view(member);
  if (!is_pickle(bytes)) return ModelKind::pickled_module;
  const Bytes body = bytes.subspan(2);
  const bool dict = starts_with(body, "}") || starts_with(body, "ccollections\nOrderedDict\n");
  return dict ? ModelKind::state_dict : ModelKind::pickled_module;
}

ModelKind detect_archive(const ZipReader& zip) {
  const ZipMember* pickle = nullptr;
  bool format = false, graph = false, native = false, code = false, phone = false, onnx = false, old = false;
  bool arrays = !zip.members().empty(), lissome = false;
  for (const ZipMember& member : zip.members()) {
    const std::string_view name = member.name;
    const size_t slash = name.find('/');
    const std::string_view inner = slash == std::string_view::npos ? name : name.substr(slash + 1);
    arrays = arrays && name.ends_with(".npy");
    lissome = lissome || name == "program.txt" || name == "lissome.json";
    format = format || inner == "archive_format";
    graph = graph || (inner.starts_with("models/") && inner.ends_with(".json"));
    native = native || inner.starts_with("data/aotinductor/") || name.ends_with(".so");
    phone = phone || inner.starts_with("data/executorch/") || name.ends_with(".pte");
    code = code || inner.starts_with("code/") || inner == "constants.pkl";
    onnx = onnx || name.ends_with(".onnx");
    old = old || name == "serialized_exported_program.json";
    if (inner == "data.pkl") pickle = &member;
  }
  if (lissome) return ModelKind::lissome;
  if (format && graph) return ModelKind::pt2;
  if (old) return ModelKind::old_pt2;
  if (native) return ModelKind::aotinductor;
  if (phone) return ModelKind::executorch;
  if (format) return ModelKind::pt2;
  if (code) return ModelKind::torchscript;
  if (pickle != nullptr) return detect_pickled(zip, *pickle);
  if (onnx) return ModelKind::onnx;
  return arrays ? ModelKind::numpy : ModelKind::zip;
}

ModelKind detect_bytes(const std::shared_ptr<const MappedFile>& file) {
  const Bytes bytes = file->bytes();
  if (bytes.empty()) return ModelKind::empty;
  if (starts_with(bytes, "PK\x03\x04") || starts_with(bytes, "PK\x05\x06")) {
    return detect_archive(ZipReader::from_file(file));
  }
  if (starts_with(bytes, "\x93NUMPY")) return ModelKind::numpy;
  if (bytes.size() > 8 && starts_with(bytes.subspan(4), "ET1")) return ModelKind::executorch;
  if (is_safetensors(bytes)) return ModelKind::safetensors;
  if (is_onnx(bytes)) return ModelKind::onnx;
  if (is_pickle(bytes)) return ModelKind::legacy_pickle;
  return is_text(bytes) ? ModelKind::text : ModelKind::unknown;
}

struct KindRow {
  ModelKind kind;
  std::string_view description;
  std::string_view advice;
};

constexpr std::string_view kExport =
    "\n      import torch"
    "\n      torch.export.save(torch.export.export(module.eval(), (example_input,)), \"model.pt2\")";
constexpr std::string_view kExportState =
    "\n      import torch; module.load_state_dict(torch.load(\"weights.pt\"))  # module: of the class they belong to"
    "\n      torch.export.save(torch.export.export(module.eval(), (example_input,)), \"model.pt2\")";
constexpr std::string_view kExportPickled =
    "\n      import torch; module = torch.load(\"module.pt\", weights_only=False)  # runs its code: only if you trust "
    "it"
    "\n      torch.export.save(torch.export.export(module.eval(), (example_input,)), \"model.pt2\")";

constexpr KindRow kKinds[] = {
    {ModelKind::pt2, "a .pt2 of torch.export.save", ""},
    {ModelKind::old_pt2, "a .pt2 of torch 2.7 or older", " Export the model again with torch 2.11 to 2.13:"},
    {ModelKind::lissome, "a model saved by lissome", ""},
    {ModelKind::torchscript, "a TorchScript archive", " Export the Python module instead:"},
    {ModelKind::state_dict, "a state dict: weights by name, without the model",
     " Export the module that they belong to:"},
    {ModelKind::pickled_module, "a pickled Python object, which only Python can run", " Export it from Python:"},
    {ModelKind::legacy_pickle, "a Python pickle", " Pickles are never opened. Export the module from Python:"},
    {ModelKind::aotinductor, "an AOTInductor package: native code without the graph",
     " Native code is run by `lissome bench --allow-native` alone, from files that you trust. Export the graph "
     "itself:"},
    {ModelKind::executorch, "an ExecuTorch program", " Export the module that it was made from:"},
    {ModelKind::onnx, "an ONNX model", " Export the PyTorch module that it was made from:"},
    {ModelKind::safetensors, "safetensors: weights by name, without the model",
     " Export the module that they belong to:"},
    {ModelKind::numpy, "NumPy arrays: data, not a model", " A model comes from Python:"},
    {ModelKind::zip, "a zip archive that holds no model", " A model comes from Python:"},
    {ModelKind::directory, "a directory", " A model is one file, which comes from Python:"},
    {ModelKind::text, "plain text", " A model comes from Python:"},
    {ModelKind::empty, "an empty file", " A model comes from Python:"},
    {ModelKind::unknown, "no kind of file that lissome knows", " A model comes from Python:"},
};

const KindRow& row_of(ModelKind kind) {
  for (const KindRow& row : kKinds) {
    if (row.kind == kind) return row;
  }
  throw_error(ErrorKind::internal, "model kind ", static_cast<int>(kind), " has no row");
}

ErrorKind error_kind_of(ModelKind kind) {
  switch (kind) {
    case ModelKind::directory: return ErrorKind::usage;
    case ModelKind::numpy:
    case ModelKind::zip:
    case ModelKind::text:
    case ModelKind::empty:
    case ModelKind::unknown: return ErrorKind::invalid_input;
    default: return ErrorKind::unsupported;
  }
}

}  // namespace

ModelKind detect_model_kind(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return ModelKind::directory;
  return detect_bytes(MappedFile::open(path));
}

std::string_view describe_model_kind(ModelKind kind) { return row_of(kind).description; }

void refuse_model_kind(const std::string& path, ModelKind kind) {
  const KindRow& row = row_of(kind);
  std::string_view lines = kExport;
  if (kind == ModelKind::state_dict || kind == ModelKind::safetensors) lines = kExportState;
  if (kind == ModelKind::pickled_module || kind == ModelKind::legacy_pickle) lines = kExportPickled;
  throw_error(error_kind_of(kind), quote(path), " is ", row.description, "; a .pt2 of torch.export.save is needed.",
              row.advice, lines);
}

}  // namespace lissome
