// Reads case.json and the npz files beside it. Arrays whose element type NumPy lacks (bf16, 8-bit floats) come as
// unsigned integers; case.json says what they stand for.
#include "case_reader.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "lissome/base.h"
#include "lissome/program.h"

namespace lissome {
namespace {

using Arrays = std::map<std::string, Array>;

at::ScalarType type_of(const std::string& word) {
  if (word == "f8_e4m3fn") return at::kFloat8_e4m3fn;
  if (word == "f8_e5m2") return at::kFloat8_e5m2;
  const auto dtype = parse_dtype(word);
  LISSOME_CHECK(dtype.has_value(), "element type ", word);
  return scalar_type_of(*dtype);
}

at::Tensor to_tensor(const Array& array, at::ScalarType type) {
  at::Tensor tensor = at::empty(array.sizes, at::TensorOptions(type));
  LISSOME_CHECK(tensor.nbytes() == static_cast<size_t>(array.bytes()), "an array of ", array.bytes(), " bytes");
  if (tensor.nbytes() > 0) std::memcpy(tensor.data_ptr(), array.storage.get(), tensor.nbytes());
  return tensor;
}

Arrays read_arrays(const std::string& path) {
  Arrays arrays;
  for (NamedArray& named : load_arrays(path)) arrays.emplace(named.name, std::move(named.array));
  return arrays;
}

// `row` describes the value: kind and, for tensors, dtype. A float64 run may hold another dtype: the array's own.
c10::IValue read_value(const Json& row, const std::string& key, const Arrays& arrays, bool own_type) {
  const auto found = arrays.find(key);
  if (found == arrays.end()) return {};
  const Array& array = found->second;
  const std::string kind = row.at("kind");
  if (kind == "tensor") {
    const bool is_bits = row.at("stored") == "uint8" || row.at("stored") == "uint16";
    const bool own = own_type && !(is_bits && array.dtype == parse_dtype(row.at("stored") == "uint8" ? "u8" : "u16"));
    return to_tensor(array, own ? scalar_type_of(array.dtype) : type_of(row.at("dtype")));
  }
  const at::Scalar number = to_tensor(array, scalar_type_of(array.dtype)).item();
  if (kind == "bool") return number.toBool();
  if (kind == "int") return number.toLong();
  return number.toDouble();
}

std::vector<c10::IValue> read_outputs(const Json& rows, const std::string& path, bool own_type) {
  const Arrays arrays = read_arrays(path);
  std::vector<c10::IValue> values;
  for (size_t i = 0; i < rows.size(); ++i) {
    values.push_back(read_value(rows[i], "output_" + std::to_string(i), arrays, own_type));
  }
  return values;
}

std::vector<c10::IValue> read_inputs(const Json& rows, const std::string& path) {
  const Arrays arrays = read_arrays(path);
  std::vector<c10::IValue> values;
  for (const Json& row : rows) {
    if (row.contains("fixed") && row.at("fixed").get<bool>()) continue;
    values.push_back(read_value(row, row.at("name"), arrays, false));
  }
  return values;
}

std::vector<std::pair<std::string, at::Tensor>> read_state(const Json& rows, const std::string& path, bool own_type) {
  const Arrays arrays = read_arrays(path);
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (const Json& row : rows) {
    Json described = row;
    described["kind"] = "tensor";
    const c10::IValue value = read_value(described, row.at("name"), arrays, own_type);
    if (value.isTensor()) state.emplace_back(row.at("name"), value.toTensor());
  }
  return state;
}

ParityRun read_run(const Json& document, const Json& row, const std::string& folder) {
  ParityRun run;
  const auto path = [&](const char* key) { return folder + "/" + row.at(key).get<std::string>(); };
  run.inputs = read_inputs(document.at("inputs"), path("inputs"));
  run.expected = read_outputs(document.at("outputs"), path("expected"), false);
  if (row.at("f64").is_string()) run.f64 = read_outputs(document.at("outputs"), path("f64"), true);
  if (row.at("eval").is_string()) run.eval = read_outputs(document.at("outputs"), path("eval"), false);
  if (row.at("eval_f64").is_string()) run.eval_f64 = read_outputs(document.at("outputs"), path("eval_f64"), true);
  run.inputs_after.resize(run.inputs.size());
  if (row.at("inputs_after").is_string()) run.inputs_after = read_inputs(document.at("inputs"), path("inputs_after"));
  return run;
}

}  // namespace

ParityCase read_parity_case(const std::string& folder) {
  const Json document = parse_json(read_text_file(folder + "/case.json", 64 << 20), folder + "/case.json");
  ParityCase parity;
  parity.folder = folder;
  parity.name = document.at("name");
  parity.family = document.at("family");
  parity.mode = document.at("mode");
  parity.dynamic = document.at("dynamic");
  parity.seed = document.at("seed");
  parity.outputs = document.at("outputs").size();
  for (const Json& row : document.at("runs")) parity.runs.push_back(read_run(document, row, folder));
  const Json& state = document.at("state");
  if (state.is_object()) {
    parity.state.emplace();
    const auto path = [&](const char* key) { return folder + "/" + state.at(key).get<std::string>(); };
    parity.state->before = read_state(state.at("tensors"), path("before"), false);
    parity.state->after = read_state(state.at("tensors"), path("after"), false);
    if (state.at("f64").is_string()) parity.state->f64 = read_state(state.at("tensors"), path("f64"), true);
  }
  return parity;
}

}  // namespace lissome
