#include "lissome/lower/choose/time_candidates.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>

#include "lissome/measure.h"

namespace lissome {
namespace {

struct TimingBudget {
  int rounds;
  double nanoseconds;  // for all runs of one candidate
};
constexpr TimingBudget kNormalTiming = {7, 6e6};
constexpr TimingBudget kLongTiming = {31, 60e6};

at::Tensor make_input(const ValueType& type, const DimensionBindings& dimensions) {
  std::vector<int64_t> sizes;
  for (const Dimension& size : type.sizes) sizes.push_back(size.evaluate(dimensions));
  const auto options = at::TensorOptions().dtype(scalar_type_of(type.dtype));
  if (is_floating(type.dtype)) return at::randn(sizes, at::kFloat).to(options.dtype());
  if (type.dtype == Dtype::u8) return at::randint(0, 256, sizes, options);
  return at::full(sizes, 1, options);
}

void add_input(TimingInputs& inputs, const at::Tensor& tensor) {
  inputs.tensors.push_back(tensor);
  inputs.views.push_back(
      {dtype_of(tensor.scalar_type()), tensor.sizes().vec(), tensor.strides().vec(), tensor.data_ptr()});
}

TimingInputs make_inputs_of(const Program& program, const DimensionBindings& dimensions) {
  TimingInputs inputs;
  for (const ProgramInput& input : program.inputs) {
    add_input(inputs, make_input(program.value(input.value).type, dimensions));
  }
  return inputs;
}

// Null is the reference.
const Candidate* find_row(const Op& op, const std::string& kernel) {
  for (const Candidate& row : find_candidates(op)) {
    if (row.name == kernel) return &row;
  }
  return nullptr;
}

struct Trial {
  std::unique_ptr<Session> session;
  std::vector<double> times;
  CandidateTime result;
};

Trial prepare_trial(const Program& program, const Candidate* candidate, const LowerOptions& options) {
  Trial trial;
  try {
    const Node node = program.nodes.front();
    if (options.on_trial) {
      options.on_trial(program.value(node.results.front()).name,
                       std::string(candidate ? candidate->name : kReferenceKernel));
    }
    PlanBuilder builder(program, options.threads);
    if (candidate) {
      const std::string refused = candidate->refuse(builder, node);
      if (!refused.empty()) throw_error(ErrorKind::unsupported, refused);
      candidate->emit(builder, node);
    } else {
      builder.keep_node(node);
    }
    SessionOptions session;
    session.threads = options.threads;
    trial.session = std::make_unique<Session>(std::make_shared<Plan>(builder.finish()), session);
  } catch (const std::exception& error) {
    trial.result.failure = error.what();
  }
  return trial;
}

// One timed stretch; a failure ends the trial.
void run_trial(Trial& trial, const std::vector<TensorView>& inputs, int repeats) {
  try {
    const Stopwatch watch;
    for (int i = 0; i < repeats; ++i) trial.session->run(inputs);
    trial.times.push_back(watch.seconds() * 1e9 / repeats);
  } catch (const std::exception& error) {
    trial.result.failure = error.what();
    trial.session.reset();
  }
}

}  // namespace

CandidateTimer::CandidateTimer(const Program& program, const LowerOptions& options)
    : program_(program), options_(options) {
  if (!options.inputs.empty()) dimensions_ = bind_dimensions(program, options.inputs);
  for (const NamedDimension& dimension : program.dimensions) {
    dimensions_.try_emplace(dimension.name, std::max<int64_t>(dimension.minimum, 1));
  }
}

// The node alone: what it reads becomes inputs of fixed sizes, weights stay weights.
Program CandidateTimer::extract(const Node& node) const {
  Program alone;
  std::map<ValueId, ValueId> ids;
  const auto fix = [&](ValueType type) {
    for (Dimension& size : type.sizes) size = size.evaluate(dimensions_);
    return type;
  };
  Node copy = node;
  const auto bring = [&](ValueId id) {
    if (!ids.contains(id)) {
      const Weight* weight = program_.find_weight(id);
      ids[id] = weight ? alone.add_weight(weight->name, weight->tensor, weight->role)
                       : alone.add_input(program_.value(id).name, fix(program_.value(id).type));
    }
    return ids.at(id);
  };
  for (Argument& argument : copy.arguments) argument = map_values(argument, bring);
  for (ValueId& id : copy.results) {
    if (id != ValueId::none) id = alone.add_value(fix(program_.value(id).type), program_.value(id).name);
  }
  for (const ValueId id : copy.results) {
    if (id != ValueId::none) alone.outputs.push_back({Argument(id), "y" + std::to_string(alone.outputs.size())});
  }
  copy.origin = nullptr;
  alone.nodes.push_back(std::move(copy));
  return alone;
}

std::string CandidateTimer::describe(const Node& node) const {
  const Program alone = extract(node);
  std::string key = options_.effort == Effort::max ? "long " + node.op.name() : node.op.name();
  for (const Argument& argument : alone.nodes[0].arguments) {
    if (!argument.is_value()) {
      key += " " + print_argument(alone, argument);
      continue;
    }
    const ValueType& type = alone.value(argument.value()).type;
    key += " " + std::string(dtype_name(type.dtype));
    const Weight* weight = alone.find_weight(argument.value());
    if (weight) key += "@" + format_sizes(weight->tensor.sizes().vec());
    for (const Dimension& size : type.sizes) key += "," + size.print();
  }
  return key;
}

std::string CandidateTimer::describe_choice() const {
  std::string text = options_.effort == Effort::max ? "long" : "";
  for (const auto& [name, size] : dimensions_) text += " " + name + "=" + std::to_string(size);
  for (const ForcedKernel& forced : options_.forced) text += " " + forced.pattern + ":" + forced.kernel;
  return text;
}

TimingInputs CandidateTimer::make_inputs() const {
  if (options_.inputs.empty()) return make_inputs_of(program_, dimensions_);
  TimingInputs inputs;
  for (const c10::IValue& value : options_.inputs) add_input(inputs, value.toTensor().contiguous());
  return inputs;
}

std::map<std::string, CandidateTime> CandidateTimer::measure(const Node& node,
                                                             const std::vector<std::string>& kernels) const {
  const Program alone = extract(node);
  const TimingInputs inputs = make_inputs_of(alone, dimensions_);
  std::vector<Trial> trials;
  for (const std::string& kernel : kernels) trials.push_back(prepare_trial(alone, find_row(node.op, kernel), options_));
  const TimingBudget budget = options_.effort == Effort::max ? kLongTiming : kNormalTiming;
  int repeats = 1;
  for (int round = -2; round < budget.rounds; ++round) {
    for (Trial& trial : trials) {
      if (trial.session) run_trial(trial, inputs.views, repeats);
    }
    if (round != -1) continue;
    // The warm-up tells how many runs fit the budget; its times are forgotten.
    double slowest = 1000;
    for (Trial& trial : trials) {
      if (!trial.times.empty()) slowest = std::max(slowest, trial.times.back());
      trial.times.clear();
    }
    repeats = std::clamp(static_cast<int>(budget.nanoseconds / budget.rounds / slowest), 1, 200);
  }
  std::map<std::string, CandidateTime> results;
  for (size_t i = 0; i < trials.size(); ++i) {
    Trial& trial = trials[i];
    if (trial.result.failure.empty()) trial.result.nanoseconds = find_percentile(trial.times, 0.5);
    results[kernels[i]] = trial.result;
  }
  return results;
}

}  // namespace lissome
