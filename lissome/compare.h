// Face of compare: how good a changed model still is, on the user's data.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lissome/base.h"
#include "lissome/data.h"
#include "lissome/measure.h"
#include "lissome/program.h"
#include "lissome/runtime.h"

namespace lissome {

enum class Metric : uint8_t {
  top1,                // share of samples whose largest element is the label's class; higher is better
  cosine,              // mean cosine of each sample's output to the target's; higher is better
  relative_error,      // |output - target| / |target|, Frobenius, over all samples; lower is better
  mean_squared_error,  // mean over elements of (output - target)^2; lower is better
};
// "top1", "cosine", "rel_error", "mse". A usage error that lists them otherwise.
Metric parse_metric(std::string_view name);
std::string_view metric_name(Metric metric);
bool is_higher_better(Metric metric);

// One model's first floating output over a dataset, a row a sample, as f32.
struct OutputRows {
  int64_t samples = 0;
  int64_t width = 0;  // elements of a sample
  std::vector<float> values;
  Sizes sizes;  // of a sample
  // Whether a sample has one number for each of two or more classes.
  bool are_scores() const;
};

// Runs the session over all samples, `batch` at a time, or what is nearest in `range`. A last batch below the range is
// filled up, and its surplus rows are cut. Throws invalid_input when the output has no sample dimension.
OutputRows collect_outputs(Session& session, const Dataset& dataset, int64_t batch, const BatchRange& range = {},
                           const WorkControl& control = {});

// Whether the labels are classes: one integer a sample.
bool has_classes(const Dataset& dataset);
// Why the classes that a dataset has cannot be compared with these outputs; empty if they can: a sample's output is a
// row of scores, one for each class.
std::string refuse_classes(const Dataset& dataset, const OutputRows& outputs);
// Why integer labels say nothing of these outputs, where no metric was asked for: several a sample, no scores, or
// samples that are marked not to count (-100). Empty if they can be compared, or are wrong.
std::string explain_unused_labels(const Dataset& dataset, const OutputRows& outputs);

// `targets` are labels where the dataset has them and the metric can use them, else the original model's outputs: then
// the original scores 1 (top1, cosine) or 0 (errors) by definition.
class QualityJudge {
 public:
  QualityJudge(Metric metric, const Dataset& dataset, OutputRows original);

  double measure(const OutputRows& outputs) const;
  double original() const { return original_quality_; }
  // How much worse than the original, in the metric's unit; negative when better.
  double loss(double quality) const;
  // "accuracy on 2,000 labelled samples" or "agreement with the original model on 200 samples".
  std::string describe() const;

 private:
  Metric metric_;
  std::vector<int64_t> classes_;  // labels for top1
  OutputRows targets_;
  bool labelled_ = false;
  double original_quality_ = 0;
};

// ---- between programs, files and data ----
// The inputs of a program as data sees them; integers that index an embedding carry its range.
std::vector<DataSignature> describe_inputs(const Program& program);
// Which batches it takes, and sizes of its inputs for one.
CallSizes describe_call(const Program& program);
// Borrowed tensors over arrays that outlive them.
std::vector<c10::IValue> to_ivalues(const std::vector<NamedArray>& arrays);

}  // namespace lissome
