#include "lissome/lower/fuse/compose_elementwise.h"

#include <charconv>
#include <cmath>

#include "lissome/lower/candidate/refusals.h"
#include "lissome/lower/fuse/element_program.h"
#include "lissome/lower/tensors.h"

namespace lissome {

double read_literal(const Argument& argument) {
  if (const auto* flag = argument.get<bool>()) return *flag ? 1 : 0;
  if (argument.get<double>() || argument.get<int64_t>()) return read_number(argument);
  return std::nan("");
}

double read_optional_number(const Node& node, std::string_view name, double fallback) {
  const int index = node.op.argument_index(name);
  return index < 0 ? fallback : read_literal(node.arguments[static_cast<size_t>(index)]);
}

namespace {

std::string find_gelu_form(const Node& node) {
  return *node.argument("approximate").get<std::string>() == "tanh" ? "gelu_tanh" : "gelu";
}

// Writes the instructions of one step; each gives a number of its own, registers come at the end.
class Composer {
 public:
  Composer(PlanBuilder& builder, const Node& node) : builder_(builder), node_(node) {}

  int load(const Argument& operand) {
    if (!operand.is_value()) return constant(read_literal(operand));
    if (builder_.type(operand.value()).sizes == builder_.type(node_.result()).sizes) whole_.push_back(operand.value());
    return load_value(builder_.use(operand));
  }
  // The constant slopes of PReLU, along dimension 1 of what has so many dimensions.
  int load_slopes(const Argument& weight, size_t rank) {
    const std::string name = builder_.program().find_weight(weight.value())->name + ".slopes." + std::to_string(rank);
    if (builder_.has_packed(name)) return load_value(builder_.find_packed(name));
    Array slopes = share_tensor(*builder_.constant(weight.value()));
    slopes.sizes = Sizes(rank - 1, 1);
    slopes.sizes.front() = builder_.constant(weight.value())->numel();
    return load_value(builder_.add_packed(name, std::move(slopes)));
  }
  size_t rank() const { return builder_.type(node_.result()).sizes.size(); }

  int constant(double number) { return run("constant", 0, 0, 0, number); }
  int activate(int x, Activation activation, double alpha = 0, double beta = 0) {
    return run("activate", x, static_cast<int>(activation), 0, alpha, beta);
  }
  int run(std::string_view operation, int a, int b = 0, int c = 0, double alpha = 0, double beta = 0) {
    const std::optional<ElementOp> op = parse_element_op(operation);
    LISSOME_CHECK(op.has_value(), "there is no operation ", operation);
    const int target = static_cast<int>(program_.size());
    program_.push_back({*op, target, a, b, c, format_number(alpha), format_number(beta)});
    return target;
  }
  void number_positions(double start, double step) {
    program_.push_back({ElementOp::position, 0, 0, 0, 0, format_number(start), format_number(step)});
  }

  void finish(bool integers) {
    LISSOME_CHECK(program_.size() <= kElementInstructions && allocate_registers(program_), "the program is too long");
    step_.program = write_element_program(program_);
    step_.integers = integers;
    step_.y = {builder_.make(node_.result(), Storage::arena, builder_.shared_format(whole_))};
    builder_.add_step(step_, node_);
  }

 private:
  static std::string format_number(double number) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
  }
  int load_value(PlanValueId value) {
    step_.operands.values.push_back(value);
    return run("load", static_cast<int>(step_.operands.values.size()) - 1);
  }

  PlanBuilder& builder_;
  const Node& node_;
  ElementwiseStep step_;
  std::vector<ValueId> whole_;  // operands of the result's sizes
  ElementProgram program_;
};

int load_operand(Composer& composer, const Node& node, const Argument& operand) {
  const bool slopes = node.is("aten::prelu") && &operand == &node.argument("weight");
  return slopes ? composer.load_slopes(operand, composer.rank()) : composer.load(operand);
}

// log(1 + x), as exact as log is: the rounding of 1 + x is taken out again (Higham, Accuracy and Stability of Numerical
// Algorithms, 1.14.1).
int compose_log1p(Composer& composer, int x) {
  constexpr double kLarge = 1e6;  // 1 + x is as good as exact
  const int one = composer.constant(1), sum = composer.run("add", x, one), logarithm = composer.run("logarithm", sum);
  const int seen = composer.run("subtract", sum, one);
  const int corrected = composer.run("divide", composer.run("multiply", logarithm, x), seen);
  const int small = composer.run("select", seen, corrected, x);
  return composer.run("select", composer.run("less", composer.constant(kLarge), x), logarithm, small);
}

// exp(x) - 1; near zero 2 t / (1 - t) with t = tanh(x / 2), which loses nothing.
int compose_expm1(Composer& composer, int x) {
  const int one = composer.constant(1);
  const int t = composer.activate(composer.run("multiply", x, composer.constant(0.5)), Activation::tanh);
  const int near = composer.run("divide", composer.run("add", t, t), composer.run("subtract", one, t));
  const int far = composer.run("subtract", composer.run("exponential", x), one);
  return composer.run("select", composer.run("less", composer.run("absolute", x), one), near, far);
}

// log(1 + exp(-|x|)): what softplus and the logarithm of the sigmoid add to a clamp.
int compose_soft_part(Composer& composer, int x) {
  return compose_log1p(composer, composer.run("exponential", composer.run("negate", composer.run("absolute", x))));
}

void compose_softplus(Composer& composer, const Node& node, int x) {
  const double beta = read_optional_number(node, "beta", 1), threshold = read_optional_number(node, "threshold", 20);
  const int scaled = beta == 1 ? x : composer.run("multiply", x, composer.constant(beta));
  const int positive = composer.run("maximum", scaled, composer.constant(0));
  int soft = composer.run("add", positive, compose_soft_part(composer, scaled));
  if (beta != 1) soft = composer.run("divide", soft, composer.constant(beta));
  composer.run("select", composer.run("less", composer.constant(threshold), scaled), x, soft);
}

// x * tanh(softplus(x)) = x * n / (n + 2) with n = e (e + 2), e = exp(x).
void compose_mish(Composer& composer, int x) {
  const int two = composer.constant(2);
  const int e = composer.run("exponential", composer.run("minimum", x, composer.constant(20)));
  const int n = composer.run("multiply", e, composer.run("add", e, two));
  composer.run("multiply", x, composer.run("divide", n, composer.run("add", n, two)));
}

// Those of ELU's kind, which differ in their scales.
void compose_elu(Composer& composer, const Node& node, std::string_view operation, int x) {
  const double alpha = read_optional_number(node, "alpha", 1);
  if (operation == "celu") {
    const int factor = composer.constant(alpha);
    composer.run("multiply", composer.activate(composer.run("divide", x, factor), Activation::elu, 1), factor);
    return;
  }
  const bool self_normalizing = operation == "selu";
  const double scale = self_normalizing ? 1.0507009873554804934193349852946 : read_optional_number(node, "scale", 1);
  const int bent = composer.activate(x, Activation::elu, self_normalizing ? 1.6732632423543772848170429916717 : alpha);
  if (scale != 1) composer.run("multiply", bent, composer.constant(scale));
}

// False for another operation; so too below.
bool compose_activation(Composer& composer, const Node& node, std::string_view operation,
                        const std::vector<int>& from) {
  const int x = from[0];
  if (operation == "relu6") {
    composer.activate(x, Activation::clamp, 0, 6);
  } else if (operation == "mish") {
    compose_mish(composer, x);
  } else if (operation == "softplus") {
    compose_softplus(composer, node, x);
  } else if (operation == "log_sigmoid") {
    composer.run("subtract", composer.run("minimum", x, composer.constant(0)), compose_soft_part(composer, x));
  } else if (operation == "elu" || operation == "selu" || operation == "celu") {
    compose_elu(composer, node, operation, x);
  } else if (operation == "prelu") {
    composer.run("select", composer.run("less", composer.constant(0), x), x, composer.run("multiply", x, from[1]));
  } else if (operation == "hardshrink") {
    const int limit = composer.constant(read_optional_number(node, "lambd", 0.5));
    composer.run("select", composer.run("less_equal", composer.run("absolute", x), limit), composer.constant(0), x);
  } else if (operation == "softshrink") {
    const double limit = read_optional_number(node, "lambd", 0.5);
    composer.run("subtract", x, composer.activate(x, Activation::clamp, -limit, limit));
  } else if (operation == "threshold") {
    composer.run("select", composer.run("less_equal", x, from[1]), from[2], x);
  } else {
    return false;
  }
  return true;
}

bool compose_function(Composer& composer, const Node& node, std::string_view operation, const std::vector<int>& from) {
  const int x = from[0];
  const auto round_up = [&] { return composer.run("negate", composer.run("floor", composer.run("negate", x))); };
  if (operation == "clamp") {
    int bounded = x;
    if (from[1] >= 0) bounded = composer.run("maximum", bounded, from[1]);
    if (from[2] >= 0) composer.run("minimum", bounded, from[2]);
  } else if (operation == "log1p") {
    compose_log1p(composer, x);
  } else if (operation == "expm1") {
    compose_expm1(composer, x);
  } else if (operation == "ceil") {
    round_up();
  } else if (operation == "trunc") {
    const int up = round_up();
    composer.run("select", composer.run("less", x, composer.constant(0)), up, composer.run("floor", x));
  } else if (operation == "sign") {
    const int zero = composer.constant(0);
    composer.run("subtract", composer.run("less", zero, x), composer.run("less", x, zero));
  } else if (operation == "isnan") {
    composer.run("unequal", x, x);
  } else if (operation == "lerp") {
    composer.run("add", x, composer.run("multiply", from[2], composer.run("subtract", from[1], x)));
  } else if (operation == "addcmul" || operation == "addcdiv") {
    const double factor = read_optional_number(node, "value", 1);
    int term = from[1];
    if (factor != 1) term = composer.run("multiply", composer.constant(factor), term);
    composer.run("add", x, composer.run(operation == "addcmul" ? "multiply" : "divide", term, from[2]));
  } else {
    return false;
  }
  return true;
}

// Gradients, from that of the result and what the operation read or gave. False for another operation.
bool compose_gradient(Composer& composer, const Node& node, std::string_view operation, const std::vector<int>& from) {
  if (operation.starts_with("slope ")) {
    const bool gelu = operation == "slope gelu";
    const auto activation = parse_activation(gelu ? find_gelu_form(node) : std::string(operation.substr(6)));
    composer.run("multiply", from[0], composer.run("slope", from[1], static_cast<int>(*activation)));
  } else if (operation == "tanh_gradient") {
    const int rest = composer.run("subtract", composer.constant(1), composer.run("square", from[1]));
    composer.run("multiply", from[0], rest);
  } else if (operation == "sigmoid_gradient") {
    const int rest = composer.run("subtract", composer.constant(1), from[1]);
    composer.run("multiply", composer.run("multiply", from[0], rest), from[1]);
  } else if (operation == "threshold_gradient") {
    composer.run("select", composer.run("less_equal", from[1], from[2]), composer.constant(0), from[0]);
  } else {
    return false;
  }
  return true;
}

void compose(Composer& composer, const Node& node, std::string operation,
             const std::vector<const Argument*>& operands) {
  if (operation == "zeros" || operation == "ones") {
    composer.constant(operation == "ones" ? 1 : 0);
    return;
  }
  if (operation == "position") {
    composer.number_positions(read_optional_number(node, "start", 0), read_optional_number(node, "step", 1));
    return;
  }
  std::vector<int> registers;
  for (const Argument* operand : operands) {
    registers.push_back(operand->is_none() ? -1 : load_operand(composer, node, *operand));
  }
  if (operation.empty() || operation == "constant") return;
  if (compose_gradient(composer, node, operation, registers) ||
      compose_activation(composer, node, operation, registers) ||
      compose_function(composer, node, operation, registers)) {
    return;
  }
  const double alpha = read_optional_number(node, "alpha", 1);
  if (alpha != 1 && registers.size() == 2) {
    // What is added or taken away is scaled.
    registers[1] = composer.run("multiply", registers[1], composer.constant(alpha));
  }
  if (operation == "gelu") operation = find_gelu_form(node);
  if (operation == "power" && read_literal(*operands[1]) == 2) {
    composer.run("square", registers[0]);
  } else if (const auto activation = parse_activation(operation)) {
    composer.activate(registers[0], *activation, read_optional_number(node, "negative_slope", 0));
  } else {
    registers.resize(3, 0);
    composer.run(operation, registers[0], registers[1], registers[2]);
  }
}

}  // namespace

void compose_elementwise(PlanBuilder& builder, const Node& node, std::string_view operation,
                         const std::vector<const Argument*>& operands, bool integers) {
  Composer composer(builder, node);
  compose(composer, node, std::string(operation), operands);
  composer.finish(integers);
}

}  // namespace lissome
