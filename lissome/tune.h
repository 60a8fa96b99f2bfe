// Face of tune: searches for a faster version of a model that meets a goal, and records every step. Each step is
// measured against the step before, interleaved, and is undone if it does not pay or costs too much quality. A search
// always returns a result.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lissome/compare.h"
#include "lissome/compress.h"
#include "lissome/data.h"
#include "lissome/lower.h"
#include "lissome/measure.h"
#include "lissome/program.h"
#include "lissome/runtime.h"

namespace lissome {

struct Goal {
  std::optional<double> latency;  // seconds, median of one call at the given batch; empty: as fast as max_loss allows
  std::optional<int64_t> memory;  // bytes that lissome's and libtorch's allocators hold at their peak, weights included
  std::optional<int64_t> size;    // bytes of the finished file
  std::optional<double> throughput;    // samples a second, in calls of as many samples as serves best
  std::optional<double> first_answer;  // seconds to open the finished file and to answer the first call
  double max_loss = 0.005;  // absolute, in the unit of the metric: 0.005 of accuracy, of cosine, of relative error
};

struct Optimized {
  Program program;  // the program that the plan was lowered from
  Plan plan;
  OptimizationRecord record;
  bool met = true;  // whether every goal is met
};

struct OptimizeOptions {
  Goal goal;
  std::optional<Metric> metric;  // default: top1 with class labels, else cosine
  int64_t batch = 0;             // samples of one call, for latency; 0: the fewest that the model takes
  int threads = 0;               // 0: the fastest number, which is measured
  double seconds = 600;    // limit on the whole search; the record names steps that were left out for lack of time
  uint64_t seed = 0;       // for the split of data and for generated inputs
  std::string model_name;  // for the record
  std::string command;     // the command that repeats this search, for the record
  // Tries only lossy steps of this precision: f32 (none), bf16, or i8 (alone or with bf16). Default: all.
  std::optional<Dtype> precision;
  Effort effort = Effort::normal;    // effort of choosing kernels in the last stage; fast leaves the stage out
  std::vector<ForcedKernel> forced;  // kernels that every version except the original uses
  std::string keep_steps;            // folder for the models before and after every accepted step; empty: none
  // Folder for the versions of OptimizationRecord::front, a .lissome each, and their list, front.json; empty: none.
  std::string front;
  // Called with the best version so far once the original has run, and after every step. `better`: it differs from that
  // of the last call. Its record is marked as interrupted and has the numbers of the steps in place of a final
  // measurement. May be empty.
  std::function<void(const Optimized& so_far, bool better)> on_step;
};

// If `data` is null, only exact steps are tried, on generated inputs. The original does not change. When interrupted
// (control.stopped()), returns the best version so far in the form of on_step; when time runs out, measures it as
// usual. Throws the errors of data and model. A goal that is not met is not an error.
Optimized optimize(const Program& original, const Dataset* data, const OptimizeOptions& options,
                   const WorkControl& control = {});

// Writes the model file with the plan and the record. The file is whole or absent.
void save_optimized(const Optimized& optimized, const std::string& path, FileContents contents = FileContents::plan);
// Writes the same file without giving it its name; see AtomicFile::publish().
std::unique_ptr<AtomicFile> seal_optimized(const Optimized& optimized, const std::string& path, FileContents contents);

// ---- one precision, without a search
// -------------------------------------------------------------------------------

// Relative error of answers up to which a form of int8 is taken for its speed; as cosine this is 0.005, what
// optimize() may lose by default.
constexpr double kMostError = 0.1;

// "f32", "bf16" or "int8" (i8). Throws usage for other words.
Dtype parse_target_precision(const std::string& word);

struct PrecisionForm {
  std::string how;                 // "int8, 20 of 21 layers, dynamic, the rest bf16"
  std::vector<std::string> notes;  // which layers stay in float and why, what could not be measured
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Plan> plan;
  // |answers - f32's answers| / |f32's answers|, Frobenius, over rows that calibrated nothing. Empty without data.
  std::optional<double> error;
  // Top-1 accuracy on those rows where they have labels of classes: in f32 and in this form.
  struct Accuracy {
    double f32 = 0, form = 0;
    int64_t samples = 0;
  };
  std::optional<Accuracy> accuracy;
  double seconds = 0;  // median of one call, interleaved with the other forms; 0 where no form was timed
  std::vector<QuantizedLayer> layers;  // of int8: what became of each layer
};

// "answers differ from f32's by 0.86 % (relative error)" and the accuracies, a line each; empty where nothing was
// measured.
std::string describe_error(const PrecisionForm& form);

// {"f32": 0.912, "quantized": 0.91, "samples": 512}, or null.
Json to_json(const std::optional<PrecisionForm::Accuracy>& accuracy);

// The model file of a form; its metadata say how it was made and what it loses.
ModelFile pack_form(const PrecisionForm& form, FileContents contents);

// Makes a model in a lower precision by rule. Nothing is undone for what it loses: the caller reads `error`.
class PrecisionMaker {
 public:
  // `program` is prepared (see prepare_inference). `data` may be null, and is copied but for its arrays. `call`: inputs
  // at whose sizes kernels and forms are timed, in place of lowering.inputs; empty: the first rows of the data, where
  // there are any. Nothing is timed with Effort::fast. `control` hears which form is being made.
  PrecisionMaker(std::shared_ptr<const Program> program, const Dataset* data, LowerOptions lowering,
                 std::vector<NamedArray> call = {}, WorkControl control = {});
  ~PrecisionMaker();
  PrecisionMaker(const PrecisionMaker&) = delete;
  PrecisionMaker& operator=(const PrecisionMaker&) = delete;

  PrecisionForm make(Dtype precision);  // f32, bf16 or i8: of the forms in int8 the first
  PrecisionForm make_f32();
  PrecisionForm make_bf16();
  // Scales from calibration, scales of linears computed while running, and the better of them with bf16 between its
  // layers and (where timed) int8 attention. The first is the one to take: the fastest whose error is at most
  // kMostError, else the one with the least error. Half of the rows calibrate, the others judge, each at most 512,
  // fewer where weights are large. Throws usage without data, invalid_input for fewer than two different samples,
  // unsupported where no layer can be int8.
  std::vector<PrecisionForm> make_int8();
  // int8 in the kind that the options name, and nothing else: layers that keep fewer decibels of signal over
  // quantization noise than `least_signal_to_noise` stay in f32. Rows and errors as make_int8().
  PrecisionForm quantize(const QuantizeOptions& options, double least_signal_to_noise = kLeastSignalToNoise);
  // int8 with a scale for each activation, of what `train` makes of insert_fake_quantization(original): the program
  // from which this one was prepared. Rows and errors, against f32 before training, as make_int8().
  using Train = std::function<Program(const Program& fake_quantized)>;
  PrecisionForm quantize_trained(const Program& original, const Train& train, const QuantizeOptions& options = {});
  // Weights of 4 or 8 bits, see lissome/compress.h. Without data nothing weighs the inputs, and no error is measured.
  PrecisionForm quantize_weights(int bits, const QuantizeOptions& options = {});

 private:
  struct Candidate {
    PrecisionForm form;
    std::unique_ptr<Session> session;
  };
  struct Answers {
    Dataset rows;
    OutputRows f32;        // of the model in f32
    std::string unjudged;  // why there are none
    std::string left_out;  // which of their numbers cannot be judged
  };
  struct Rows {
    Dataset calibration;
    Answers answers;  // on the rows that judge
  };

  void report(const std::string& how);
  Candidate lower(std::string how, std::shared_ptr<const Program> program) const;
  Candidate lower_quantized(std::string how, Quantized quantized);
  PrecisionForm finish_int8(Quantized quantized, const Rows& rows, bool dynamic, const std::string& how);
  void add_mixed(std::vector<Candidate>& all, const Answers& answers);
  void put_best_first(std::vector<Candidate>& all) const;
  void time_calls(std::vector<Candidate>& all) const;
  bool is_timed() const { return lowering_.effort != Effort::fast; }
  int64_t count_rows() const;
  Dataset cut_rows(Dataset rows) const;
  Rows split_rows();
  Quantized calibrate(const Dataset& rows, const QuantizeOptions& options, double least_signal_to_noise);
  Answers collect_answers(Dataset rows);
  static void note_infinite(Answers& answers);
  void judge(Candidate& made, const Answers& answers) const;

  std::shared_ptr<const Program> program_;
  LowerOptions lowering_;
  std::vector<NamedArray> call_;
  WorkControl control_;
  int made_ = 0;          // forms so far, for progress
  std::string few_rows_;  // a note where there are few
  BatchRange batch_;
  std::optional<Dataset> data_;
};

// Most bytes that libtorch's CPU allocator held on this thread during `work`, above those before.
int64_t measure_libtorch_peak(const std::function<void()>& work);

// The model as save_optimized() writes it; without a record if `record` is null.
ModelFile pack_with_record(const Program& program, const Plan& plan, const Json& record, FileContents contents);

// The record as JSON, with all numbers.
Json to_json(const OptimizationRecord& record);

}  // namespace lissome
