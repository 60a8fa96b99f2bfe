#include "lissome/lower/choose/choose_kernels.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "lissome/lower/candidate/candidate.h"
#include "lissome/lower/choose/time_candidates.h"
#include "lissome/lower/choose/timing_cache.h"
#include "lissome/measure.h"

namespace lissome {
namespace {

// A change must be this much faster for sure: choices are kept for ever, and equals differ when measured too.
constexpr double kFasterBy = 0.99;
// So much faster where a plan that did without libtorch would need it, which costs a quarter of a second and 100 MiB.
constexpr double kWorthLibtorch = 0.8;
constexpr double kClearlyFaster = 0.97;  // of one node alone
// A kernel that alone takes so much longer cannot win by what it spares its neighbours.
constexpr double kHopeless = 2;

struct Budget {
  double seconds, seconds_of_one;  // of all changes; of one comparison
};
constexpr Budget kNormal = {15, 0.3};
constexpr Budget kLong = {120, 2};

// Null is the reference.
const Candidate* find_candidate(const Op& op, std::string_view kernel) {
  const std::span<const Candidate> rows = find_candidates(op);
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Candidate& r) { return r.name == kernel; });
  return row == rows.end() ? nullptr : &*row;
}

bool runs_in_libtorch(const Op& op, std::string_view kernel) {
  const Candidate* row = find_candidate(op, kernel);
  return row == nullptr || row->libtorch;
}

// Empty for what joins no nodes.
std::string find_apart(const Op& op, std::string_view kernel) {
  const Candidate* row = find_candidate(op, kernel);
  return row == nullptr ? std::string() : std::string(row->apart);
}

class KernelChooser {
 public:
  KernelChooser(const Program& program, const LowerOptions& options,
                const std::function<Lowered(const Preferences&)>& lower)
      : lower_(lower),
        options_(options),
        budget_(options.effort == Effort::max ? kLong : kNormal),
        timer_(program, options),
        cache_(options.threads),
        key_(hash_text(print_program(program) + timer_.describe_choice())) {
    for (const Node& node : program.nodes) {
      if (!node.results.empty()) nodes_[program.value(node.results.front()).name] = &node;
    }
  }

  Plan choose() {
    if (take_kept_choice()) return std::move(best_.plan);
    best_ = lower_({});
    if (best_.open.empty()) return std::move(best_.plan);
    inputs_ = timer_.make_inputs();
    try {
      session_ = open(best_.plan);
    } catch (const std::exception& error) {
      // Made-up inputs need not be ones that the model takes: without a run there is nothing to choose by.
      for (PlanChoice& choice : best_.plan.choices) choice.reason += ", untimed: " + std::string(error.what());
      return std::move(best_.plan);
    }
    time_kinds();
    try_fastest_alone();
    for (const std::string& kernel : list_kernels()) try_everywhere(kernel);
    for (const Move& move : list_moves()) try_kind(move);
    if (options_.effort == Effort::max) {
      for (const Move& move : list_moves()) try_nodes(move);
    }
    return finish();
  }

 private:
  // Equal nodes: alone they take equal time.
  struct Kind {
    std::vector<std::string> nodes;
    std::map<std::string, CandidateTime> times;  // by kernel
  };
  struct Move {
    std::string kind, kernel;
    double gain;  // nanoseconds that the nodes alone would save
  };

  bool stopped() const { return options_.should_stop && options_.should_stop(); }

  Plan finish() {
    note_times();
    if (stopped()) return std::move(best_.plan);
    for (const auto& [name, kind] : kinds_) cache_.keep_times(name, kind.times);
    cache_.keep_choice(key_, preferences_);
    cache_.save();
    return std::move(best_.plan);
  }

  std::unique_ptr<Session> open(const Plan& plan) {
    SessionOptions options;
    options.threads = options_.threads;
    auto session = std::make_unique<Session>(std::make_shared<Plan>(plan), options);
    session->run(inputs_.views);
    return session;
  }

  // What was chosen for this very program, on this machine, by the kernels that there are now.
  bool take_kept_choice() {
    const std::optional<Preferences> kept = cache_.find_choice(key_);
    if (!kept) return false;
    best_ = lower_(*kept);
    list_kinds();
    note_times();
    return true;
  }

  // Times that are known come along.
  void list_kinds() {
    for (const OpenChoice& choice : best_.open) {
      const std::string name = timer_.describe(*nodes_.at(choice.node));
      kind_of_[choice.node] = name;
      const auto [kind, is_new] = kinds_.try_emplace(name);
      kind->second.nodes.push_back(choice.node);
      if (is_new) kind->second.times = cache_.find_times(name);
    }
  }

  void time_kinds() {
    list_kinds();
    for (const OpenChoice& choice : best_.open) {
      Kind& kind = kinds_.at(kind_of_.at(choice.node));
      const Node& node = *nodes_.at(choice.node);
      std::vector<std::string> untimed;
      for (const std::string& kernel : choice.accepted) {
        if (!kind.times.contains(kernel) && find_apart(node.op, kernel).empty()) untimed.push_back(kernel);
      }
      if (stopped()) return;
      if (!untimed.empty()) kind.times.merge(timer_.measure(node, untimed));
      for (const std::string& kernel : choice.accepted) {
        const std::string apart = find_apart(node.op, kernel);
        if (!apart.empty()) kind.times.try_emplace(kernel, kind.times.at(apart));
      }
    }
  }

  // Those that join nodes first: what brings libtorch must gain much more.
  std::vector<std::string> list_kernels() const {
    std::set<std::pair<bool, std::string>> found;
    for (const OpenChoice& choice : best_.open) {
      for (const std::string& kernel : choice.accepted) {
        if (kernel != choice.chosen) found.emplace(find_apart(nodes_.at(choice.node)->op, kernel).empty(), kernel);
      }
    }
    std::vector<std::string> kernels;
    for (const auto& [stands_alone, kernel] : found) kernels.push_back(kernel);
    return kernels;
  }

  std::vector<Move> list_moves() const {
    std::vector<Move> moves;
    for (const auto& [name, kind] : kinds_) {
      const double now = time_of(kind, chosen_for(kind.nodes.front()));
      for (const auto& [kernel, time] : kind.times) {
        if (kernel == chosen_for(kind.nodes.front()) || !time.failure.empty()) continue;
        if (time.nanoseconds > kHopeless * now) continue;
        moves.push_back({name, kernel, (now - time.nanoseconds) * static_cast<double>(kind.nodes.size())});
      }
    }
    std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.gain > b.gain; });
    return moves;
  }

  static double time_of(const Kind& kind, const std::string& kernel) {
    const auto found = kind.times.find(kernel);
    return found == kind.times.end() ? 0 : found->second.nanoseconds;
  }

  std::string chosen_for(const std::string& node) const {
    for (const OpenChoice& choice : best_.open) {
      if (choice.node == node) return choice.chosen;
    }
    return {};
  }

  // Every kind by the fastest of our kernels at once: many gains show together that drown in noise one by one. Those of
  // libtorch change layouts around them, which their time alone does not tell.
  void try_fastest_alone() {
    Preferences wanted = preferences_;
    for (const auto& [name, kind] : kinds_) {
      const Op& op = nodes_.at(kind.nodes.front())->op;
      const auto first = kind.times.find(chosen_for(kind.nodes.front()));
      const bool works = first != kind.times.end() && first->second.failure.empty();
      double least = works ? kClearlyFaster * first->second.nanoseconds : std::numeric_limits<double>::max();
      for (const auto& [kernel, time] : kind.times) {
        if (!time.failure.empty() || runs_in_libtorch(op, kernel) || time.nanoseconds >= least) continue;
        least = time.nanoseconds;
        for (const std::string& node : kind.nodes) wanted[node] = kernel;
      }
    }
    try_preferences(std::move(wanted));  // what fails here is found and named kind by kind
  }

  void try_everywhere(const std::string& kernel) {
    Preferences wanted = preferences_;
    for (const auto& [name, kind] : kinds_) {
      const auto found = kind.times.find(kernel);
      if (found == kind.times.end() || !found->second.failure.empty()) continue;
      for (const std::string& node : kind.nodes) wanted[node] = kernel;
    }
    try_preferences(std::move(wanted));  // as above
  }

  void try_kind(const Move& move) {
    Preferences wanted = preferences_;
    Kind& kind = kinds_.at(move.kind);
    for (const std::string& node : kind.nodes) wanted[node] = move.kernel;
    kind.times.at(move.kernel).failure = try_preferences(std::move(wanted));
  }

  // Equal nodes need not stand among equal neighbours.
  void try_nodes(const Move& move) {
    const std::vector<std::string>& nodes = kinds_.at(move.kind).nodes;
    if (nodes.size() == 1) return;
    for (const std::string& node : nodes) {
      Preferences wanted = preferences_;
      wanted[node] = move.kernel;
      try_preferences(std::move(wanted));  // what fails has failed for the kind too
    }
  }

  // Returns why the plan could not be made or run, though each part ran alone; empty when it was.
  std::string try_preferences(Preferences wanted) {
    if (wanted == preferences_ || watch_.seconds() > budget_.seconds || stopped()) return {};
    Lowered changed;
    std::unique_ptr<Session> session;
    try {
      changed = lower_(wanted);
      session = open(changed.plan);
    } catch (const std::exception& error) {
      return error.what();
    }
    InterleaveOptions interleave;
    interleave.warmup = 2;
    interleave.least_rounds = 9;
    interleave.rounds = 200;
    interleave.seconds = budget_.seconds_of_one;
    interleave.should_stop = options_.should_stop;
    const Interleaved timing = compare_interleaved(
        {{"before", [&] { session_->run(inputs_.views); }}, {"after", [&] { session->run(inputs_.views); }}},
        interleave);
    const bool adds_libtorch = changed.plan.needs_reference() && !best_.plan.needs_reference();
    if (stopped()) return {};  // a comparison that was cut short proves nothing
    if (timing.ratios[1].interval.high >= (adds_libtorch ? kWorthLibtorch : kFasterBy)) return {};
    best_ = std::move(changed);
    session_ = std::move(session);
    preferences_ = std::move(wanted);
    return {};
  }

  // For --explain: the time of each kernel alone, and why the choice fell.
  void note_times() {
    for (PlanChoice& choice : best_.plan.choices) {
      const auto name = kind_of_.find(choice.node);
      if (name == kind_of_.end()) continue;
      const Kind& kind = kinds_.at(name->second);
      choice.reason = "fastest in the whole plan";
      for (PlanCandidate& candidate : choice.candidates) {
        const auto time = kind.times.find(candidate.name);
        if (time == kind.times.end()) continue;
        candidate.nanoseconds = time->second.nanoseconds;
        if (!time->second.failure.empty()) candidate.refused = "failed when tried: " + time->second.failure;
      }
    }
  }

  const std::function<Lowered(const Preferences&)>& lower_;
  const LowerOptions& options_;
  Budget budget_;
  CandidateTimer timer_;
  TimingCache cache_;
  std::string key_;  // of this program in the cache
  TimingInputs inputs_;
  Stopwatch watch_;
  Lowered best_;
  std::unique_ptr<Session> session_;  // of the best
  Preferences preferences_;
  std::map<std::string, const Node*> nodes_;    // by the name of the first result
  std::map<std::string, Kind> kinds_;           // by description
  std::map<std::string, std::string> kind_of_;  // description by node
};

}  // namespace

Plan choose_kernels(const Program& program, const LowerOptions& options,
                    const std::function<Lowered(const Preferences&)>& lower) {
  return KernelChooser(program, options, lower).choose();
}

}  // namespace lissome
