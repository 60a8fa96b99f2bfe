#include "lissome/lower/tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>

#include "lissome/lower.h"

namespace lissome {

Array share_tensor(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor dense = tensor.detach().resolve_conj().resolve_neg().contiguous();
  if (dense.numel() == 0) return make_array(dtype_of(dense.scalar_type()), dense.sizes().vec());
  auto* const owner = new at::Tensor(dense);
  return {dtype_of(dense.scalar_type()), dense.sizes().vec(),
          std::shared_ptr<void>(dense.data_ptr(), [owner](void*) { delete owner; })};
}

at::Tensor share_array(const Array& array) {
  return at::from_blob(array.storage.get(), array.sizes, [kept = array.storage](void*) {}, scalar_type_of(array.dtype));
}

namespace {

// What a session sees of one argument; `kept` holds what was made for it.
TensorView view_input(const c10::IValue& value, Array& kept) {
  if (value.isTensor()) {
    kept = share_tensor(value.toTensor());
  } else if (value.isInt()) {
    kept = make_array(Dtype::i64, {});
    *kept.data<int64_t>() = value.toInt();
  } else if (value.isDouble()) {
    kept = make_array(Dtype::f64, {});
    *kept.data<double>() = value.toDouble();
  } else if (value.isBool()) {
    kept = make_array(Dtype::boolean, {});
    *kept.data<bool>() = value.toBool();
  } else {
    throw_error(ErrorKind::invalid_input, "an input is a ", value.tagKind(), "; tensors and numbers are allowed");
  }
  return kept.view();
}

c10::IValue read_output(const Plan& plan, size_t i, const Array& array) {
  if (!array.storage) return {};
  const PlanOutput& output = plan.outputs[i];
  if (is_value(output.value)) {
    // What has no known type is a tensor: numbers are typed wherever they come from.
    const PlanKind kind = plan.value(output.value).kind;
    if (kind == PlanKind::tensor || kind == PlanKind::other) return share_array(array);
  }
  switch (array.dtype) {
    case Dtype::f64: return *array.data<double>();
    case Dtype::boolean: return *array.data<bool>();
    default: return *array.data<int64_t>();
  }
}

}  // namespace

LentInputs::LentInputs(const std::vector<c10::IValue>& inputs) : kept_(inputs.size()) {
  for (size_t i = 0; i < inputs.size(); ++i) views_.push_back(view_input(inputs[i], kept_[i]));
}

std::vector<c10::IValue> read_outputs(const Plan& plan, const std::vector<Array>& arrays) {
  std::vector<c10::IValue> outputs;
  for (size_t i = 0; i < arrays.size(); ++i) outputs.push_back(read_output(plan, i, arrays[i]));
  return outputs;
}

std::vector<c10::IValue> run_session(Session& session, const std::vector<c10::IValue>& inputs, const StepSink* sink) {
  const LentInputs lent(inputs);
  return read_outputs(session.plan(), session.run(lent.views(), sink));
}

bool is_finite(const at::Tensor& tensor) {
  const Array array = share_tensor(tensor);
  const float* first = array.data<float>();
  return std::all_of(first, first + array.elements(), [](float x) { return std::isfinite(x); });
}

}  // namespace lissome
