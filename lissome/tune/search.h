// The state of one search: the original, the best version so far, and the steps that were tried. Stages (stages.h)
// propose steps, and the search judges them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lissome/compress.h"
#include "lissome/tune/front.h"
#include "lissome/tune/gate.h"
#include "lissome/tune/variant.h"

namespace lissome {

// A proposed step: the program to lower, and how. `notes` go into the record even if the step is refused.
struct Proposal {
  std::shared_ptr<const Program> program;
  LowerOptions lowering;
  std::vector<std::string> notes;
};

// The original in eval form after all passes. `notes` describe the changes of each pass.
struct Prepared {
  std::shared_ptr<const Program> program;
  std::vector<std::string> notes;
};

class Search {
 public:
  Search(const Program& original, const Dataset* data, const OptimizeOptions& options, const WorkControl& control);
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // When a step is kept.
  enum class Keep {
    when_it_pays,
    without_libtorch,  // also if the model then needs no libtorch, or is not slower beyond noise
  };
  // Builds and measures a step, and judges it on held-out data if there is any. An accepted step becomes the best so
  // far. An unsupported error while building refuses the step; other errors are thrown.
  bool try_step(const std::string& stage, const std::string& name, const std::function<Proposal()>& propose,
                Keep keep = Keep::when_it_pays);
  // Records a step that is left out, with the reason.
  void skip_step(const std::string& stage, const std::string& name, const std::string& reason);

  const Variant& best() const { return *best_; }
  const Variant& original() const { return *original_; }
  const Prepared&
  fused();  // the program after all passes, from which lossy steps start, so that they never build on each other
  const Bench& bench() const { return bench_; }
  const OptimizeOptions& options() const { return options_; }
  const WorkControl& control() const { return work_; }  // stops when the search is stopped or its time is up
  const QualityJudge* judge() const { return judge_ ? &*judge_ : nullptr; }
  const std::optional<DataSplit>& split() const { return split_; }
  CalibrationBatches calibration_batches() const;
  // The last quality loss for which a lossy step was refused.
  std::optional<double> last_loss() const { return last_loss_; }

  // Judges by all held-out samples that the time allows; until then by few.
  void widen_judge();

  bool has_data() const { return split_.has_value(); }
  double spent_seconds() const { return watch_.seconds(); }
  void report(const std::string& stage, const std::string& message);

  // Measures totals, goals and layers of the best version and completes the record. Measures less if the search is
  // stopped.
  Optimized finish();
  // The best version so far, with the numbers of the steps.
  Optimized describe_so_far() const;

 private:
  void set_up_data(const Dataset* data);
  void set_up_judge(const Dataset* data);
  void judge_by(Metric metric, OutputRows outputs);  // `outputs`: the original's on the held-out samples
  double time_sample();                              // seconds, by the original
  // Samples that fit into a share of the time.
  int64_t count_affordable_samples(double share, double seconds_each) const;
  void shorten_data(double seconds_each);  // to what the time allows
  bool is_allowed(double loss) const;
  // About how many bytes of the file the record will take.
  int64_t count_record_bytes() const;
  bool judge_quality(Variant& variant, StepRecord& step, const WorkControl& control);
  // Puts a version that was measured on the front; one that did not pay is judged for it, where time is left.
  void add_to_front(Variant& variant, StepRecord& step, const Ratio& ratio, const Need& size);
  bool stop_step(const std::string& stage, const std::string& name,
                 const WorkControl& control);  // records the step if it was stopped
  double measuring_seconds() const;            // for the comparison of the next step
  void report_so_far(bool better) const;
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
  Dataset judged_;             // all held-out samples that the time allows
  int64_t held_out_ = 0;       // before the time was looked at
  std::string unused_labels_;  // why the labels judge nothing; empty where they do, or are no classes
  Bench bench_;
  std::optional<QualityJudge> judge_;
  std::shared_ptr<Variant> original_, best_;  // the same object until a step is accepted
  std::optional<Prepared> fused_;
  std::optional<double> original_seconds_;  // of a call, beside the first step
  Ratio best_ratio_;                        // time of the best version / the original's
  std::optional<Front> front_;
  OptimizationRecord record_;
  std::optional<double> last_loss_;
  int tried_ = 0;
};

}  // namespace lissome
