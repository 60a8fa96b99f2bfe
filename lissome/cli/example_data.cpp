#include "lissome/cli/example_data.h"

#include <ATen/core/ivalue.h>

#include "lissome/compare.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

constexpr uint64_t kSeed = 0;
constexpr int64_t kSmallestBatch = 0;  // as CallSizes::choose() defines it

const at::Tensor& find_output(const Program& model, const std::vector<c10::IValue>& outputs, const std::string& name) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].isTensor() && (name.empty() || model.outputs[i].name == name)) return outputs[i].toTensor();
  }
  throw_error(ErrorKind::invalid_input, "the model has no output ", name.empty() ? "" : quote(name) + " ",
              "that is a tensor");
}

// Labels of class 0 for each score, or targets like the output. Classes are dimension 1, or the last of [samples,
// words, classes].
Array make_labels(const at::Tensor& output, LossKind loss) {
  Sizes sizes = output.sizes().vec();
  if (loss != LossKind::cross_entropy) return make_array(Dtype::f32, sizes);
  const bool classes_last = sizes.size() == 3 && sizes[2] > sizes[1];
  if (sizes.size() > 1) sizes.erase(classes_last ? sizes.end() - 1 : sizes.begin() + 1);
  return make_array(Dtype::i64, sizes);
}

}  // namespace

Dataset make_example_data(const Program& model, const LossOptions& loss) {
  std::vector<NamedArray> arrays =
      generate_inputs(describe_inputs(model), describe_call(model).choose(kSmallestBatch), kSeed);
  if (loss.kind == LossKind::output) return make_dataset(std::move(arrays), {}, "generated data");
  Program eval = model;
  convert_to_inference(eval);
  const std::vector<c10::IValue> outputs = interpret(eval, to_ivalues(arrays));
  const std::string name = "labels";
  arrays.push_back({name, make_labels(find_output(model, outputs, loss.output), loss.kind)});
  return make_dataset(std::move(arrays), {.labels = name}, "generated data");
}

}  // namespace lissome
