// Runs of parity cases; see case_runs.h.
#include "case_runs.h"

#include <ATen/Context.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "lissome/base.h"

namespace lissome {

std::vector<std::string> list_case_folders(const std::string& parent, const std::set<std::string>& wanted) {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(parent)) {
    const std::string name = entry.path().filename().string();
    if (!std::filesystem::exists(entry.path() / "case.json")) continue;
    if (wanted.empty() || wanted.contains(name)) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<c10::IValue> copy_values(const std::vector<c10::IValue>& values) {
  std::vector<c10::IValue> copies;
  for (const c10::IValue& value : values) copies.push_back(value.isTensor() ? value.toTensor().clone() : value);
  return copies;
}

std::vector<c10::IValue> run_program(const Program& program, const ParityCase& parity, std::vector<c10::IValue> inputs,
                                     const InterpretOptions& options) {
  at::manual_seed(parity.seed);
  return interpret(program, std::move(inputs), options);
}

Program copy_state(const Program& program) {
  Program copy = program;
  std::map<const void*, at::Tensor> copies;  // tied buffers stay tied
  for (Weight& weight : copy.weights) {
    if (weight.role == WeightRole::parameter) continue;
    at::Tensor& own = copies[weight.tensor.unsafeGetTensorImpl()];
    if (!own.defined()) own = weight.tensor.clone();
    weight.tensor = own;
  }
  return copy;
}

void require_agreement(const std::string& what, const Agreement& agreement) {
  if (!agreement.agrees) throw_error(ErrorKind::internal, what, ": ", agreement.reason);
}

std::string describe_failure(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find("\nException raised from"));
}

}  // namespace lissome
