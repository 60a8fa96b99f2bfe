// A level of functorch's stack for the time of one body; see interpret_vmap.h.
#include "lissome/program/interpret/interpret_vmap.h"

#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/ops/movedim.h>
#include <c10/core/WrapDimMinimal.h>

#include <charconv>
#include <optional>

#include "lissome/base.h"

namespace lissome {
namespace {

using Dimensions = std::vector<std::optional<int64_t>>;  // nothing: all examples share the value

struct VmapMode {
  at::functorch::RandomnessType randomness = at::functorch::RandomnessType::Error;
  Dimensions inputs, outputs;
};

Dimensions parse_dimensions(const std::string& text) {
  Dimensions dimensions;
  if (text.empty()) return dimensions;
  for (const std::string& word : split(text, ',')) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    const bool is_number = error == std::errc() && end == word.data() + word.size();
    LISSOME_CHECK(is_number || word == "-", "batch dimension '", word, "'");
    dimensions.push_back(is_number ? std::optional<int64_t>(number) : std::nullopt);
  }
  return dimensions;
}

VmapMode parse_mode(const std::string& text) {
  const std::vector<std::string> parts = split(text.substr(text.find('=') + 1), ';');
  LISSOME_CHECK(parts.size() == 3, "region mode '", text, "'");
  VmapMode mode;
  if (parts[0] == "same") mode.randomness = at::functorch::RandomnessType::Same;
  if (parts[0] == "different") mode.randomness = at::functorch::RandomnessType::Different;
  mode.inputs = parse_dimensions(parts[1]);
  mode.outputs = parse_dimensions(parts[2]);
  return mode;
}

int64_t find_batch_size(const Dimensions& dimensions, const std::vector<c10::IValue>& operands) {
  std::optional<int64_t> batch;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!dimensions[i]) continue;
    const int64_t size = operands[i].toTensor().size(*dimensions[i]);
    if (batch.value_or(size) != size) {
      throw_error(ErrorKind::invalid_input, "a vmapped region takes operands of ", *batch, " and ", size, " examples");
    }
    batch = size;
  }
  if (!batch) throw_error(ErrorKind::internal, "a vmapped region takes no batched operand");
  return *batch;
}

class VmapLevel {
 public:
  VmapLevel(int64_t batch, at::functorch::RandomnessType randomness)
      : level_(at::functorch::initAndPushDynamicLayer(at::functorch::TransformType::Vmap, c10::SymInt(batch),
                                                      randomness)) {}
  VmapLevel(const VmapLevel&) = delete;
  VmapLevel& operator=(const VmapLevel&) = delete;
  ~VmapLevel() { at::functorch::popDynamicLayerAndDeleteMetadata(); }
  int64_t level() const { return level_; }

 private:
  int64_t level_;
};

// at::_add_batch_dim and its kin make tensors of the older vmap, which has few rules and knows nothing of levels.
at::Tensor add_batch(const at::Tensor& tensor, int64_t dimension, int64_t level) {
  return at::functorch::addBatchDim(tensor, c10::maybe_wrap_dim(dimension, tensor.dim()), level);
}

// A result that no mapped operand reached is the same for all examples.
at::Tensor remove_batch(const at::Tensor& tensor, int64_t dimension, int64_t level, int64_t batch) {
  const at::functorch::BatchedTensorImpl* batched = at::functorch::maybeGetBatchedImpl(tensor);
  if (batched != nullptr && batched->level() == level) return at::movedim(batched->value(), batched->bdim(), dimension);
  at::Tensor result = tensor.unsqueeze(dimension);
  std::vector<int64_t> sizes(static_cast<size_t>(result.dim()), -1);
  sizes[static_cast<size_t>(c10::maybe_wrap_dim(dimension, result.dim()))] = batch;
  return result.expand(sizes);
}

}  // namespace

std::vector<c10::IValue> run_vmapped(const std::string& text, std::vector<c10::IValue> operands, const RunBody& run) {
  const VmapMode mode = parse_mode(text);
  LISSOME_CHECK(mode.inputs.size() == operands.size(), operands.size(), " operands for mode '", text, "'");
  const int64_t batch = find_batch_size(mode.inputs, operands);
  const VmapLevel vmap(batch, mode.randomness);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (mode.inputs[i]) operands[i] = add_batch(operands[i].toTensor(), *mode.inputs[i], vmap.level());
  }
  std::vector<c10::IValue> results = run(std::move(operands));
  LISSOME_CHECK(mode.outputs.size() == results.size(), results.size(), " results for mode '", text, "'");
  for (size_t i = 0; i < results.size(); ++i) {
    const int64_t dimension = mode.outputs[i].value_or(0);
    results[i] = remove_batch(results[i].toTensor(), dimension, vmap.level(), batch);
  }
  return results;
}

}  // namespace lissome
