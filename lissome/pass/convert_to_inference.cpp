// From the training form to the eval form: what module.eval() would have exported. Running statistics become what is
// read, so nothing updates them any more: their writes go, as do those of the counters of batches. Other state (a
// cache, say) keeps its writes. What a branch of the module's own code did in training cannot be told from the rest and
// stays.
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "lissome/base.h"
#include "lissome/pass.h"
#include "lissome/pass/inline_regions.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// Norms that return their new statistics behind their other results: (output, ..., new running mean, new running var).
constexpr std::array kUpdatingNorms = {"aten::_native_batch_norm_legit_functional",
                                       "aten::_batch_norm_with_update_functional",
                                       "lissome::instance_norm_with_update"};
constexpr std::array kDropouts = {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout",
                                  "aten::feature_alpha_dropout", "aten::native_dropout"};
constexpr std::array kRandomSlopes = {"aten::rrelu", "aten::rrelu_with_noise", "aten::rrelu_with_noise_functional"};

bool is_one_of(const Node& node, const auto& names) {
  return std::find(names.begin(), names.end(), node.op.name()) != names.end();
}

bool has_value(const Node& node, std::string_view name) {
  const int index = node.op.argument_index(name);
  return index >= 0 && node.arguments[static_cast<size_t>(index)].is_value();
}

void set(Node& node, std::string_view name, Argument value) {
  const int index = node.op.argument_index(name);
  if (index >= 0) node.arguments[static_cast<size_t>(index)] = std::move(value);
}

// Flags of ops that behave differently in training.
void set_flags(Node& node) {
  if (is_one_of(node, kDropouts)) {
    set(node, "train", false);
  } else if ((node.is("aten::batch_norm") || node.is("aten::native_batch_norm")) && has_value(node, "running_mean")) {
    set(node, "training", false);
  } else if (node.is("aten::instance_norm") && has_value(node, "running_mean")) {
    set(node, "use_input_stats", false);
  } else if (is_one_of(node, kRandomSlopes)) {
    set(node, "training", false);  // the mean slope
  } else if (node.op.argument_index("params") >= 0) {
    set(node, "train", false);  // lstm, gru, rnn: dropout between their layers
  }
  set(node, "dropout_p", 0.0);  // attention
}

// Norms that write their statistics in place have a twin that does not. What it saves for a backward is empty.
void convert_writing_norm(Program& program, Node& node) {
  const bool legit = node.is("aten::_native_batch_norm_legit");
  if (!legit && !node.is("aten::_batch_norm_with_update")) return;
  ArgumentList arguments;
  for (const std::string_view name : {"input", "weight", "bias", "running_mean", "running_var", "momentum", "eps"}) {
    arguments.push_back(node.argument(name));
  }
  node.op = Op::find(legit ? "aten::_native_batch_norm_legit_no_training" : "aten::_batch_norm_no_update");
  node.arguments = std::move(arguments);
  for (size_t i = 1; i < node.results.size(); ++i) {
    if (node.results[i] == ValueId::none) continue;
    ValueType& type = program.value(node.results[i]).type;
    type.sized = false;
    type.sizes.clear();
  }
}

// How often a norm was called in training: by its name, which bodies of regions keep.
bool is_counter(const Program& program, ValueId value) {
  const Weight* weight = program.find_weight(value);
  return (weight != nullptr ? weight->name : program.value(value).name).ends_with("num_batches_tracked");
}

// Counting in place, where the importer could not tell who else looks at the counter, stops.
void drop_counts(Program& program) {
  std::map<ValueId, ValueId> counters;  // a counter that was added to, and the counter
  const auto resolve = [&](Argument& argument) {
    argument = map_values(argument, [&](ValueId value) {
      const auto found = counters.find(value);
      return found == counters.end() ? value : found->second;
    });
  };
  std::erase_if(program.nodes, [&](Node& node) {
    std::for_each(node.arguments.begin(), node.arguments.end(), resolve);
    if (!node.is("aten::add_.Tensor") || !is_counter(program, node.argument("self").value())) return false;
    counters.emplace(node.result(), node.argument("self").value());
    return true;
  });
  for (ProgramOutput& output : program.outputs) resolve(output.value);
}

void convert_program(Program& program);

// What single nodes do differently, one by one and in place; bodies first.
void switch_modes(Program& program) {
  for (Node& node : program.nodes) {
    for (std::shared_ptr<const Program>& body : node.bodies) {
      Program changed = *body;
      convert_program(changed);
      body = std::make_shared<const Program>(std::move(changed));
    }
    if (!node.op.has_schema()) continue;
    set_flags(node);
    convert_writing_norm(program, node);
  }
  drop_counts(program);
}

// A norm that gives its new statistics back becomes one that reads those it was given, which all others read too.
void convert_updating_norm(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  const auto replace = [&](ValueId result, const Argument& replacement) {
    if (result != ValueId::none) rewriter.replace_value(result, replacement);
  };
  const Argument mean = node.argument("running_mean"), variance = node.argument("running_var");
  const bool instance = node.is("lissome::instance_norm_with_update");
  if (node.results[0] != ValueId::none) {
    const ValueType type = rewriter.type_of(node.results[0]);
    // The momentum may be computed from the counter of batches; nothing uses it now.
    const ValueId output =
        rewriter.insert_before(position, Op::find(instance ? "aten::instance_norm" : "aten::batch_norm"),
                               {node.argument("input"), node.argument("weight"), node.argument("bias"), mean, variance,
                                false, 0.0, node.argument("eps"), false},
                               {type}, node.origin);
    rewriter.replace_value(node.results[0], output);
  }
  replace(node.results[node.results.size() - 2], mean);
  replace(node.results[node.results.size() - 1], variance);
}

// The operand that every body returns as it is in this place.
std::optional<size_t> find_operand(const Node& node, size_t output) {
  std::optional<size_t> found;
  for (const auto& body : node.bodies) {
    const Argument& given = body->outputs.at(output).value;
    const auto input = std::find_if(body->inputs.begin(), body->inputs.end(),
                                    [&](const ProgramInput& one) { return given == Argument(one.value); });
    if (input == body->inputs.end()) return std::nullopt;
    const auto operand = static_cast<size_t>(input - body->inputs.begin());
    if (found && *found != operand) return std::nullopt;
    found = operand;
  }
  return found;
}

// Statistics that bodies gave back updated come out as they went in.
void pass_operands_through(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (node.op.control() != Control::cond && node.op.control() != Control::region) return;
  for (size_t i = 0; i < node.results.size(); ++i) {
    const std::optional<size_t> operand = find_operand(node, i);
    if (operand && node.results[i] != ValueId::none)
      rewriter.replace_value(node.results[i], node.arguments[*operand + 1]);
  }
}

void convert_program(Program& program) {
  switch_modes(program);
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (!node.op.has_schema()) {
      pass_operands_through(rewriter, position);
    } else if (is_one_of(node, kUpdatingNorms) && has_value(node, "running_mean") && has_value(node, "running_var")) {
      convert_updating_norm(rewriter, position);
    }
  }
  rewriter.finish();
  // State that is now written with itself, and counters that only training reads.
  std::erase_if(program.writes, [&](const StateWrite& write) {
    return write.value == write.target || is_counter(program, write.target);
  });
  remove_dead_nodes(program);
  program.training = false;
}

}  // namespace

void convert_to_inference(Program& program) {
  inline_regions(program);
  convert_program(program);
}

std::vector<std::string> describe_eval_form(const Program& original) {
  std::vector<std::string> notes;
  if (original.training)
    notes.emplace_back(
        "the model is in train form (with dropout or batch statistics), so it is converted to its eval form: dropout "
        "is left out, and running statistics are used");
  if (original.writes.empty()) return notes;
  Program eval = original;
  convert_to_inference(eval);
  if (eval.writes.empty()) return notes;
  notes.push_back("each call updates the state of the result: " + join_few(list_written_names(eval), 3) +
                  ". Where the module does so in train mode alone, as a spectral norm does, export it in eval mode");
  return notes;
}

}  // namespace lissome
