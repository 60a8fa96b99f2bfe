// See precision.h. The region reads weights as operands and returns written values as further results.
#include "lissome/train/step/precision.h"

#include "lissome/differentiate.h"

namespace lissome {
namespace {

// What torch.export asserts of dtypes before a cast held without autocast.
void drop_assertions(Program& program) {
  std::erase_if(program.nodes, [](const Node& node) { return node.is("aten::_assert_tensor_metadata"); });
  for (Node& node : program.nodes) {
    for (auto& body : node.bodies) {
      auto changed = std::make_shared<Program>(*body);
      drop_assertions(*changed);
      body = std::move(changed);
    }
  }
}

// Weights become inputs, writes become outputs; outputs that are literals stay outside.
Program make_body(const Program& program) {
  Program body = program;
  drop_assertions(body);
  for (const Weight& weight : program.weights) body.inputs.push_back({weight.value, weight.name});
  body.weights.clear();
  std::erase_if(body.outputs, [](const ProgramOutput& output) { return !output.value.is_value(); });
  for (const StateWrite& write : program.writes) body.outputs.push_back({write.value, ""});
  body.writes.clear();
  body.call_tree = {};
  return body;
}

Program copy_face(const Program& program) {
  Program face;
  face.dimensions = program.dimensions;
  face.requirements = program.requirements;
  face.call_tree = program.call_tree;
  face.training = program.training;
  for (const ProgramInput& input : program.inputs) face.add_input(input.name, program.value(input.value).type);
  for (const Weight& weight : program.weights) {
    face.add_weight(weight.name, weight.tensor, weight.role);
    face.weights.back().trains = weight.trains;
    face.weights.back().persistent = weight.persistent;
  }
  return face;
}

}  // namespace

std::optional<Dtype> parse_precision(const std::string& word) {
  if (word == "auto") return std::nullopt;
  if (word == "f32") return Dtype::f32;
  if (word == "bf16") return Dtype::bf16;
  if (word == "fp16") return Dtype::f16;
  throw_error(ErrorKind::usage, "the precision of a training must be f32, bf16, fp16 or auto, not ", quote(word));
}

Program apply_autocast(const Program& program, Dtype dtype) {
  if (dtype != Dtype::bf16 && dtype != Dtype::f16)
    throw_error(ErrorKind::invalid_input, "mixed precision must be bf16 or f16, not ", dtype_name(dtype));
  auto body = std::make_shared<const Program>(make_body(program));
  Program region = copy_face(program);
  ArgumentList arguments = {"autocast=cpu," + std::string(dtype_name(dtype)) + ",1"};
  for (const ProgramInput& input : region.inputs) arguments.emplace_back(input.value);
  for (const Weight& weight : region.weights) arguments.emplace_back(weight.value);
  // Only a run shows which outputs have the smaller dtype.
  Node& node =
      region.add_node(Op::control(Control::region), std::move(arguments), std::vector<ValueType>(body->outputs.size()));
  auto result = node.results.begin();
  for (const ProgramOutput& output : program.outputs)
    region.outputs.push_back({output.value.is_value() ? Argument(*result++) : output.value, output.name});
  for (const StateWrite& write : program.writes) {
    const ValueId target = region.find_weight(find_written_weight(program, write).name)->value;
    region.writes.push_back({target, *result++});
  }
  node.bodies.push_back(std::move(body));
  verify_program(region, Stage::imported);
  return region;
}

}  // namespace lissome
