// liblissome_reference.so: runs the reference steps of a plan through PyTorch's dispatcher. The runtime loads it when a
// plan holds such steps; everything goes through the interface of runtime/session/reference.h.
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Device.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <map>

#include "lissome/reference/device.h"
#include "lissome/reference/judged_steps.h"
#include "lissome/reference/prepared_program.h"
#include "lissome/runtime.h"

namespace lissome {
namespace {

at::Tensor wrap(const TensorView& view) {
  return at::from_blob(view.data, view.sizes, view.strides, scalar_type_of(view.dtype));
}

Dtype dtype_of_number(PlanKind kind) {
  if (kind == PlanKind::integer) return Dtype::i64;
  return kind == PlanKind::floating ? Dtype::f64 : Dtype::boolean;
}

c10::IValue read_number(PlanKind kind, const TensorView& view) {
  if (view.dtype != dtype_of_number(kind) || view.elements() != 1) {
    throw_error(ErrorKind::invalid_input, "plan: a value of kind ", plan_kind_name(kind), " is ",
                dtype_name(view.dtype), format_sizes(view.sizes), ", not one ", dtype_name(dtype_of_number(kind)));
  }
  switch (kind) {
    case PlanKind::integer: return *static_cast<const int64_t*>(view.data);
    case PlanKind::floating: return *static_cast<const double*>(view.data);
    case PlanKind::boolean: return *static_cast<const bool*>(view.data);
    default: throw_error(ErrorKind::internal, "an input is of kind ", plan_kind_name(kind));
  }
}

// Keeps the tensor alive as long as the array; copies where the memory is not the tensor's own to give away.
Array to_array(at::Tensor tensor) {
  if (tensor.layout() != at::kStrided) {
    throw_error(ErrorKind::unsupported, "an output is a sparse tensor; only dense ones can leave a session");
  }
  tensor = tensor.resolve_conj().resolve_neg().cpu();
  // Without elements there may be no memory either, and an array without memory stands for none.
  if (tensor.numel() == 0) return make_array(dtype_of(tensor.scalar_type()), tensor.sizes().vec());
  const bool borrowed = tensor.storage().data_ptr().get_context() == nullptr;
  tensor =
      borrowed || tensor.storage().use_count() > 1 ? tensor.clone(at::MemoryFormat::Contiguous) : tensor.contiguous();
  auto* const owner = new at::Tensor(tensor);
  return {dtype_of(tensor.scalar_type()), tensor.sizes().vec(),
          std::shared_ptr<void>(tensor.data_ptr(), [owner](void*) { delete owner; })};
}

Array to_array(const c10::IValue& value) {
  if (value.isTensor() && value.toTensor().defined()) return to_array(value.toTensor());
  Array array;
  if (value.isInt()) {
    array = make_array(Dtype::i64, {});
    *array.data<int64_t>() = value.toInt();
  } else if (value.isDouble()) {
    array = make_array(Dtype::f64, {});
    *array.data<double>() = value.toDouble();
  } else if (value.isBool()) {
    array = make_array(Dtype::boolean, {});
    *array.data<bool>() = value.toBool();
  } else if (!value.isNone() && !value.isTensor()) {
    throw_error(ErrorKind::unsupported, "an output is a ", value.tagKind(),
                "; tensors and numbers can leave a session");
  }
  return array;
}

constexpr size_t kMostRecordings = 16;

struct PreparedStep {
  std::unique_ptr<const PreparedProgram> program;  // null for native steps
  const PlanStep* step = nullptr;
  bool recordable = false;  // see can_be_recorded
};

class LibtorchReference;

class LibtorchRun : public ReferenceRun {
 public:
  explicit LibtorchRun(const LibtorchReference& reference);
  void lend(PlanValueId value, const TensorView& view) override;
  void lend_number(PlanValueId value, PlanKind kind, const TensorView& view) override {
    held_[static_cast<size_t>(value)] = read_number(kind, view);
  }
  void run_step(int step, const StepSink* sink) override;
  void* read(PlanValueId value, Dtype dtype, const Sizes& sizes, Format format) override;
  Array take(PlanValueId value) override;
  Array copy(PlanValueId value) override;
  void drop(PlanValueId value) override { held_[static_cast<size_t>(value)] = c10::IValue(); }
  void clear() override {
    for (c10::IValue& value : held_) value = c10::IValue();
  }

 private:
  // One recorded step, for inputs of certain sizes and dtypes.
  struct Recording {
    IValues inputs, results;  // the memory that the record reads and writes
    std::unique_ptr<RecordedCall> call;
  };

  IValues gather_inputs(const PreparedStep& prepared) const;
  IValues run_recorded(int step, const IValues& inputs);
  IValues run_nodes(int step, IValues inputs, const StepSink* sink);
  void tell(int step, size_t node, const IValues& results, int64_t nanoseconds, const StepSink& sink) const;
  c10::IValue own(c10::IValue value) const;
  at::Tensor own(const at::Tensor& tensor) const;

  const LibtorchReference& reference_;
  IValues held_;  // by plan value; what was lent lies here too
  std::vector<IValues> environments_;
  std::map<std::string, Recording> recordings_;  // by step, dtypes and sizes
};

class LibtorchReference : public Reference {
 public:
  explicit LibtorchReference(const ReferenceSetup& setup)
      : plan_(*setup.plan), arrays_(setup.arrays), threads_(setup.threads), device_(open_device(setup.plan->device)) {
    register_ops();
    const c10::InferenceMode mode;
    std::vector<std::pair<std::string, at::Tensor>> weights;
    for (size_t i = 0; i < plan_.arrays.size(); ++i) {
      weights.emplace_back(plan_.arrays[i].name, wrap(arrays_[i].view()));
    }
    judged_ = judge_steps(plan_, weights);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      PreparedStep prepared;
      prepared.step = &plan_.steps[i];
      if (std::optional<Program>& program = judged_.programs[i]) {
        prepared.recordable = device_.is_cuda() && can_be_recorded(*program);
        prepared.program = std::make_unique<PreparedProgram>(std::move(*program), device_);
        program.reset();
      }
      steps_.push_back(std::move(prepared));
    }
  }

  std::unique_ptr<ReferenceRun> make_run() const override { return std::make_unique<LibtorchRun>(*this); }
  int64_t packed_bytes() const override {
    int64_t bytes = 0;
    for (const PreparedStep& step : steps_) bytes += step.program ? step.program->packed_bytes() : 0;
    return bytes;
  }

  const Plan& plan() const { return plan_; }
  const PreparedStep& step(int position) const { return steps_[static_cast<size_t>(position)]; }
  size_t step_count() const { return steps_.size(); }
  const c10::Device& device() const { return device_; }
  // A program writes somewhere, and this value may be the caller's, whose memory is not for that.
  bool must_copy(PlanValueId value) const {
    return judged_.copies_inputs && judged_.callers[static_cast<size_t>(value)] &&
           plan_.value(value).storage != Storage::held;
  }
  bool is_array(const void* data) const {
    return std::any_of(arrays_.begin(), arrays_.end(), [&](const Array& array) {
      const auto* const first = static_cast<const std::byte*>(array.storage.get());
      return data >= first && data < first + array.bytes();
    });
  }
  int threads() const { return threads_; }

 private:
  // A plan names a device that its maker had.
  static c10::Device open_device(const std::string& name) {
    const c10::Device device(name);
    if (device.is_cpu() || (device.is_cuda() && at::hasCUDA())) return device;
    throw_error(ErrorKind::unsupported, "the plan was made for ", name, ", which is not there",
                "\n      Make it anew for the processor: lissome prepare");
  }

  const Plan& plan_;
  const std::vector<Array> arrays_;
  int threads_;
  c10::Device device_;
  JudgedSteps judged_;
  std::vector<PreparedStep> steps_;
};

LibtorchRun::LibtorchRun(const LibtorchReference& reference)
    : reference_(reference), held_(reference.plan().values.size()), environments_(reference.step_count()) {}

void LibtorchRun::lend(PlanValueId value, const TensorView& view) {
  const c10::InferenceMode mode;
  held_[static_cast<size_t>(value)] = wrap(view).to(reference_.device());
}

void LibtorchRun::run_step(int position, const StepSink* sink) {
  const c10::InferenceMode mode;
  const TorchThreads threads(reference_.threads());
  const PreparedStep& prepared = reference_.step(position);
  IValues inputs = gather_inputs(prepared);
  // Nodes are timed one by one, which a record does not do.
  const bool recorded = prepared.recordable && !sink &&
                        std::all_of(inputs.begin(), inputs.end(), [](const auto& input) { return input.isTensor(); });
  IValues results = recorded ? run_recorded(position, inputs) : run_nodes(position, std::move(inputs), sink);
  for (size_t i = 0; i < results.size(); ++i) {
    const auto at = static_cast<size_t>(prepared.step->results[i]);
    check_held(reference_.plan().values[at], results[i]);
    held_[at] = prepared.step->keeps_operands ? std::move(results[i]) : own(std::move(results[i]));
  }
}

// A plan that says of a step that its results share nothing with its operands frees the operands' memory behind it. A
// result that lies there all the same is copied.
c10::IValue LibtorchRun::own(c10::IValue value) const {
  if (value.isTensor() && value.toTensor().defined()) return own(value.toTensor());
  if (value.isTensorList() || (value.isList() && !value.isIntList() && !value.isDoubleList() && !value.isBoolList())) {
    c10::impl::GenericList items(c10::AnyType::get());
    for (const c10::IValue& item : value.toListRef()) items.push_back(own(item));
    return items;
  }
  return value;
}

at::Tensor LibtorchRun::own(const at::Tensor& tensor) const {
  const auto lies_elsewhere = [&](const at::Tensor& part) {
    return part.has_storage() && part.storage().data_ptr().get_context() == nullptr && part.numel() > 0 &&
           !reference_.is_array(part.const_data_ptr());
  };
  bool borrowed = false;
  if (tensor.layout() == at::kStrided) {
    borrowed = lies_elsewhere(tensor);
  } else if (tensor.layout() == at::kSparse) {
    borrowed = lies_elsewhere(tensor._indices()) || lies_elsewhere(tensor._values());
  } else if (tensor.layout() != at::kMkldnn) {
    borrowed = true;  // compressed forms have four parts; they are rare
  }
  return borrowed ? tensor.clone() : tensor;
}

IValues LibtorchRun::gather_inputs(const PreparedStep& prepared) const {
  IValues inputs;
  for (const PlanValueId operand : prepared.step->operands) {
    c10::IValue value = held_[static_cast<size_t>(operand)];
    if (reference_.must_copy(operand) && value.isTensor()) value = value.toTensor().clone();
    inputs.push_back(std::move(value));
  }
  return inputs;
}

IValues LibtorchRun::run_recorded(int position, const IValues& inputs) {
  std::string key = std::to_string(position);
  for (const c10::IValue& input : inputs) {
    const at::Tensor& tensor = input.toTensor();
    key += std::string(" ") + c10::toString(tensor.scalar_type()) + format_sizes(tensor.sizes().vec());
  }
  if (!recordings_.contains(key) && recordings_.size() >= kMostRecordings) recordings_.clear();
  Recording& recording = recordings_[key];
  if (!recording.call) {
    recording.inputs.clear();
    for (const c10::IValue& input : inputs) recording.inputs.emplace_back(input.toTensor().clone());
    recording.call =
        record_call(reference_.device(), [&] { recording.results = run_nodes(position, recording.inputs, nullptr); });
  }
  for (size_t i = 0; i < inputs.size(); ++i) recording.inputs[i].toTensor().copy_(inputs[i].toTensor());
  recording.call->replay();
  return recording.results;
}

IValues LibtorchRun::run_nodes(int position, IValues inputs, const StepSink* sink) {
  const PreparedStep& prepared = reference_.step(position);
  const std::function<void(size_t, const IValues&, int64_t)> observe = [&](size_t node, const IValues& results,
                                                                           int64_t nanoseconds) {
    tell(position, node, results, nanoseconds, *sink);
  };
  IValues& environment = environments_[static_cast<size_t>(position)];
  try {
    return prepared.program->run(std::move(inputs), environment, sink ? &observe : nullptr);
  } catch (...) {
    environment.clear();
    throw;
  }
}

void LibtorchRun::tell(int step, size_t node, const IValues& results, int64_t nanoseconds, const StepSink& sink) const {
  int64_t bytes = 0;
  for (const c10::IValue& result : results) {
    if (!result.isTensor() || !result.toTensor().defined()) continue;
    bytes += result.toTensor().numel() * static_cast<int64_t>(result.toTensor().element_size());
  }
  const PlanStep& planned = *reference_.step(step).step;
  sink({step, &planned.origins[node], planned.kernel, reference_.device().is_cpu() ? "libtorch" : "cuda",
        reference_.threads(), nanoseconds, bytes});
}

void* LibtorchRun::read(PlanValueId value, Dtype dtype, const Sizes& sizes, Format format) {
  const c10::InferenceMode mode;
  const PlanValue& planned = reference_.plan().value(value);
  c10::IValue& held = held_[static_cast<size_t>(value)];
  if (!held.isTensor() || !held.toTensor().defined() || held.toTensor().layout() != at::kStrided ||
      !held.toTensor().device().is_cpu()) {
    throw_error(ErrorKind::invalid_input, "plan: %", planned.name, " is no dense tensor");
  }
  at::Tensor tensor = held.toTensor().resolve_conj().resolve_neg();
  if (dtype_of(tensor.scalar_type()) != dtype || tensor.sizes() != sizes) {
    throw_error(ErrorKind::invalid_input, "plan: %", planned.name, " is ", dtype_name(dtype_of(tensor.scalar_type())),
                format_sizes(tensor.sizes().vec()), ", planned were ", dtype_name(dtype), format_sizes(sizes));
  }
  const Sizes strides = dense_strides(sizes, format);
  bool dense = true;
  for (size_t i = 0; i < sizes.size(); ++i)
    dense = dense && (sizes[i] == 1 || tensor.stride(static_cast<int64_t>(i)) == strides[i]);
  if (!dense) {
    at::Tensor copy = at::empty_strided(sizes, strides, tensor.options());
    copy.copy_(tensor);
    tensor = copy;
  }
  held = tensor;
  return tensor.data_ptr();
}

Array LibtorchRun::take(PlanValueId value) {
  const c10::InferenceMode mode;
  return to_array(std::exchange(held_[static_cast<size_t>(value)], c10::IValue()));
}

Array LibtorchRun::copy(PlanValueId value) {
  const c10::InferenceMode mode;
  return to_array(held_[static_cast<size_t>(value)]);  // held twice meanwhile, so the memory is copied
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Reference* lissome_open_reference(const ReferenceSetup& setup) {
  return new LibtorchReference(setup);
}

}  // namespace lissome
