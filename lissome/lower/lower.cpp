#include "lissome/lower.h"

#include <ATen/core/ivalue.h>

#include <algorithm>

#include "lissome/base.h"
#include "lissome/lower/candidate.h"
#include "lissome/lower/time_candidates.h"

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

// A later candidate must be this much faster than an earlier one: measured times of equals differ too.
constexpr double kFasterBy = 0.97;

class Lowering {
 public:
  Lowering(const Program& program, const LowerOptions& options)
      : options_(options), builder_(program, options.threads), timer_(program, options) {
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
    const std::string result = builder_.program().value(node.results[0]).name;
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
    std::vector<const Candidate*> accepted;
    for (const Candidate& row : rows) {
      std::string refused = barriers_ ? "the program writes into tensors in place" : row.refuse(builder_, node);
      if (refused.empty()) accepted.push_back(&row);
      choice.candidates.push_back({std::string(row.name), std::move(refused), 0});
    }
    choice.candidates.push_back({std::string(kReferenceKernel), {}, 0});
    const Candidate* chosen = choose(node, accepted, choice);
    choice.chosen = chosen ? chosen->name : kReferenceKernel;
    choices_.push_back(std::move(choice));
    if (chosen) {
      chosen->emit(builder_, node);
    } else {
      builder_.keep_node(node);
    }
  }

  // Null is the reference.
  const Candidate* choose(const Node& node, std::vector<const Candidate*> accepted, PlanChoice& choice) {
    if (const ForcedKernel* forced = find_forced(node)) {
      choice.reason = "forced";
      if (forced->kernel == kReferenceKernel) return nullptr;
      for (const Candidate* candidate : accepted) {
        if (candidate->name == forced->kernel) return candidate;
      }
    }
    choice.reason = accepted.empty() ? "nothing else accepts it" : "first accepted";
    if (accepted.empty() || options_.effort == Effort::fast) return accepted.empty() ? nullptr : accepted.front();
    if (!accepted.front()->timed) return accepted.front();
    accepted.push_back(nullptr);
    const std::vector<CandidateTime>& times = timer_.measure(node, accepted);
    size_t best = accepted.size();
    for (size_t i = 0; i < accepted.size(); ++i) {
      for (PlanCandidate& row : choice.candidates) {
        if (row.name != (accepted[i] ? accepted[i]->name : kReferenceKernel)) continue;
        row.nanoseconds = times[i].nanoseconds;
        if (!times[i].failure.empty()) row.refused = "failed when tried: " + times[i].failure;
      }
      if (times[i].nanoseconds == 0) continue;
      if (best == accepted.size() || times[i].nanoseconds < times[best].nanoseconds * kFasterBy) best = i;
    }
    choice.reason = "fastest";
    return best == accepted.size() ? nullptr : accepted[best];
  }

  const LowerOptions& options_;
  PlanBuilder builder_;
  CandidateTimer timer_;
  std::vector<PlanChoice> choices_;
  bool barriers_ = false;
};

}  // namespace

Plan lower_program(const Program& program) { return lower_program(program, {}); }

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
