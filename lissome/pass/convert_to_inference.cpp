// From the training form to the eval form: what module.eval() would have exported. State that is not a training
// counter or statistic (a cache, say) keeps its writes.
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lissome/pass.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

bool ends_with(std::string_view text, std::string_view end) { return text.size() >= end.size() && text.ends_with(end); }

// Functional batch norm returns (output, mean, invstd, new running mean, new running variance).
bool is_training_batch_norm(const Node& node) {
  return node.is("aten::_native_batch_norm_legit_functional") || node.is("aten::_native_batch_norm_legit") ||
         node.is("aten::native_batch_norm");
}

// A write that only training makes: running statistics of a batch norm, or its counter of batches.
bool is_training_write(const Program& program, const StateWrite& write, const std::vector<const Node*>& producers) {
  const Node* node = producers[static_cast<size_t>(write.value)];
  if (node != nullptr && is_training_batch_norm(*node)) return true;
  const Weight* target = program.find_weight(write.target);
  return target != nullptr && ends_with(target->name, "num_batches_tracked");
}

void drop_training_writes(Program& program) {
  std::vector<const Node*> producers(program.values.size(), nullptr);
  for (const Node& node : program.nodes) {
    for (ValueId result : node.results) producers[static_cast<size_t>(result)] = &node;
  }
  std::erase_if(program.writes, [&](const StateWrite& write) { return is_training_write(program, write, producers); });
}

constexpr std::array kDropouts = {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout",
                                  "aten::feature_alpha_dropout"};

// Flags of ops that behave differently in training.
void set_inference_flags(Node& node) {
  if (std::find(kDropouts.begin(), kDropouts.end(), node.op.name()) != kDropouts.end()) {
    node.argument("train") = false;
  } else if (node.is("aten::batch_norm")) {
    if (!node.argument("running_mean").is_none()) node.argument("training") = false;
  } else if (node.is("aten::scaled_dot_product_attention")) {
    node.argument("dropout_p") = 0.0;
  } else if (node.op.has_schema() && node.op.argument_index("train") >= 0 && node.op.argument_index("params") >= 0) {
    node.argument("train") = false;  // lstm, gru, rnn: dropout between their layers
  } else if (node.is("aten::rrelu")) {
    node.argument("training") = false;
  }
}

Program convert_body(const Program& body) {
  Program program = body;
  convert_to_inference(program);
  return program;
}

}  // namespace

void convert_to_inference(Program& program) {
  drop_training_writes(program);
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    Node& node = rewriter.node(position);
    set_inference_flags(node);
    if (node.is("aten::native_dropout")) {
      rewriter.replace_value(node.results.at(0), node.argument("input"));
    } else if (is_training_batch_norm(node) && !node.argument("running_mean").is_none()) {
      const ValueId output = node.results.at(0);
      const ValueType type = program.value(output).type;
      const ArgumentList arguments = {
          node.argument("input"),        node.argument("weight"),      node.argument("bias"),
          node.argument("running_mean"), node.argument("running_var"), false,
          node.argument("momentum"),     node.argument("eps"),         false};
      const ValueId inference =
          rewriter.insert_before(position, Op::find("aten::batch_norm"), arguments, {type}, node.origin);
      rewriter.replace_value(output, inference);
    }
    for (std::shared_ptr<const Program>& body : node.bodies) {
      body = std::make_shared<const Program>(convert_body(*body));
    }
  }
  rewriter.finish();
  program.training = false;
}

}  // namespace lissome
