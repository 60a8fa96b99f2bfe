// Random programs of every shape that text can have: parse(print(p)) is p, and a saved text prints the same again.
#include <ATen/core/function_schema.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "lissome/program.h"

namespace lissome {
namespace {

int pick(int below) { return *rc::gen::inRange(0, below); }
bool flip() { return pick(2) == 1; }

std::string make_name() {
  switch (pick(4)) {
    case 0: return "";
    case 1: return "fc." + std::to_string(pick(4));
    case 2: return std::to_string(pick(30));
    default: return *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  }
}

Dimension make_dimension() {
  Dimension dimension(pick(9));
  for (int i = pick(3); i > 0; --i) {
    const Dimension other =
        flip() ? Dimension::named(std::string(1, static_cast<char>('a' + pick(3)))) : Dimension(1 + pick(4));
    const auto operation = static_cast<Dimension::Operation>(2 + pick(7));
    if (operation != Dimension::Operation::power) dimension = Dimension::combine(operation, dimension, other);
  }
  return dimension;
}

ValueType make_type() {
  ValueType type;
  type.kind = static_cast<ValueKind>(pick(8));
  if (type.kind == ValueKind::tensor) type.dtype = static_cast<Dtype>(pick(static_cast<int>(Dtype::u64) + 1));
  type.sized = (type.kind == ValueKind::tensor && flip()) || (type.kind == ValueKind::integer && flip());
  if (type.sized) {
    for (int i = type.kind == ValueKind::integer ? 1 : pick(4); i > 0; --i) {
      // Division by zero is found when a dimension is built.
      try {
        type.sizes.push_back(make_dimension());
      } catch (const Error&) {
        type.sizes.emplace_back(1);
      }
    }
  }
  return type;
}

Argument make_literal(int depth) {
  switch (pick(depth > 3 ? 11 : 12)) {
    case 0: return {};
    case 1: return *rc::gen::arbitrary<int64_t>();
    case 2: return *rc::gen::arbitrary<double>();
    case 3: return flip();
    case 4: return *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
    case 5: return std::complex<double>(*rc::gen::arbitrary<double>(), *rc::gen::arbitrary<float>());
    case 6: return static_cast<Dtype>(pick(static_cast<int>(Dtype::u64) + 1));
    case 7: return static_cast<Layout>(pick(7));
    case 8: return static_cast<MemoryFormat>(pick(4));
    case 9: return Device{flip() ? "cuda:1" : make_name()};
    case 10: return *rc::gen::element(0.0, -0.0, 1e300, -1e-300, 3.0, 1e16);
    default: {
      ArgumentList items;
      for (int i = pick(4); i > 0; --i) items.push_back(make_literal(depth + 1));
      return items;
    }
  }
}

class ProgramMaker {
 public:
  explicit ProgramMaker(int depth) : depth_(depth) {}

  Program make() {
    if (depth_ == 0) program_.training = flip();
    if (depth_ == 0 && flip()) program_.call_tree = {make_name(), make_name()};
    for (const char* name : {"a", "b"}) {
      if (flip()) program_.dimensions.push_back({name, pick(3), flip() ? INT64_MAX : 3 + pick(5)});
    }
    for (int i = pick(3); i > 0; --i) {
      add(program_.add_input(make_name(), make_type()));
      if (flip()) program_.inputs.back().name = make_name();
    }
    for (int i = pick(3); i > 0; --i) add_weight();
    for (int i = pick(8); i > 0; --i) add_node();
    for (int i = pick(2); i > 0 && !program_.weights.empty(); --i) {
      program_.writes.push_back({program_.weights.front().value, any_value()});
    }
    for (int i = pick(3); i > 0; --i) program_.outputs.push_back({make_argument(0), make_name()});
    return std::move(program_);
  }

 private:
  void add(ValueId id) { known_.push_back(id); }

  void add_weight() {
    const std::string name = "w" + std::to_string(program_.weights.size()) + make_name();
    const at::Tensor tensor =
        at::zeros({pick(3), 2}, at::TensorOptions().dtype(scalar_type_of(static_cast<Dtype>(pick(8)))));
    add(program_.add_weight(name, flip() ? tensor.t() : tensor, static_cast<WeightRole>(pick(3))));
    program_.weights.back().trains = flip();
    program_.weights.back().persistent = flip();
  }

  ValueId any_value() {
    if (known_.empty()) add(program_.add_input(make_name(), make_type()));
    return known_[static_cast<size_t>(pick(static_cast<int>(known_.size())))];
  }

  Argument make_argument(int depth) {
    if (flip()) return any_value();
    if (depth < 2 && pick(4) == 0) {
      ArgumentList items;
      for (int i = pick(3); i > 0; --i) items.push_back(make_argument(depth + 1));
      return items;
    }
    return make_literal(0);
  }

  void add_node() {
    static constexpr const char* kOps[] = {
        "aten::relu",         "aten::add.Tensor", "aten::max.dim",         "aten::conv2d", "aten::linear",
        "aten::softmax.int",  "aten::to.dtype",   "aten::sum.dim_IntList", "aten::cat",    "aten::split.Tensor",
        "aten::index.Tensor", "aten::gelu",       "aten::add.out",         "aten::full",   "aten::_assert_async.msg"};
    std::shared_ptr<const Origin> origin;
    if (flip())
      origin = std::make_shared<const Origin>(
          Origin{flip() ? "a.py:3" : make_name(), make_name(), make_name(), make_name()});
    if (pick(5) == 0 && depth_ < 3) {
      ArgumentList arguments;
      for (int i = pick(3); i > 0; --i) arguments.push_back(make_argument(0));
      Node& node = program_.add_node(Op::control(static_cast<Control>(1 + pick(5))), std::move(arguments),
                                     std::vector<ValueType>(static_cast<size_t>(pick(3))), origin);
      for (int i = pick(3); i > 0; --i) {
        node.bodies.push_back(std::make_shared<const Program>(ProgramMaker(depth_ + 1).make()));
      }
      std::for_each(node.results.begin(), node.results.end(), [this](ValueId id) { add(id); });
      return;
    }
    const Op op = Op::find(*rc::gen::elementOf(std::vector<std::string>(std::begin(kOps), std::end(kOps))));
    ArgumentList arguments;
    for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
      const auto usual = default_argument(op, i);
      arguments.push_back(usual && flip() ? *usual : make_argument(0));
    }
    std::vector<ValueType> types(op.schema().returns().size());
    for (ValueType& type : types) type = make_type();
    Node& node = program_.add_node(op, std::move(arguments), std::move(types), origin);
    for (ValueId& id : node.results) {
      if (pick(6) == 0) {
        id = ValueId::none;
      } else {
        add(id);
      }
    }
  }

  int depth_;
  Program program_;
  std::vector<ValueId> known_;
};

TEST_CASE("parse(print(p)) is p for random programs") {
  CHECK(rc::check([] {
    const Program program = ProgramMaker(0).make();
    const Program again = parse_program(print_program(program));
    RC_ASSERT(same_program(again, program));
    RC_ASSERT(same_program(program, again));
    // Reading declares the names in the sizes of inputs; from then on the text stays.
    const std::string text = print_program(again);
    RC_ASSERT(print_program(parse_program(text)) == text);
    RC_ASSERT(diff_programs(again, parse_program(text)).empty());
  }));
}

}  // namespace
}  // namespace lissome
