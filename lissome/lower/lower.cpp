#include "lissome/lower.h"

#include <algorithm>

#include "lissome/base.h"
#include "lissome/lower/candidate.h"

namespace lissome {
namespace {

void check_forced(const LowerOptions& options) {
  const std::vector<std::string> names = list_kernel_names();
  for (const ForcedKernel& forced : options.forced) {
    if (std::find(names.begin(), names.end(), forced.kernel) != names.end()) continue;
    const std::string nearest = find_nearest(forced.kernel, names);
    throw_error(ErrorKind::usage, "there is no kernel ", quote(forced.kernel),
                nearest.empty() ? "" : "; did you mean " + nearest + "?", "\n      Kernels: ", join(names, ", "));
  }
}

class Lowering {
 public:
  Lowering(const Program& program, const LowerOptions& options)
      : options_(options), builder_(program, options.threads) {
    for (const Node& node : program.nodes) barriers_ = barriers_ || find_effects(program, node).barrier();
  }

  Plan run() {
    const std::vector<Node> nodes = builder_.program().nodes;
    for (const Node& node : nodes) lower_node(node);
    Plan plan = builder_.finish();
    plan.choices = std::move(choices_);
    return plan;
  }

 private:
  const ForcedKernel* find_forced(const Node& node) const {
    const std::string result = node.results.empty() || node.results[0] == ValueId::none
                                   ? std::string()
                                   : builder_.program().value(node.results[0]).name;
    for (const ForcedKernel& forced : options_.forced) {
      if (matches_pattern(forced.pattern, node.op.name()) || matches_pattern(forced.pattern, result)) return &forced;
    }
    return nullptr;
  }

  void lower_node(const Node& node) {
    const std::span<const Candidate> rows = find_candidates(node.op);
    if (rows.empty()) {
      builder_.keep_node(node);
      return;
    }
    PlanChoice choice;
    choice.node = builder_.program().value(node.results.at(0)).name;
    choice.op = node.op.name();
    const ForcedKernel* forced = find_forced(node);
    const Candidate* chosen = nullptr;
    for (const Candidate& row : rows) {
      std::string refused = barriers_ ? "the program writes into tensors in place" : row.refuse(builder_, node);
      choice.candidates.push_back({std::string(row.name), refused, 0});
      if (!refused.empty()) continue;
      if (forced && forced->kernel == row.name) chosen = &row;
      if (!forced && !chosen) chosen = &row;
    }
    choice.candidates.push_back({std::string(kReferenceKernel), {}, 0});
    choice.chosen = chosen ? chosen->name : kReferenceKernel;
    choice.reason = forced ? "forced" : "first accepted";
    choices_.push_back(std::move(choice));
    if (chosen) {
      chosen->emit(builder_, node);
    } else {
      builder_.keep_node(node);
    }
  }

  const LowerOptions& options_;
  PlanBuilder builder_;
  std::vector<PlanChoice> choices_;
  bool barriers_ = false;
};

}  // namespace

Plan lower_program(const Program& program, const LowerOptions& options) {
  register_ops();
  check_forced(options);
  Plan plan = Lowering(program, options).run();
  check_plan(plan);
  return plan;
}

void save_prepared(const Program& program, const Plan& plan, const std::string& path) {
  ModelFile file = pack_program(program);
  put_plan(file, plan);
  save_model_file(path, file);
}

}  // namespace lissome
