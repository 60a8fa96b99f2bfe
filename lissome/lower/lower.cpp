#include "lissome/lower.h"

#include <ATen/core/ivalue.h>

#include <algorithm>

#include "lissome/base.h"
#include "lissome/lower/candidate/candidate.h"
#include "lissome/lower/choose/choose_kernels.h"
#include "lissome/lower/device.h"
#include "lissome/lower/fuse/convert_channel_maps.h"
#include "lissome/lower/fuse/fuse_channel_steps.h"
#include "lissome/lower/fuse/fuse_depthwise_steps.h"
#include "lissome/lower/fuse/fuse_elementwise.h"
#include "lissome/lower/fuse/fuse_norm_steps.h"

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

// "attention" is a word of "aten::scaled_dot_product_attention".
bool is_word_of(const std::string& word, const std::string& op) {
  const auto is_edge = [&](size_t at) {
    return at >= op.size() || std::isalnum(static_cast<unsigned char>(op[at])) == 0;
  };
  for (size_t at = op.find(word); !word.empty() && at != std::string::npos; at = op.find(word, at + 1)) {
    if (is_edge(at - 1) && is_edge(at + word.size())) return true;
  }
  return false;
}

bool matches(const ForcedKernel& forced, const PlanChoice& choice) {
  return matches_pattern(forced.pattern, choice.op) || matches_pattern(forced.pattern, choice.node) ||
         is_word_of(forced.pattern, choice.op);
}

class Lowering {
 public:
  Lowering(const Program& program, const LowerOptions& options, const Preferences& preferences)
      : options_(options), preferences_(preferences), builder_(program, options.threads) {
    for (const Node& node : program.nodes) barriers_ = barriers_ || find_effects(program, node).barrier();
  }

  Lowered run() {
    const std::vector<Node> nodes = builder_.program().nodes;
    for (size_t i = 0; i < nodes.size(); ++i) {
      builder_.start_node(static_cast<int>(i));
      choice_of_node_.push_back(-1);
      lower_node(nodes[i]);
    }
    if (options_.dense_outputs) lay_out_outputs(nodes);
    lowered_.plan = builder_.finish();
    fuse_channel_steps(lowered_.plan);
    fuse_norm_steps(lowered_.plan);
    fuse_elementwise_steps(lowered_.plan);
    convert_channel_maps(lowered_.plan);
    fuse_depthwise_steps(lowered_.plan);
    link_choices();
    check_plan(lowered_.plan);
    return std::move(lowered_);
  }

 private:
  void lower_node(const Node& node) {
    const std::span<const Candidate> rows = find_candidates(node.op);
    // Lists name a node by its first result.
    if (rows.empty() || node.results.at(0) == ValueId::none) {
      builder_.keep_node(node);
      return;
    }
    PlanChoice choice;
    choice.node = builder_.program().value(node.results.at(0)).name;
    choice.op = node.op.name();
    std::vector<const Candidate*> accepted;
    for (const Candidate& row : rows) {
      if (row.guesses && options_.effort != Effort::fast) continue;
      std::string refused = barriers_ ? "the program writes into tensors in place" : row.refuse(builder_, node);
      if (refused.empty()) accepted.push_back(&row);
      choice.candidates.push_back({std::string(row.name), std::move(refused), 0});
    }
    choice.candidates.push_back({std::string(kReferenceKernel), {}, 0});
    const Candidate* chosen = choose(accepted, choice);
    choice.chosen = chosen ? chosen->name : kReferenceKernel;
    note_open(choice, accepted);
    choice_of_node_.back() = static_cast<int>(choices_.size());
    choices_.push_back(std::move(choice));
    if (chosen) {
      chosen->emit(builder_, node);
    } else {
      builder_.keep_node(node);
    }
  }

  void link_choices() {
    for (PlanStep& step : lowered_.plan.steps) {
      for (PlanOrigin& origin : step.origins) {
        if (origin.program_node >= 0) origin.choice = choice_of_node_[static_cast<size_t>(origin.program_node)];
      }
    }
    lowered_.plan.choices = std::move(choices_);
  }

  // A step writes them on all threads into the memory in which they leave.
  void lay_out_outputs(const std::vector<Node>& nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      builder_.start_node(static_cast<int>(i));
      for (const ValueId result : nodes[i].results) {
        if (result == ValueId::none || !leaves_program(builder_.program(), result) || !builder_.may_lay_out(result))
          continue;
        const ValueId laid_out = builder_.lay_out(result, nodes[i]);
        for (ProgramOutput& output : builder_.program().outputs) {
          if (output.value == Argument(result)) output.value = laid_out;
        }
      }
    }
  }

  // Null is the reference.
  const Candidate* choose(const std::vector<const Candidate*>& accepted, PlanChoice& choice) const {
    const auto find = [&](const std::string& kernel) {
      return std::find_if(accepted.begin(), accepted.end(), [&](const Candidate* candidate) {
        return candidate->name == kernel || (kernel == kOwnKernel && !candidate->libtorch);
      });
    };
    const std::string* wanted = nullptr;
    if (const auto preferred = preferences_.find(choice.node); preferred != preferences_.end())
      wanted = &preferred->second;
    const auto forced = std::find_if(options_.forced.begin(), options_.forced.end(),
                                     [&](const ForcedKernel& entry) { return matches(entry, choice); });
    const bool is_forced = forced != options_.forced.end();
    if (is_forced) wanted = &forced->kernel;
    choice.reason = is_forced ? "forced" : "";
    if (wanted != nullptr && *wanted == kReferenceKernel) return nullptr;
    if (wanted != nullptr) {
      if (const auto found = find(*wanted); found != accepted.end()) return *found;
    }
    choice.reason = accepted.empty() ? "nothing else accepts it" : "first accepted";
    if (is_forced) choice.reason += "; " + forced->kernel + " was asked for and does not take it";
    return accepted.empty() ? nullptr : accepted.front();
  }

  void note_open(const PlanChoice& choice, const std::vector<const Candidate*>& accepted) {
    if (accepted.empty() || !accepted.front()->timed || choice.reason == "forced") return;
    OpenChoice open{choice.node, choice.chosen, {}};
    for (const Candidate* candidate : accepted) open.accepted.emplace_back(candidate->name);
    open.accepted.emplace_back(kReferenceKernel);
    lowered_.open.push_back(std::move(open));
  }

  const LowerOptions& options_;
  const Preferences& preferences_;
  PlanBuilder builder_;
  Lowered lowered_;
  std::vector<PlanChoice> choices_;
  std::vector<int> choice_of_node_;  // by position in Program::nodes, -1 where there was none
  bool barriers_ = false;
};

Plan lower_to_device(const Program& program, const LowerOptions& options) {
  LowerOptions there = options;
  there.forced = {{"*", std::string(kReferenceKernel)}};
  Plan plan = Lowering(move_to_device(program, options.device), there, {}).run().plan;
  plan.device = options.device;
  return plan;
}

}  // namespace

Plan lower_program(const Program& program) { return lower_program(program, {}); }

Plan lower_program(const Program& program, const LowerOptions& options) {
  register_ops();
  check_forced(options);
  check_device(options.device);
  if (options.device != "cpu") return lower_to_device(program, options);
  const auto lower = [&](const Preferences& preferences) { return Lowering(program, options, preferences).run(); };
  return options.effort == Effort::fast ? lower({}).plan : choose_kernels(program, options, lower);
}

Effort parse_effort(const std::string& word) {
  if (word == "fast") return Effort::fast;
  if (word == "normal") return Effort::normal;
  if (word == "max") return Effort::max;
  throw_error(ErrorKind::usage, "--effort is fast, normal or max, not ", quote(word));
}

ModelFile pack_prepared(const Program& program, const Plan& plan, FileContents contents) {
  if (contents == FileContents::plan) return pack_plan(plan);
  ModelFile file = pack_program(program);
  put_plan(file, plan);
  return file;
}

void save_prepared(const Program& program, const Plan& plan, const std::string& path, FileContents contents) {
  save_model_file(path, pack_prepared(program, plan, contents));
}

}  // namespace lissome
