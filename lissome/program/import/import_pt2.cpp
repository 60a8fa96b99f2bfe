// `.pt2` -> Program: archive, signature and weights, nodes, then purity. The pieces live in pt2/. Nothing in the file
// is run or unpickled; whatever is wrong with it is one Error, before anything was written anywhere.
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>

#include "lissome/program.h"
#include "lissome/program/import/exclude_ones.h"
#include "lissome/program/pt2/archive.h"
#include "lissome/program/pt2/graph.h"
#include "lissome/program/pt2/guards.h"
#include "lissome/program/pt2/signature.h"
#include "lissome/program/pt2/tensors.h"
#include "lissome/program/purify/purify.h"

namespace lissome {
namespace {

// True for nodes that behave in training as they do not later: dropout, statistics of the batch.
bool is_training_node(const Node& node) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kModes = {{
      {"aten::batch_norm", "training"},
      {"aten::native_batch_norm", "training"},
      {"aten::_native_batch_norm_legit", "training"},
      {"aten::_native_batch_norm_legit_functional", "training"},
      {"aten::_native_batch_norm_legit.no_stats", "training"},
      {"aten::dropout", "train"},
      {"aten::dropout_", "train"},
      {"aten::native_dropout", "train"},
      {"aten::feature_dropout", "train"},
      {"aten::feature_dropout_", "train"},
      {"aten::alpha_dropout", "train"},
      {"aten::alpha_dropout_", "train"},
      {"aten::rrelu", "training"},
      {"aten::rrelu_with_noise", "training"},
      {"aten::lstm.input", "train"},
      {"aten::gru.input", "train"},
  }};
  for (const auto& [op, argument] : kModes) {
    if (!node.is(op)) continue;
    const bool* training = node.argument(argument).get<bool>();
    return training != nullptr && *training;
  }
  return std::any_of(node.bodies.begin(), node.bodies.end(), [](const auto& body) {
    return std::any_of(body->nodes.begin(), body->nodes.end(), is_training_node);
  });
}

Program read_program(const Pt2Archive& archive) {
  Program program;
  OriginTable origins;
  Pt2Tensors tensors(archive);
  read_dimensions(archive, program);
  GraphReader graph(json_member(json_member(archive.model, "graph_module"), "graph"), program, origins);
  SignatureReader signature(archive, program, graph, tensors);
  signature.read_inputs();
  read_guards(archive, program);
  graph.read_nodes();
  signature.read_outputs();
  program.training = std::any_of(program.nodes.begin(), program.nodes.end(), is_training_node);
  return program;
}

// What breaks a rule of programs before anything of ours has changed it comes from the file.
void check_file_program(const Program& program) {
  try {
    verify_program(program, Stage::imported);
  } catch (const Error& error) {
    throw Error(ErrorKind::invalid_input, error.message());
  }
}

}  // namespace

Program import_pt2(const std::string& path) {
  register_ops();
  try {
    const Pt2Archive archive = open_pt2(path);
    Program program = read_program(archive);
    check_file_program(program);
    archive.zip.file()->check_unchanged();
    purify(program);
    exclude_ones(program);
    judge_program(program);
    verify_program(program, Stage::imported);
    check_types(program);
    return program;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal || error.message().find(path) != std::string::npos) throw;
    throw Error(error.kind(), quote(path) + ": " + error.message());
  } catch (const c10::Error& error) {
    throw_error(ErrorKind::invalid_input, quote(path), ": ", error.what_without_backtrace());
  }
}

}  // namespace lissome
