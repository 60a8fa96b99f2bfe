#include "lissome/lower/time_candidates.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>
#include <set>

namespace lissome {
namespace {

struct Budget {
  int rounds;
  double nanoseconds;  // for all runs of one candidate
};
constexpr Budget kNormal = {7, 6e6};
constexpr Budget kLong = {31, 60e6};

double read_clock() {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 std::chrono::steady_clock::now().time_since_epoch())
                                 .count());
}

c10::IValue make_input(const ValueType& type) {
  std::vector<int64_t> sizes;
  for (const Dimension& size : type.sizes) sizes.push_back(*size.constant());
  const auto options = at::TensorOptions().dtype(scalar_type_of(type.dtype));
  if (is_floating(type.dtype)) return at::randn(sizes, at::kFloat).to(options.dtype());
  if (type.dtype == Dtype::u8) return at::randint(0, 256, sizes, options);
  return at::full(sizes, 1, options);
}

struct Trial {
  std::unique_ptr<Session> session;
  std::vector<double> times;
  CandidateTime result;
};

Trial prepare_trial(const Program& program, const Candidate* candidate, const LowerOptions& options) {
  Trial trial;
  try {
    PlanBuilder builder(program, options.threads);
    const Node node = program.nodes.front();
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
    const double before = read_clock();
    for (int i = 0; i < repeats; ++i) trial.session->run(inputs);
    trial.times.push_back((read_clock() - before) / repeats);
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
  for (Argument& argument : copy.arguments) {
    if (!argument.is_value()) continue;
    const ValueId id = argument.value();
    if (!ids.contains(id)) {
      const Weight* weight = program_.find_weight(id);
      ids[id] = weight ? alone.add_weight(weight->name, weight->tensor, weight->role)
                       : alone.add_input(program_.value(id).name, fix(program_.value(id).type));
    }
    argument = ids[id];
  }
  for (ValueId& id : copy.results) id = alone.add_value(fix(program_.value(id).type), program_.value(id).name);
  alone.outputs.push_back({Argument(copy.results.front()), "y"});
  copy.origin = nullptr;
  alone.nodes.push_back(std::move(copy));
  return alone;
}

const std::vector<CandidateTime>& CandidateTimer::measure(const Node& node,
                                                          const std::vector<const Candidate*>& candidates) {
  const Program alone = extract(node);
  // Names do not matter for the time, sizes, literals and dtypes do.
  std::string key = node.op.name();
  for (const Argument& argument : alone.nodes[0].arguments) {
    if (!argument.is_value()) {
      key += " " + print_argument(alone, argument);
      continue;
    }
    const ValueType& type = alone.value(argument.value()).type;
    key += std::string(" ") + std::string(dtype_name(type.dtype));
    const Weight* weight = alone.find_weight(argument.value());
    if (weight) key += "@" + format_sizes(weight->tensor.sizes().vec());
    for (const Dimension& size : type.sizes) key += "," + size.print();
  }
  for (const Candidate* candidate : candidates) key += candidate ? " " + std::string(candidate->name) : " reference";
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;

  std::vector<c10::IValue> tensors;
  std::vector<TensorView> inputs;
  for (const ProgramInput& input : alone.inputs) {
    tensors.push_back(make_input(alone.value(input.value).type));
    const at::Tensor& tensor = tensors.back().toTensor();
    inputs.push_back({dtype_of(tensor.scalar_type()), tensor.sizes().vec(), tensor.strides().vec(), tensor.data_ptr()});
  }
  std::vector<Trial> trials;
  for (const Candidate* candidate : candidates) trials.push_back(prepare_trial(alone, candidate, options_));
  const Budget budget = options_.effort == Effort::max ? kLong : kNormal;
  int repeats = 1;
  for (int round = -2; round < budget.rounds; ++round) {
    for (Trial& trial : trials) {
      if (trial.session) run_trial(trial, inputs, repeats);
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
  std::vector<CandidateTime> results;
  for (Trial& trial : trials) {
    if (trial.result.failure.empty() && !trial.times.empty()) {
      std::nth_element(trial.times.begin(), trial.times.begin() + static_cast<std::ptrdiff_t>(trial.times.size() / 2),
                       trial.times.end());
      trial.result.nanoseconds = trial.times[trial.times.size() / 2];
    }
    results.push_back(trial.result);
  }
  return known_[key] = std::move(results);
}

}  // namespace lissome
