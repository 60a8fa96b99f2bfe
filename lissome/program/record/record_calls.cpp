// A fallback at a dispatch key above all others that nothing else uses: switched on for one thread, it sees each op
// first, notes it and hands it on with the key switched off. So ops inside of ops stay unseen. Where gradients are
// recorded, an op that is composed of others, or that autocast casts for, is not noted but handed on with the key left
// on, so that its parts are seen. What plain C++ does to memory stays unseen; tensors that come from there are kept
// with their contents.
#include "lissome/program/record/record_calls.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "lissome/program/op/register.h"

namespace lissome {
namespace {

std::string plain_name(const c10::FunctionSchema& schema) { return schema.name().substr(schema.name().find(':') + 2); }

// Makes storage without contents. Code may fill it through its memory, which no op shows.
bool makes_empty(const c10::FunctionSchema& schema) {
  const std::string name = plain_name(schema);
  return name.starts_with("empty") || name.starts_with("new_empty");
}

// Takes sizes and element types of its tensors, no more.
bool reads_looks_alone(const c10::FunctionSchema& schema) {
  const std::string name = plain_name(schema);
  return name.ends_with("_like") || name.starts_with("new_") || name.ends_with("_as") || name == "size" ||
         name == "numel" || name == "is_same_size";
}

// Gives numbers to tensors. A tensor is known by its address; weak references keep addresses from being used again.
class TensorTable {
 public:
  explicit TensorTable(Recording& recording) : recording_(recording) {}

  ValueId add(const at::Tensor& tensor) {
    const auto id = static_cast<ValueId>(recording_.tensors.size());
    recording_.tensors.push_back({tensor.scalar_type(), tensor.sizes().vec(), {}});
    looks_.push_back(read_look(tensor));
    name_by_address(tensor, id);
    if (tensor.has_storage()) {
      by_storage_[storage_of(tensor)].push_back(id);
      kept_storages_.emplace_back(tensor.storage().getWeakStorageImpl());
    }
    return id;
  }

  void name_by_address(const at::Tensor& tensor, ValueId id) {
    by_address_.insert_or_assign(tensor.unsafeGetTensorImpl(), id);
    kept_tensors_.emplace_back(tensor.getIntrusivePtr());
  }

  // The number of a tensor that is known, by itself or as another handle to the same elements.
  ValueId find(const at::Tensor& tensor) {
    const Look look = read_look(tensor);
    const auto known = by_address_.find(tensor.unsafeGetTensorImpl());
    // unsqueeze_ and its kin give a tensor another look: from then on it goes by another number.
    if (known != by_address_.end() && looks_[static_cast<size_t>(known->second)] == look) return known->second;
    if (!tensor.has_storage()) return ValueId::none;
    const auto stored = by_storage_.find(storage_of(tensor));
    if (stored == by_storage_.end()) return ValueId::none;
    for (auto id = stored->second.rbegin(); id != stored->second.rend(); ++id) {
      if (looks_[static_cast<size_t>(*id)] != look) continue;
      name_by_address(tensor, *id);
      return *id;
    }
    return ValueId::none;
  }

  bool knows_storage(const at::Tensor& tensor) const {
    return tensor.has_storage() && by_storage_.contains(storage_of(tensor));
  }

  // Made without contents, and no op has written any so far.
  void expect_contents(ValueId id, const at::Tensor& tensor) {
    if (tensor.has_storage()) empty_.emplace(storage_of(tensor), std::pair(id, tensor));
  }

  void note_write(const at::Tensor& tensor) {
    if (tensor.has_storage()) empty_.erase(storage_of(tensor));
  }

  void note_read(const at::Tensor& tensor) {
    const auto found = tensor.has_storage() ? empty_.find(storage_of(tensor)) : empty_.end();
    if (found == empty_.end()) return;
    const auto& [id, whole] = found->second;
    recording_.tensors[static_cast<size_t>(id)].contents = whole.detach().clone();
    empty_.erase(found);
  }

 private:
  struct Look {
    at::ScalarType dtype = at::kFloat;
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0;
    bool conjugate = false, negative = false;  // views that read the same elements as others
    bool operator==(const Look&) const = default;
  };

  static const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
    return tensor.storage().unsafeGetStorageImpl();
  }

  static Look read_look(const at::Tensor& tensor) {
    Look look{tensor.scalar_type(), tensor.sizes().vec(), {}, 0, tensor.is_conj(), tensor.is_neg()};
    if (tensor.has_storage()) look.strides = tensor.strides().vec(), look.offset = tensor.storage_offset();
    return look;
  }

  Recording& recording_;
  std::vector<Look> looks_;  // by number
  std::unordered_map<const c10::TensorImpl*, ValueId> by_address_;
  std::unordered_map<const c10::StorageImpl*, std::vector<ValueId>> by_storage_;
  std::unordered_map<const c10::StorageImpl*, std::pair<ValueId, at::Tensor>> empty_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> kept_tensors_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> kept_storages_;
};

// A value as a program would hold it; `problem` says why it cannot.
class ValueNoter {
 public:
  ValueNoter(Recording& recording, TensorTable& tensors) : recording_(recording), tensors_(tensors) {}

  Argument note(const c10::IValue& value, const c10::Type& type, std::string& problem) {
    if (type.kind() == c10::TypeKind::OptionalType && !value.isNone()) {
      return note(value, *type.castRaw<c10::OptionalType>()->getElementType(), problem);
    }
    if (value.isTensor()) return note_tensor(value.toTensor(), problem);
    if (!value.isList()) return note_literal(value, type, problem);
    const c10::Type& element = type.kind() == c10::TypeKind::ListType ? *type.castRaw<c10::ListType>()->getElementType()
                                                                      : *c10::AnyType::get();
    ArgumentList items;
    const c10::List<c10::IValue> list = value.toList();
    for (size_t i = 0; i < list.size(); ++i) items.push_back(note(list.get(i), element, problem));
    return items;
  }

 private:
  Argument note_tensor(const at::Tensor& tensor, std::string& problem) {
    if (!tensor.defined()) return {};
    // Also where an op made it: as a value it would widen what it meets.
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return note_number(tensor.item());
    if (const ValueId known = tensors_.find(tensor); known != ValueId::none) return known;
    if (tensors_.knows_storage(tensor)) problem = "it takes a view of a known tensor that no op made";
    const ValueId id = tensors_.add(tensor);
    recording_.tensors[static_cast<size_t>(id)].contents = tensor.detach().clone();
    return id;
  }

  static Argument note_number(const at::Scalar& number) {
    if (number.isBoolean()) return number.toBool();
    if (number.isIntegral(false)) return number.toLong();
    if (!number.isComplex()) return number.toDouble();
    const auto value = number.toComplexDouble();
    return std::complex<double>(value.real(), value.imag());
  }

  static Argument note_literal(const c10::IValue& value, const c10::Type& type, std::string& problem) {
    if (value.isNone()) return {};
    if (value.isInt()) return note_integer(value.toInt(), type, problem);
    if (value.isScalar()) return note_number(value.toScalar());
    if (value.isString()) return value.toStringRef();
    if (value.isDevice()) return Device{value.toDevice().str()};
    problem = "an argument of type " + value.tagKind() + " has no place in a program";
    return {};
  }

  // The written type tells which integers are words.
  static Argument note_integer(int64_t number, const c10::Type& type, std::string& problem) {
    try {
      switch (type.kind()) {
        case c10::TypeKind::ScalarTypeType: return dtype_of(static_cast<at::ScalarType>(number));
        case c10::TypeKind::LayoutType: return layout_of(static_cast<at::Layout>(number));
        case c10::TypeKind::MemoryFormatType: return memory_format_of(static_cast<at::MemoryFormat>(number));
        default: return number;
      }
    } catch (const Error& error) {  // must not fly through PyTorch's kernels
      problem = error.message();
      return {};
    }
  }

  Recording& recording_;
  TensorTable& tensors_;
};

class Recorder {
 public:
  explicit Recorder(const std::vector<at::Tensor>& known) : tensors_(recording_), values_(recording_, tensors_) {
    // A tensor that is there twice goes by its first number.
    for (const at::Tensor& tensor : known) tensors_.add(tensor);
    for (auto tensor = known.rbegin(); tensor != known.rend(); ++tensor) {
      tensors_.name_by_address(*tensor, static_cast<ValueId>(std::distance(tensor, known.rend()) - 1));
    }
  }

  // Before the op runs: afterwards its arguments may hold something else.
  RecordedCall note_arguments(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values) {
    const c10::FunctionSchema& schema = op.schema();
    RecordedCall call{op, {}, {}, {}};
    for (size_t i = 0; i < values.size(); ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      const auto* alias = argument.alias_info();
      for_each_tensor(values[i], [&](const at::Tensor& tensor) {
        if (alias != nullptr && alias->isWrite()) tensors_.note_write(tensor);
        if (alias == nullptr && !reads_looks_alone(schema)) tensors_.note_read(tensor);
      });
      call.arguments.push_back(values_.note(values[i], *argument.real_type(), call.problem));
    }
    return call;
  }

  // `arguments` as they were handed to the op.
  void note_results(RecordedCall call, const std::vector<c10::IValue>& arguments, c10::ArrayRef<c10::IValue> values) {
    const c10::FunctionSchema& schema = call.op.schema();
    note_copies(schema, arguments, values);
    for (size_t i = 0; i < values.size(); ++i) {
      for_each_tensor(values[i], [&](const at::Tensor& tensor) {
        if (tensors_.find(tensor) == ValueId::none) tensors_.add(tensor);
      });
      call.results.push_back(values_.note(values[i], *schema.returns()[i].real_type(), call.problem));
      if (makes_empty(schema) && call.results.back().is_value()) {
        tensors_.expect_contents(call.results.back().value(), values[i].toTensor());
      }
    }
    recording_.calls.push_back(std::move(call));
  }

  Recording finish(const std::vector<at::Tensor>& outputs) {
    std::string problem;
    for (const at::Tensor& output : outputs) {
      if (output.defined()) tensors_.note_read(output);
      recording_.outputs.push_back(values_.note(output, *c10::TensorType::get(), problem));
    }
    if (!problem.empty()) throw_error(ErrorKind::unsupported, "an output of the module: ", problem);
    return std::move(recording_);
  }

 private:
  template <typename Visit>
  static void for_each_tensor(const c10::IValue& value, Visit&& visit) {
    if (value.isTensor() && value.toTensor().defined()) visit(value.toTensor());
    if (!value.isList()) return;
    for (const c10::IValue& item : value.toListRef()) for_each_tensor(item, visit);
  }

  // What may be a view but came out as a copy has read its argument.
  void note_copies(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& arguments,
                   c10::ArrayRef<c10::IValue> results) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto* alias = schema.arguments()[i].alias_info();
      if (alias == nullptr || alias->isWrite()) continue;
      for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
        bool copied = false;
        for (const c10::IValue& result : results) {
          for_each_tensor(result, [&](const at::Tensor& made) { copied |= !made.is_alias_of(tensor); });
        }
        if (copied) tensors_.note_read(tensor);
      });
    }
  }

  Recording recording_;
  TensorTable tensors_;
  ValueNoter values_;
};

struct Listener {
  Recorder* recorder = nullptr;
  RecordingLevel level = RecordingLevel::outermost;
};

thread_local Listener listener;

// Autograd knows it by its parts alone. An op with a kernel for the CPU beside its composed form (silu_backward) runs
// that kernel, which shows no parts.
bool is_composed(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

// Autocast's kernel for an op calls the casts and then the op itself, with autocast off.
bool casts_first(const c10::OperatorHandle& op, c10::DispatchKeySet keys) {
  constexpr c10::DispatchKey kAutocast = c10::DispatchKey::AutocastCPU;
  return keys.has(kAutocast) && op.hasKernelForDispatchKey(kAutocast);
}

// Of an op that overwrites what autograd differentiates: "aten::mul" of "aten::mul_", the same overload.
std::optional<c10::OperatorHandle> find_form_to_copy(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  if (listener.level != RecordingLevel::differentiated_out_of_place || !at::GradMode::is_enabled()) return std::nullopt;
  const c10::FunctionSchema& schema = op.schema();
  const std::string& name = schema.name();
  if (!name.ends_with('_') || name.ends_with("copy_") || schema.arguments().empty()) return std::nullopt;
  const auto* alias = schema.arguments()[0].alias_info();
  const std::span<const c10::IValue> arguments(stack.end() - static_cast<int64_t>(schema.arguments().size()),
                                               stack.end());
  const bool has_gradient = std::ranges::any_of(arguments, [](const c10::IValue& argument) {
    return argument.isTensor() && argument.toTensor().requires_grad();
  });
  if (alias == nullptr || !alias->isWrite() || !arguments[0].isTensor() || !has_gradient) return std::nullopt;
  auto functional = c10::Dispatcher::singleton().findSchema({name.substr(0, name.size() - 1), schema.overload_name()});
  if (!functional || functional->schema().arguments().size() != schema.arguments().size() ||
      functional->schema().returns().size() != 1)
    return std::nullopt;
  return functional;
}

// With the listener on, so that the parts are noted.
void run_out_of_place(const c10::OperatorHandle& functional, torch::jit::Stack& stack) {
  const size_t first = stack.size() - functional.schema().arguments().size();
  at::Tensor written = stack[first].toTensor();
  torch::jit::Stack arguments(stack.begin() + static_cast<int64_t>(first), stack.end());
  stack.resize(first);
  arguments[0] = written.clone();
  functional.callBoxed(arguments);
  written.copy_(arguments.at(0).toTensor());
  stack.emplace_back(std::move(written));
}

class RecordingKernel : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, std::vector<c10::IValue>* stack) {
    if (records_gradients(listener.level) && (is_composed(op) || casts_first(op, keys))) {
      return op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kRecordingKey), stack);
    }
    if (const auto functional = find_form_to_copy(op, *stack)) return run_out_of_place(*functional, *stack);
    const c10::impl::ExcludeDispatchKeyGuard unseen(kRecordingKey);
    if (listener.recorder == nullptr) return op.callBoxed(*stack);
    const bool cuts = listener.level == RecordingLevel::outermost && !at::GradMode::is_enabled();
    const c10::AutoGradMode gradients(records_gradients(listener.level) && at::GradMode::is_enabled());
    const std::vector<c10::IValue> arguments(stack->end() - std::ssize(op.schema().arguments()), stack->end());
    RecordedCall call = listener.recorder->note_arguments(op, arguments);
    op.callBoxed(*stack);
    const size_t results = op.schema().returns().size();
    const size_t first = stack->size() - results;
    listener.recorder->note_results(std::move(call), arguments,
                                    c10::ArrayRef<c10::IValue>(*stack).slice(first, results));
    if (!cuts) return;
    for (size_t i = 0; i < results; ++i) cut_gradients(op.schema().returns()[i], arguments, stack->at(first + i));
  }

 private:
  // Code under a NoGradGuard: what an op makes there carries no gradient, which a program says by aten::detach.
  static void cut_gradients(const c10::Argument& made, const std::vector<c10::IValue>& arguments, c10::IValue& value) {
    if (made.alias_info() != nullptr && made.alias_info()->isWrite()) return;
    if (value.isTensorList()) {
      c10::List<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(cut_gradients(tensor));
      value = tensors;
    } else if (value.isTensor() && !hands_on(arguments, value.toTensor())) {
      value = cut_gradients(value.toTensor());
    }
  }

  static at::Tensor cut_gradients(const at::Tensor& tensor) {
    static const c10::OperatorHandle detach = c10::Dispatcher::singleton().findSchemaOrThrow("aten::detach", "");
    if (!tensor.defined() || !(tensor.is_floating_point() || tensor.is_complex())) return tensor;
    RecordedCall call = listener.recorder->note_arguments(detach, {c10::IValue(tensor)});
    const c10::IValue detached = tensor.detach();
    listener.recorder->note_results(std::move(call), {tensor}, {detached});
    return detached.toTensor();
  }

  // contiguous() of a contiguous tensor gives the tensor itself, with the gradient that it has.
  static bool hands_on(const std::vector<c10::IValue>& arguments, const at::Tensor& tensor) {
    return std::ranges::any_of(arguments, [&](const c10::IValue& argument) {
      return argument.isTensor() && argument.toTensor().is_same(tensor);
    });
  }
};

void register_listener() {
  static std::once_flag once;
  std::call_once(once, [] {
    keep_registration(c10::Dispatcher::singleton().registerFallback(
        kRecordingKey, c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<RecordingKernel>()), "lissome"));
  });
}

class Listening {
 public:
  explicit Listening(Listener now) : before_(listener) { listener = now; }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening() { listener = before_; }

 private:
  Listener before_;
};

}  // namespace

Recording record_calls(const std::vector<at::Tensor>& known, RecordingLevel level,
                       const std::function<std::vector<at::Tensor>()>& code) {
  register_listener();
  const c10::AutoGradMode gradients(true);  // so that a NoGradGuard of `code` shows
  Recorder recorder(known);
  const std::vector<at::Tensor> outputs = [&] {
    const Listening listening({&recorder, level});
    const c10::impl::IncludeDispatchKeyGuard seen(kRecordingKey);
    return code();
  }();
  return recorder.finish(outputs);
}

}  // namespace lissome
