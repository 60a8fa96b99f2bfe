// torch::nn module -> Program, by way of a TorchScript trace: its graph is straight-line ATen calls on values, constants
// and lists. Sizes that the trace read from tensors stay computed, so that dynamic dimensions stay dynamic.
#include "lissome/import_module.h"

#include <ATen/core/function_schema.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>

#include <array>
#include <map>

#include "lissome/program/purify.h"

namespace lissome {
namespace {

// A trace refuses constants that require gradients; whatever happens, the module gets its flags back.
class GradientsOff {
 public:
  explicit GradientsOff(const torch::nn::Module& module) {
    for (const at::Tensor& parameter : module.parameters()) {
      if (!parameter.requires_grad()) continue;
      parameter.set_requires_grad(false);
      changed_.push_back(parameter);
    }
  }
  ~GradientsOff() {
    for (const at::Tensor& parameter : changed_) parameter.set_requires_grad(true);
  }
  GradientsOff(const GradientsOff&) = delete;
  GradientsOff& operator=(const GradientsOff&) = delete;

 private:
  std::vector<at::Tensor> changed_;
};

std::shared_ptr<torch::jit::Graph> trace_module(const std::vector<TracedInput>& inputs,
                                                const std::function<at::Tensor(const std::vector<at::Tensor>&)>& forward) {
  torch::jit::Stack examples;
  for (const TracedInput& input : inputs) examples.emplace_back(input.example);
  const auto traced = torch::jit::tracer::trace(
      examples,
      [&](torch::jit::Stack stack) -> torch::jit::Stack {
        std::vector<at::Tensor> tensors;
        for (const c10::IValue& value : stack) tensors.push_back(value.toTensor());
        return {forward(tensors)};
      },
      [](const at::Tensor&) { return std::string(); });
  return traced.first->graph;
}

// Arithmetic that a trace does on sizes: tensors without dimensions there, integers here.
std::string_view find_size_op(std::string_view op) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kRows = {
      {{"aten::mul", "lissome::sym_mul"},
       {"aten::add", "lissome::sym_add"},
       {"aten::sub", "lissome::sym_sub"},
       {"aten::floor_divide", "lissome::sym_floordiv"},
       {"aten::floordiv", "lissome::sym_floordiv"},
       {"aten::remainder", "lissome::sym_mod"}}};
  for (const auto& [traced, ours] : kRows) {
    if (traced == op) return ours;
  }
  return {};
}

class GraphConverter {
 public:
  GraphConverter(const torch::nn::Module& module, const std::vector<TracedInput>& inputs) {
    for (const auto& item : module.named_parameters()) add_name(item.key(), item.value(), WeightRole::parameter);
    for (const auto& item : module.named_buffers()) add_name(item.key(), item.value(), WeightRole::buffer);
    for (const TracedInput& input : inputs) add_input(input);
  }

  Program run(const torch::jit::Graph& graph) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) known_[graph.inputs()[i]] = program_.inputs.at(i).value;
    for (const torch::jit::Node* node : graph.nodes()) convert(*node);
    int index = 0;
    for (const torch::jit::Value* output : graph.outputs()) add_output(known_.at(output), index);
    return std::move(program_);
  }

 private:
  struct Name {
    std::string name;
    WeightRole role;
  };

  void add_name(const std::string& name, const at::Tensor& tensor, WeightRole role) {
    names_.emplace(tensor.unsafeGetTensorImpl(), Name{name, role});
  }

  void add_input(const TracedInput& input) {
    std::vector<Dimension> sizes(input.example.sizes().begin(), input.example.sizes().end());
    for (const auto& [position, dimension] : input.dynamic) {
      sizes.at(static_cast<size_t>(position)) = Dimension::named(dimension.name);
      const bool declared = std::any_of(program_.dimensions.begin(), program_.dimensions.end(),
                                        [&](const NamedDimension& known) { return known.name == dimension.name; });
      if (!declared) program_.dimensions.push_back(dimension);
    }
    program_.add_input(input.name, {ValueKind::tensor, dtype_of(input.example.scalar_type()), true, std::move(sizes)});
  }

  void add_output(const Argument& argument, int& index) {
    if (argument.is_list()) {
      for (const Argument& item : argument.list()) add_output(item, index);
      return;
    }
    program_.outputs.push_back({argument, "output." + std::to_string(index++)});
  }

  Argument add_weight(const at::Tensor& tensor) {
    if (const auto seen = weights_.find(tensor.unsafeGetTensorImpl()); seen != weights_.end()) return seen->second;
    const auto named = names_.find(tensor.unsafeGetTensorImpl());
    const Name name = named != names_.end() ? named->second
                                            : Name{"constant." + std::to_string(weights_.size()), WeightRole::constant};
    const ValueId value = program_.add_weight(name.name, tensor.detach(), name.role);
    weights_.emplace(tensor.unsafeGetTensorImpl(), value);
    kept_.push_back(tensor);  // the key is its address
    return value;
  }

  Argument convert_constant(const c10::IValue& value) {
    if (value.isNone()) return {};
    if (value.isTensor()) {
      const at::Tensor tensor = value.toTensor();
      // A number that the trace wrapped: a size, a scale.
      if (tensor.dim() == 0 && tensor.scalar_type() == at::kLong && !names_.count(tensor.unsafeGetTensorImpl())) {
        return tensor.item().toLong();
      }
      return add_weight(tensor);
    }
    if (value.isBool()) return value.toBool();
    if (value.isInt()) return value.toInt();
    if (value.isDouble()) return value.toDouble();
    if (value.isString()) return value.toStringRef();
    if (value.isDevice()) return Device{value.toDevice().str()};
    if (value.isList()) {
      ArgumentList items;
      for (const c10::IValue& item : value.toListRef()) items.push_back(convert_constant(item));
      return items;
    }
    throw_error(ErrorKind::unsupported, "the trace holds a constant of type ", value.tagKind());
  }

  Argument read(const torch::jit::Value* value) const { return known_.at(value); }

  bool is_integer(const Argument& argument) const {
    return argument.get<int64_t>() != nullptr ||
           (argument.is_value() && program_.value(argument.value()).type.kind == ValueKind::integer);
  }

  // Reports speak of modules: the one whose weights the node reads, else the one before it.
  std::shared_ptr<const Origin> find_origin(const ArgumentList& arguments) {
    for (const Argument& argument : arguments) {
      const Weight* weight = argument.is_value() ? program_.find_weight(argument.value()) : nullptr;
      if (weight == nullptr || weight->role == WeightRole::constant) continue;
      const size_t dot = weight->name.rfind('.');
      Origin origin;
      origin.module = dot == std::string::npos ? std::string() : weight->name.substr(0, dot);
      origin_ = std::make_shared<const Origin>(std::move(origin));
      break;
    }
    return origin_;
  }

  void convert(const torch::jit::Node& node) {
    const std::string kind = node.kind().toQualString();
    if (kind == "prim::Constant") {
      known_[node.output()] = convert_constant(torch::jit::toIValue(node.output()).value());
    } else if (kind == "prim::ListConstruct" || kind == "prim::TupleConstruct") {
      ArgumentList items;
      for (const torch::jit::Value* input : node.inputs()) items.push_back(read(input));
      known_[node.output()] = std::move(items);
    } else if (kind == "prim::NumToTensor" || kind == "aten::Int" || kind == "aten::ScalarImplicit") {
      known_[node.output()] = read(node.input());
    } else if (kind == "prim::ListUnpack" || kind == "prim::TupleUnpack") {
      unpack(node);
    } else if (kind.starts_with("aten::")) {
      call(node, kind);
    } else {
      throw_error(ErrorKind::unsupported, "the trace holds ", kind, ", which has no meaning in a program");
    }
  }

  void unpack(const torch::jit::Node& node) {
    const Argument list = read(node.input());
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (list.is_list()) {
        known_[node.outputs()[i]] = list.list().at(i);
        continue;
      }
      ValueType type;
      type.kind = ValueKind::tensor;
      known_[node.outputs()[i]] =
          program_.add_node(Op::find("lissome::getitem"), {list, static_cast<int64_t>(i)}, {type}, origin_).result();
    }
  }

  void call(const torch::jit::Node& node, const std::string& kind) {
    ArgumentList arguments;
    for (const torch::jit::Value* input : node.inputs()) arguments.push_back(read(input));
    if (kind == "aten::size" && arguments.size() == 2) {
      ValueType type;
      type.kind = ValueKind::integer;
      known_[node.output()] = program_.add_node(Op::find("aten::sym_size.int"), std::move(arguments), {type}, origin_).result();
      return;
    }
    const std::string_view size_op = find_size_op(kind);
    if (!size_op.empty() && is_integer(arguments.at(0)) && is_integer(arguments.at(1))) {
      ValueType type;
      type.kind = ValueKind::integer;
      arguments.resize(2);
      known_[node.output()] = program_.add_node(Op::find(size_op), std::move(arguments), {type}, origin_).result();
      return;
    }
    const c10::FunctionSchema& schema = node.schema();
    std::string name = schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
    if (kind == "aten::_convolution") {
      // The same with flags for cuDNN behind it.
      name = "aten::convolution";
      arguments.resize(9);
    }
    std::vector<ValueType> types;
    for (const torch::jit::Value* output : node.outputs()) types.push_back(read_type(*output));
    const std::shared_ptr<const Origin> origin = find_origin(arguments);
    const Node& made = program_.add_node(Op::find(name), std::move(arguments), std::move(types), origin);
    for (size_t i = 0; i < node.outputs().size(); ++i) known_[node.outputs()[i]] = made.results.at(i);
  }

  // Sizes are left open: a trace knows those of the example alone.
  static ValueType read_type(const torch::jit::Value& value) {
    ValueType type;
    if (value.type()->kind() == c10::TypeKind::ListType) type.kind = ValueKind::list;
    if (const auto tensor = value.type()->cast<c10::TensorType>()) {
      type.kind = ValueKind::tensor;
      if (tensor->scalarType()) type.dtype = dtype_of(*tensor->scalarType());
    }
    return type;
  }

  Program program_;
  std::map<const void*, Name> names_;        // by tensor
  std::map<const void*, ValueId> weights_;   // by tensor
  std::vector<at::Tensor> kept_;
  std::map<const torch::jit::Value*, Argument> known_;
  std::shared_ptr<const Origin> origin_;
};

}  // namespace

Program import_module(const torch::nn::Module& module, const std::vector<TracedInput>& inputs,
                      const std::function<at::Tensor(const std::vector<at::Tensor>&)>& forward) {
  register_ops();
  const GradientsOff gradients_off(module);
  Program program = GraphConverter(module, inputs).run(*trace_module(inputs, forward));
  program.training = module.is_training();
  verify_program(program, Stage::imported);
  std::vector<c10::IValue> examples;
  for (const TracedInput& input : inputs) examples.emplace_back(input.example);
  purify(program);
  infer_types(program, examples);
  return program;
}

}  // namespace lissome
