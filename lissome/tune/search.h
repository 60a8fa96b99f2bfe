// The state of one search: the original, the best so far, what was tried. Stages (stages.h) propose, the search judges.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lissome/tune/gate.h"
#include "lissome/tune/variant.h"

namespace lissome {

// A proposal: what to lower and how. `notes` go into the record whatever becomes of it.
struct Proposal {
  std::shared_ptr<const Program> program;
  LowerOptions lowering;
  std::vector<std::string> notes;
};

// The original in eval form after some or all passes; `notes` say what each did.
struct Prepared {
  std::shared_ptr<const Program> program;
  std::vector<std::string> notes;
};
Prepared prepare(const Program& original, const std::vector<std::string>& disabled_passes);

class Search {
 public:
  Search(const Program& original, const Dataset* data, const OptimizeOptions& options, const WorkControl& control);

  // Builds, measures, judges; the best so far changes when the step is accepted. `lossy` steps are judged on held-out
  // data too. Errors of kind unsupported while building refuse the step; others pass through.
  bool try_step(const std::string& stage, const std::string& name, bool lossy,
                const std::function<Proposal()>& propose);
  // Notes a step that was left out, with the reason.
  void skip_step(const std::string& stage, const std::string& name, const std::string& reason);

  const Variant& best() const { return *best_; }
  const Variant& original() const { return *original_; }
  const Prepared& fused();  // by all passes; precision starts from it and never stacks on a lossy step
  const Bench& bench() const { return bench_; }
  const OptimizeOptions& options() const { return options_; }
  const WorkControl& control() const { return control_; }
  const QualityJudge* judge() const { return judge_ ? &*judge_ : nullptr; }
  const std::optional<DataSplit>& split() const { return split_; }
  std::vector<std::vector<c10::IValue>> calibration_batches() const;
  // The last quality loss that refused a lossy step, if that was the reason.
  std::optional<double> last_loss() const { return last_loss_; }

  bool has_data() const { return split_.has_value(); }
  bool out_of_time() const { return control_.stopped() || watch_.seconds() > 0.9 * options_.seconds; }
  double spent_seconds() const { return watch_.seconds(); }
  void report(const std::string& stage, const std::string& message);

  // Measures totals, goals and layers of the best, and answers. Cut short where the search is stopped.
  Optimized finish();
  // The best so far, with what the steps measured.
  Optimized describe_so_far() const;

 private:
  void set_up_data(const Dataset* data);
  bool judge_quality(Variant& variant, StepRecord& step);
  bool stop_step(const std::string& stage, const std::string& name);  // notes it where the search is stopped
  void tell_so_far(bool better) const;
  Optimized take_best(OptimizationRecord record) const;
  void keep_step(const Variant& before, const Variant& after);

  const OptimizeOptions& options_;
  const WorkControl& control_;
  Stopwatch watch_;
  std::vector<DataSignature> signature_;
  std::optional<DataSplit> split_;
  Bench bench_;
  std::optional<QualityJudge> judge_;
  std::shared_ptr<Variant> original_, best_;  // one and the same until a step is accepted
  std::optional<Prepared> fused_;
  OptimizationRecord record_;
  std::optional<double> last_loss_;
  int tried_ = 0;
};

}  // namespace lissome
