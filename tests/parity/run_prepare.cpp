// Prepares every parity case for inference and compares with what PyTorch answered in eval mode: cases that were
// exported in train mode with what module.eval() gives. Preparing a second time must change nothing. Prints each case
// with the passes that fired, then pass x network; exit status 1 when any case fails.
//
//   run_prepare [--text] FOLDER [NAME...]    --text: the prepared programs too
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "case_runs.h"
#include "lissome/base.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

struct Row {
  std::string name, family;
  size_t before = 0, after = 0;  // nodes
  double error = 0;
  std::map<std::string, int> rewrites, ops;
  std::string text;
  std::string failure;  // empty: passed
};

std::vector<c10::IValue> run_writing(const Program& program, const ParityCase& parity,
                                     const std::vector<c10::IValue>& inputs) {
  InterpretOptions options;
  options.write_state = true;
  return run_program(program, parity, copy_values(inputs), options);
}

void note(Row& row, const std::string& what, const Agreement& agreement) {
  row.error = std::max(row.error, agreement.error);
  require_agreement(what, agreement);
}

void check_against_python(const Program& program, const ParityCase& parity, Row& row) {
  const bool train = parity.mode == "train";
  for (size_t k = 0; k < parity.runs.size(); ++k) {
    const ParityRun& run = parity.runs[k];
    const std::vector<c10::IValue>&expected = train ? run.eval : run.expected, &f64 = train ? run.eval_f64 : run.f64;
    const auto outputs = run_writing(program, parity, run.inputs);
    if (expected.empty()) continue;  // no eval form: it runs
    for (size_t i = 0; i < outputs.size(); ++i) {
      note(row, "output " + std::to_string(i) + " of run " + std::to_string(k),
           compare_values(outputs[i], expected.at(i), f64.empty() ? c10::IValue() : f64[i]));
    }
  }
  if (!parity.state) return;
  // Evaluation leaves statistics as they were.
  for (const auto& [name, tensor] : train ? parity.state->before : parity.state->after) {
    const Weight* weight = program.find_weight(name);
    if (weight != nullptr) note(row, "state " + name, compare_values(weight->tensor, tensor, {}));
  }
}

void check_settled(const Program& prepared) {
  Program again = prepared;
  std::string fired;
  for (const PassResult& result : run_pipeline(again)) {
    if (result.rewrites > 0) fired += result.name + " " + std::to_string(result.rewrites) + ":\n" + result.diff;
  }
  if (!fired.empty()) throw_error(ErrorKind::internal, "preparing twice changes more: ", fired);
}

void count_ops(const Program& program, std::map<std::string, int>& ops) {
  for (const Node& node : program.nodes) {
    ++ops[node.op.name().substr(node.op.name().find("::") + 2)];
    for (const auto& body : node.bodies) count_ops(*body, ops);
  }
}

void check_case(const ParityCase& parity, Row& row) {
  const Program program = import_pt2(parity.model());
  std::vector<PassResult> results;
  const Program prepared = prepare_inference(program, {}, &results);
  for (const PassResult& result : results) row.rewrites[result.name] += result.rewrites;
  row.before = program.nodes.size();
  row.after = prepared.nodes.size();
  count_ops(prepared, row.ops);
  row.text = print_program(prepared, {.origins = false, .declarations = true});
  verify_program(prepared, Stage::optimized);
  if (prepared.training) throw_error(ErrorKind::internal, "the prepared program says that it is in training form");
  check_against_python(prepared, parity, row);
  check_settled(prepared);
}

Row run_case(const std::string& folder) {
  Row row;
  row.name = std::filesystem::path(folder).filename().string();
  try {
    const ParityCase parity = read_parity_case(folder);
    row.family = parity.family;
    check_case(parity, row);
  } catch (const std::exception& error) {
    row.failure = describe_failure(error);
  }
  return row;
}

std::string print_counts(const std::map<std::string, int>& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) {
    if (count > 0) parts.push_back(name + " " + std::to_string(count));
  }
  return join(parts, ", ");
}

void print_row(const Row& row, bool text) {
  std::printf("%-38s %4zu -> %4zu nodes  %8.1e  %s\n", row.name.c_str(), row.before, row.after, row.error,
              row.failure.empty() ? "ok" : "FAILED");
  std::printf("    %s\n", print_counts(row.rewrites).c_str());
  std::printf("    left: %s\n", print_counts(row.ops).c_str());
  if (text) std::printf("%s", row.text.c_str());
  if (!row.failure.empty()) std::printf("    %s\n", row.failure.c_str());
  std::fflush(stdout);
}

// In the pipeline's order; a pass that stands there twice is one row.
std::vector<std::string> list_pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : list_passes()) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.emplace_back(pass.name);
  }
  return names;
}

void print_networks(const std::vector<Row>& rows, const std::vector<std::string>& passes) {
  std::printf("\nRewrites in whole networks\n%-30s", "");
  for (size_t i = 0; i < passes.size(); ++i) std::printf("%4zu", i + 1);
  std::printf("\n");
  for (const Row& row : rows) {
    if (!row.family.starts_with("networks")) continue;
    std::printf("%-30s", row.name.c_str());
    for (const std::string& pass : passes) {
      const auto found = row.rewrites.find(pass);
      const int count = found == row.rewrites.end() ? 0 : found->second;
      if (count > 0) {
        std::printf("%4d", count);
      } else {
        std::printf("%4s", ".");
      }
    }
    std::printf("\n");
  }
}

void print_passes(const std::vector<Row>& rows, const std::vector<std::string>& passes) {
  std::printf("\n");
  for (size_t i = 0; i < passes.size(); ++i) {
    const auto fired = std::count_if(rows.begin(), rows.end(), [&](const Row& row) {
      const auto found = row.rewrites.find(passes[i]);
      return found != row.rewrites.end() && found->second > 0;
    });
    std::printf("%2zu %-32s fired in %3td of %zu cases\n", i + 1, passes[i].c_str(), fired, rows.size());
  }
}

int run_all(const std::vector<std::string>& folders, bool text) {
  std::vector<Row> rows;
  for (const std::string& folder : folders) {
    rows.push_back(run_case(folder));
    print_row(rows.back(), text);
  }
  const std::vector<std::string> passes = list_pass_names();
  print_networks(rows, passes);
  print_passes(rows, passes);
  const auto agree = std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.failure.empty(); });
  std::printf("%td of %zu prepared cases agree\n", agree, rows.size());
  return agree == static_cast<std::ptrdiff_t>(rows.size()) ? 0 : 1;
}

}  // namespace
}  // namespace lissome

int main(int count, char** words) {
  using namespace lissome;
  const bool text = count > 1 && std::strcmp(words[1], "--text") == 0;
  const int first = text ? 2 : 1;
  if (count <= first) {
    std::fprintf(stderr, "usage: run_prepare [--text] FOLDER [NAME...]\n");
    return 2;
  }
  at::set_num_threads(kExporterThreads);
  const auto folders = list_case_folders(words[first], std::set<std::string>(words + first + 1, words + count));
  if (folders.empty()) {
    std::fprintf(stderr, "no cases in %s\n", words[first]);
    return 1;
  }
  return run_all(folders, text);
}
