// Runs a program once and looks closely: the type, strides and storage of every value, and whether each node did what
// the effects table says of it, no more. Storages, versions, small contents and the generator are compared around each
// node; a disagreement is a fault of the table, never of the model.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>

#include <unordered_map>

#include "lissome/program/convert.h"
#include "lissome/program/interpret/interpreter.h"
#include "lissome/program/state.h"

namespace lissome {
namespace {

// Beyond this many elements only versions tell of a write; ops that hide writes write small statistics.
constexpr int64_t kComparedElements = 4096;

using Storage = c10::StorageImpl;

const Storage* storage_of(const at::Tensor& tensor) {
  const bool stored = tensor.defined() && tensor.has_storage() && tensor.numel() > 0;
  return stored ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

template <typename Visit>
void for_each_tensor(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor() && value.toTensor().defined()) visit(value.toTensor());
  if (!value.isList()) return;
  for (const c10::IValue& item : value.toListRef()) for_each_tensor(item, visit);
}

// One tensor argument as it was before the node ran.
struct Watched {
  int position = 0;
  at::Tensor tensor;
  uint32_t version = 0;
  at::Tensor copy;  // of small ones
};

bool can_copy(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.numel() <= kComparedElements && storage_of(tensor) != nullptr;
}

bool same_contents(const at::Tensor& left, const at::Tensor& right) {
  if (left.sizes() != right.sizes()) return false;
  const bool is_float = left.is_floating_point() || left.is_complex();
  // NaN equals itself here.
  return at::equal(left, right) ||
         (is_float && at::equal(left.isnan(), right.isnan()) && at::equal(left.nan_to_num(), right.nan_to_num()));
}

bool was_written(const Watched& watched) {
  if (!watched.tensor.is_inference() && watched.tensor._version() != watched.version) return true;
  return watched.copy.defined() && !same_contents(watched.tensor, watched.copy);
}

// The table's answers for one node against what the node did.
class EffectsJudge {
 public:
  EffectsJudge(const Program& program, const Node& node, const IValues& arguments)
      : node_(node), effects_(find_effects(program, node)) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
        watched_.push_back({static_cast<int>(i), tensor,
                            tensor.is_inference() ? 0 : static_cast<uint32_t>(tensor._version()),
                            can_copy(tensor) ? tensor.clone() : at::Tensor()});
      });
    }
  }

  void judge(const IValues& results, bool drew) const {
    for (const Watched& watched : watched_) {
      if (was_written(watched) && !is_listed(effects_.writes, watched)) disagree("wrote argument", watched.position);
    }
    for (const c10::IValue& result : results) {
      for_each_tensor(result, [&](const at::Tensor& tensor) { judge_alias(tensor); });
    }
    if (drew && !effects_.random) {
      throw_error(ErrorKind::internal, "effects table: ", describe_node(node_), " drew random numbers unlisted");
    }
  }

 private:
  // Listed itself, or the same storage as one that is.
  bool is_listed(const std::vector<int>& positions, const Watched& watched) const {
    for (const Watched& other : watched_) {
      const bool listed = std::find(positions.begin(), positions.end(), other.position) != positions.end();
      if (listed && (other.position == watched.position || storage_of(other.tensor) == storage_of(watched.tensor))) {
        return true;
      }
    }
    return false;
  }

  void judge_alias(const at::Tensor& result) const {
    const Storage* storage = storage_of(result);
    if (storage == nullptr) return;
    for (const Watched& watched : watched_) {
      if (storage_of(watched.tensor) != storage) continue;
      if (!is_listed(effects_.aliases, watched)) disagree("returned an alias of argument", watched.position);
    }
  }

  [[noreturn]] void disagree(std::string_view what, int position) const {
    throw_error(ErrorKind::internal, "effects table: ", describe_node(node_), " ", what, " ", position, " unlisted");
  }

  const Node& node_;
  const Effects effects_;
  std::vector<Watched> watched_;
};

// Numbers for storages. Weak references keep an address from being used again while they live.
class StorageNumbers {
 public:
  int64_t number(const at::Tensor& tensor) {
    const Storage* storage = storage_of(tensor);
    if (storage == nullptr) return -1;
    const auto [found, is_new] = numbers_.try_emplace(storage, static_cast<int64_t>(numbers_.size()));
    if (is_new) kept_.emplace_back(tensor.storage().getWeakStorageImpl());
    return found->second;
  }

 private:
  std::unordered_map<const Storage*, int64_t> numbers_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> kept_;
};

ValueKind kind_of(const c10::IValue& value) {
  if (value.isTensor()) return ValueKind::tensor;
  if (value.isInt()) return ValueKind::integer;
  if (value.isDouble()) return ValueKind::floating;
  if (value.isBool()) return ValueKind::boolean;
  if (value.isString()) return ValueKind::string;
  if (value.isList()) return ValueKind::list;
  return value.isNone() ? ValueKind::none : ValueKind::any;
}

class Binder {
 public:
  Binder(const Program& program, const IValues& inputs) : program_(program), interpreter_(options_) {
    bound_.values.resize(program.values.size());
    bound_.dimensions = bind_dimensions(program, inputs);
    environment_.resize(program.values.size());
    for (size_t i = 0; i < inputs.size(); ++i) store(program.inputs[i].value, inputs[i]);
    for (const Weight& weight : program.weights) store(weight.value, weight.tensor);
    copy_written_sources(program, environment_);
    for (size_t id = 0; id < environment_.size(); ++id) record(id);
  }

  Bound run() {
    const std::vector<int> last = find_last_uses(program_);
    at::Tensor generator = read_generator();
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      run_node(program_.nodes[i], generator);
      for (size_t id = 0; id < last.size(); ++id) {
        if (last[id] == static_cast<int>(i)) environment_[id] = c10::IValue();
      }
    }
    return std::move(bound_);
  }

 private:
  static at::Tensor read_generator() { return at::detail::getDefaultCPUGenerator().get_state(); }

  void store(ValueId id, c10::IValue value) { environment_[static_cast<size_t>(id)] = std::move(value); }

  void run_node(const Node& node, at::Tensor& generator) {
    IValues arguments;
    for (const Argument& argument : node.arguments) {
      arguments.push_back(
          resolve_argument(argument, [&](ValueId id) { return environment_[static_cast<size_t>(id)]; }));
    }
    const EffectsJudge judge(program_, node, arguments);
    const IValues results = interpreter_.run_node(node, std::move(arguments));
    at::Tensor after = read_generator();
    judge.judge(results, !at::equal(generator, after));
    generator = std::move(after);
    LISSOME_CHECK(results.size() == node.results.size(), describe_node(node));
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.results[i] == ValueId::none) continue;
      store(node.results[i], results[i]);
      record(static_cast<size_t>(node.results[i]));
      check_type(node, node.results[i]);
    }
  }

  void record(size_t id) {
    const c10::IValue& value = environment_[id];
    BoundValue& bound = bound_.values[id];
    bound.kind = kind_of(value);
    if (bound.kind == ValueKind::integer) bound.number = value.toInt();
    if (bound.kind == ValueKind::floating) bound.number = value.toDouble();
    if (bound.kind == ValueKind::boolean) bound.number = value.toBool();
    if (bound.kind != ValueKind::tensor || !value.toTensor().defined()) return;
    const at::Tensor& tensor = value.toTensor();
    bound.dtype = dtype_of(tensor.scalar_type());
    bound.sizes = tensor.sizes().vec();
    if (tensor.layout() == at::kStrided) bound.strides = tensor.strides().vec();
    bound.storage = storages_.number(tensor);
  }

  // What the program says of the value must be what came out.
  void check_type(const Node& node, ValueId id) const {
    const ValueType& type = program_.value(id).type;
    const BoundValue& bound = bound_.values[static_cast<size_t>(id)];
    if (type.kind != ValueKind::tensor || bound.kind != ValueKind::tensor) return;
    const auto disagree = [&](std::string_view what) {
      throw_error(ErrorKind::internal, describe_node(node), " gave %", program_.value(id).name, " ",
                  dtype_name(bound.dtype), format_sizes(bound.sizes), "; the program says another ", what);
    };
    if (type.dtype != bound.dtype) disagree("element type");
    if (!type.sized) return;
    if (type.sizes.size() != bound.sizes.size()) disagree("number of sizes");
    for (size_t i = 0; i < type.sizes.size(); ++i) {
      const auto expected = type.sizes[i].try_evaluate(bound_.dimensions);
      if (expected && *expected != bound.sizes[i]) disagree("size " + std::to_string(i) + ": " + type.sizes[i].print());
    }
  }

  const Program& program_;
  const InterpretOptions options_;
  Interpreter interpreter_;
  IValues environment_;
  StorageNumbers storages_;
  Bound bound_;
};

}  // namespace

Bound bind_program(const Program& program, const std::vector<c10::IValue>& inputs) {
  register_ops();
  const at::NoGradGuard no_grad;
  return Binder(program, inputs).run();
}

}  // namespace lissome
