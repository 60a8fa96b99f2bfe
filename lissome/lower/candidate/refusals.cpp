#include "lissome/lower/candidate/refusals.h"

namespace lissome {
namespace {

struct KernelActivation {
  std::string_view name;
  Activation activation;
  double alpha = 0, beta = 0;
};
// The words of `act` in the fused ops that kernels do not know under the same name.
constexpr KernelActivation kRenamed[] = {{"relu6", Activation::clamp, 0, 6},
                                         {"leaky_relu", Activation::leaky_relu, 0.01, 0}};

}  // namespace

std::string refuse_tensor(const PlanBuilder& builder, const Argument& argument, Dtype dtype) {
  if (!argument.is_value()) return "an operand is no tensor";
  const ValueType& type = builder.type(argument.value());
  const std::string name = "%" + builder.program().value(argument.value()).name;
  if (type.kind != ValueKind::tensor) return name + " is no tensor";
  if (!type.sized) return "sizes of " + name + " are unknown";
  if (type.dtype != dtype)
    return name + " is " + std::string(dtype_name(type.dtype)) + ", must be " + std::string(dtype_name(dtype));
  if (!builder.is_sized(argument.value())) return "sizes of " + name + " depend on data";
  return {};
}

std::string refuse_optional(const PlanBuilder& builder, const Argument& argument, Dtype dtype) {
  return argument.is_none() ? std::string() : refuse_tensor(builder, argument, dtype);
}

std::string refuse_weight(const PlanBuilder& builder, const Argument& argument, Dtype dtype, int64_t rank) {
  const at::Tensor* weight = argument.is_value() ? builder.constant(argument.value()) : nullptr;
  if (!weight) return "the weight is computed";
  const Dtype seen = dtype_of(weight->scalar_type());
  if (seen != dtype)
    return "the weight is " + std::string(dtype_name(seen)) + ", must be " + std::string(dtype_name(dtype));
  if (weight->dim() != rank)
    return "the weight has " + std::to_string(weight->dim()) + " dimensions, must have " + std::to_string(rank);
  return {};
}

std::string refuse_activation(const Argument& argument) {
  const auto* name = argument.get<std::string>();
  if (!name) return "the activation is no text";
  for (const KernelActivation& row : kRenamed) {
    if (row.name == *name) return {};
  }
  return parse_activation(*name) ? std::string() : "no activation " + quote(*name);
}

std::string refuse_residual(const PlanBuilder& builder, const Node& node, const Argument& residual, Dtype dtype) {
  if (residual.is_none()) return {};
  const std::string refusal = refuse_tensor(builder, residual, dtype);
  if (!refusal.empty()) return refusal;
  return builder.type(residual.value()).sizes != builder.type(node.result()).sizes ? "the residual is broadcast" : "";
}

std::string refuse_number(const Argument& argument, std::string_view name) {
  if (argument.get<double>() || argument.get<int64_t>()) return {};
  return std::string(name) + " is computed";
}

double read_number(const Argument& argument) {
  if (const auto* integer = argument.get<int64_t>()) return static_cast<double>(*integer);
  return *argument.get<double>();
}

std::optional<std::vector<int64_t>> read_integers(const Argument& argument) {
  if (!argument.is_list()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Argument& item : argument.list()) {
    if (!item.get<int64_t>()) return std::nullopt;
    numbers.push_back(*item.get<int64_t>());
  }
  return numbers;
}

int64_t read_dim(const Argument& argument, size_t rank) {
  const auto* dim = argument.get<int64_t>();
  const auto limit = static_cast<int64_t>(rank);
  if (!dim || *dim < -limit || *dim >= limit) return -1;
  return *dim < 0 ? *dim + limit : *dim;
}

const Node* find_maker(const PlanBuilder& builder, ValueId value) {
  for (const Node& node : builder.program().nodes) {
    for (const ValueId result : node.results) {
      if (result == value) return &node;
    }
  }
  return nullptr;
}

std::vector<const Node*> find_readers(const Program& program, ValueId value) {
  std::vector<const Node*> readers;
  for (const Node& node : program.nodes) {
    for (const Argument& argument : node.arguments)
      for_each_value(argument, [&](ValueId id) {
        if (id == value) readers.push_back(&node);
      });
  }
  return readers;
}

bool leaves_program(const Program& program, ValueId value) {
  bool leaves = false;
  for (const ProgramOutput& output : program.outputs)
    for_each_value(output.value, [&](ValueId id) { leaves = leaves || id == value; });
  for (const StateWrite& write : program.writes) leaves = leaves || write.value == value;
  return leaves;
}

bool is_drawn(const PlanBuilder& builder, ValueId value) {
  const Node* maker = builder.is_held(value) ? find_maker(builder, value) : nullptr;
  return maker != nullptr && find_effects(builder.program(), *maker).random;
}

std::string first_refusal(std::initializer_list<std::string> refusals) {
  for (const std::string& refusal : refusals) {
    if (!refusal.empty()) return refusal;
  }
  return {};
}

ActivationFields translate_activation(const std::string& activation) {
  for (const KernelActivation& row : kRenamed) {
    if (row.name == activation) return {std::string(activation_name(row.activation)), row.alpha, row.beta};
  }
  return {activation};
}

}  // namespace lissome
