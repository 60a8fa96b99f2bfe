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

// The original in eval form after all passes; `notes` say what each did.
struct Prepared {
  std::shared_ptr<const Program> program;
  std::vector<std::string> notes;
};

class Search {
 public:
  Search(const Program& original, const Dataset* data, const OptimizeOptions& options, const WorkControl& control);
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // What becomes of a step: whether it must pay to be kept.
  enum class Keep {
    when_it_pays,
    without_libtorch,  // kept as well where it frees the model of libtorch, or is not slower beyond noise
  };
  // Builds, measures, judges on held-out data where there is some; the best so far changes when the step is accepted.
  // Errors of kind unsupported while building refuse the step; others pass through.
  bool try_step(const std::string& stage, const std::string& name, const std::function<Proposal()>& propose,
                Keep keep = Keep::when_it_pays);
  // Notes a step that was left out, with the reason.
  void skip_step(const std::string& stage, const std::string& name, const std::string& reason);

  const Variant& best() const { return *best_; }
  const Variant& original() const { return *original_; }
  const Prepared& fused();  // by all passes; precision starts from it and never stacks on a lossy step
  const Bench& bench() const { return bench_; }
  const OptimizeOptions& options() const { return options_; }
  const WorkControl& control() const { return work_; }  // stops when the search is stopped and when its time is up
  const QualityJudge* judge() const { return judge_ ? &*judge_ : nullptr; }
  const std::optional<DataSplit>& split() const { return split_; }
  std::vector<std::vector<c10::IValue>> calibration_batches() const;
  // The last quality loss that refused a lossy step, if that was the reason.
  std::optional<double> last_loss() const { return last_loss_; }

  bool has_data() const { return split_.has_value(); }
  double spent_seconds() const { return watch_.seconds(); }
  void report(const std::string& stage, const std::string& message);

  // Measures totals, goals and layers of the best, and answers. Cut short where the search is stopped.
  Optimized finish();
  // The best so far, with what the steps measured.
  Optimized describe_so_far() const;

 private:
  void set_up_data(const Dataset* data);
  void set_up_judge(Metric metric);
  int64_t count_affordable_samples();  // of held-out data, by what one call of the original takes
  bool judge_quality(Variant& variant, StepRecord& step, const WorkControl& control);
  bool stop_step(const std::string& stage, const std::string& name,
                 const WorkControl& control);  // notes it where stopped
  double measuring_seconds() const;            // that the next step's comparison may take
  void tell_so_far(bool better) const;
  Optimized take_best(OptimizationRecord record) const;
  void keep_step(const Variant& before, const Variant& after);

  const OptimizeOptions& options_;
  const WorkControl& control_;
  WorkControl work_;
  Stopwatch watch_;
  std::vector<DataSignature> signature_;
  CallSizes call_;
  int64_t batch_;  // samples of one call
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
