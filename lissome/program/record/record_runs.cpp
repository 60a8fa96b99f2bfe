// See record_runs.h. Sizes are chosen so that expressions over them are told apart: two other sizes of each dimension,
// then all dimensions changed together, then the smallest that are allowed.
#include "lissome/program/record/record_runs.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_unique.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace lissome {

// Parameters, buffers and the random state as they were, whatever the runs do to them.
class StateKeeper {
 public:
  explicit StateKeeper(const RecordedModule& module) : generator_(at::globalContext().defaultGenerator(at::kCPU)) {
    for (const StateTensor& state : module.state) {
      kept_.push_back({state.name, state.tensor, state.tensor.detach().clone()});
    }
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    random_ = generator_.get_state();
  }
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;
  ~StateKeeper() {
    for (Kept& kept : kept_) kept.moved = false;
    restore();
  }

  // From now on until the end, what has a gradient holds other numbers near its own. No run writes to it.
  void move_parameters() {
    const at::NoGradGuard no_grad;
    for (Kept& kept : kept_) {
      if (!kept.tensor.requires_grad()) continue;
      kept.tensor.detach().copy_(kept.before).mul_(1.0625).add_(0.015625);  // tied ones once
      kept.moved = true;
    }
  }

  // What has changed since, as it is now.
  std::map<std::string, at::Tensor> list_changes() const {
    std::map<std::string, at::Tensor> changes;
    for (const Kept& kept : kept_) {
      if (!kept.moved && !same_contents(kept.tensor, kept.before))
        changes.emplace(kept.name, kept.tensor.detach().clone());
    }
    return changes;
  }

  void restore() {
    const at::NoGradGuard no_grad;
    for (const Kept& kept : kept_) {
      if (!kept.moved && !same_contents(kept.tensor, kept.before)) kept.tensor.detach().copy_(kept.before);
    }
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(random_);
  }

 private:
  struct Kept {
    std::string name;
    at::Tensor tensor, before;
    bool moved = false;
  };
  std::vector<Kept> kept_;
  at::Generator generator_;
  at::Tensor random_;
};

namespace {

// Sizes of the named dimensions that the examples have.
DimensionBindings read_sizes(const std::vector<TracedInput>& inputs) {
  DimensionBindings sizes;
  for (const TracedInput& input : inputs) {
    for (const auto& [position, dimension] : input.dynamic) {
      if (position < 0 || position >= input.example.dim())
        throw_error(ErrorKind::invalid_input, "input '", input.name, "' has no dimension ", position, ", it has ",
                    input.example.dim());
      const int64_t size = input.example.size(position);
      if (size < dimension.minimum || size > dimension.maximum)
        throw_error(ErrorKind::invalid_input, "the example of '", input.name, "' has ", dimension.name, " = ", size,
                    ", allowed are ", dimension.minimum, " to ", dimension.maximum);
      if (size == 0)
        throw_error(ErrorKind::invalid_input, "the example of '", input.name, "' has ", dimension.name,
                    " = 0; give one that holds something");
      const auto [known, is_new] = sizes.emplace(dimension.name, size);
      if (!is_new && known->second != size)
        throw_error(ErrorKind::invalid_input, "the example of '", input.name, "' has ", dimension.name, " = ", size,
                    ", another input has ", known->second);
    }
  }
  return sizes;
}

// Named dimensions by name, ranges of those named twice intersected.
std::map<std::string, NamedDimension> list_dimensions(const std::vector<TracedInput>& inputs) {
  std::map<std::string, NamedDimension> dimensions;
  for (const TracedInput& input : inputs) {
    for (const auto& [position, dimension] : input.dynamic) {
      NamedDimension& known = dimensions.emplace(dimension.name, dimension).first->second;
      known.minimum = std::max(known.minimum, dimension.minimum);
      known.maximum = std::min(known.maximum, dimension.maximum);
    }
  }
  return dimensions;
}

// Up to `count` other sizes that the range allows, near the example's, not 1: broadcasting treats 1 in its own way.
std::vector<int64_t> choose_other_sizes(const NamedDimension& dimension, int64_t size, int64_t seed, size_t count) {
  std::vector<int64_t> chosen;
  for (const int64_t other : {size + 1, size + 3 + seed, 2 * size + 3 + 2 * seed, size + 2, size - 1, size - 2}) {
    const bool allowed = other >= std::max<int64_t>(dimension.minimum, 2) && other <= dimension.maximum;
    if (allowed && chosen.size() < count && std::find(chosen.begin(), chosen.end(), other) == chosen.end()) {
      chosen.push_back(other);
    }
  }
  return chosen;
}

struct SizePlan {
  std::vector<DimensionBindings> recorded, held_out;
};

SizePlan plan_sizes(const std::vector<TracedInput>& inputs, const DimensionBindings& base) {
  SizePlan plan{{base}, {}};
  DimensionBindings all = base, smallest = base, last = base;
  int64_t seed = 0;
  const auto add = [&](const DimensionBindings& sizes) {
    if (std::find(plan.recorded.begin(), plan.recorded.end(), sizes) == plan.recorded.end()) {
      plan.recorded.push_back(sizes);
    }
  };
  for (const auto& [name, dimension] : list_dimensions(inputs)) {
    const std::vector<int64_t> others = choose_other_sizes(dimension, base.at(name), seed++, 4);
    for (size_t i = 0; i < std::min<size_t>(others.size(), 3); ++i) {
      DimensionBindings one = base;
      one[name] = others[i];
      add(one);
    }
    if (others.size() > 1) all[name] = others[others.size() - 2];
    if (!others.empty()) last[name] = others.back();
    smallest[name] = std::max<int64_t>(dimension.minimum, 1);
  }
  add(all);
  add(smallest);
  if (std::find(plan.recorded.begin(), plan.recorded.end(), last) == plan.recorded.end()) plan.held_out.push_back(last);
  return plan;
}

at::Tensor resize_example(const at::Tensor& example, int64_t dimension, int64_t size) {
  if (example.size(dimension) == size) return example;
  return example.index_select(dimension, at::arange(size).remainder(example.size(dimension)));
}

std::vector<at::Tensor> make_examples(const std::vector<TracedInput>& inputs, const DimensionBindings& sizes) {
  std::vector<at::Tensor> examples;
  for (const TracedInput& input : inputs) {
    at::Tensor example = input.example.detach();
    for (const auto& [position, dimension] : input.dynamic) {
      example = resize_example(example, position, sizes.at(dimension.name));
    }
    examples.push_back(example.clone());  // the module may write to it
  }
  return examples;
}

// Other values of the same kind in the same range: the largest become the smallest, or at random. Whole numbers are
// those that occur: between labels and the one that is ignored lie many that mean nothing.
at::Tensor redraw_whole(const at::Tensor& example, const std::optional<at::Generator>& generator) {
  const auto [values, places] = at::_unique(example, true, true);
  if (!generator) return values.index({places.neg().add_(values.numel() - 1)});
  return values.index({at::randint(0, values.numel(), example.sizes(), generator, example.options().dtype(at::kLong))});
}

at::Tensor redraw(const at::Tensor& example, const std::optional<at::Generator>& generator) {
  if (example.numel() == 0 || example.is_complex()) return example;
  if (example.scalar_type() == at::kBool) {
    return generator ? at::rand_like(example, generator, at::kFloat).gt(0.5) : example.logical_not();
  }
  if (!example.is_floating_point()) return redraw_whole(example, generator);
  const at::Tensor plain = example.nan_to_num(0, 0, 0);
  const at::Tensor low = plain.min(), high = plain.max();
  if (!generator) return low.sub(plain).add_(high);
  const at::Tensor span = at::where(high.gt(low), high.sub(low), at::ones_like(low));
  return at::rand_like(example, generator).mul_(span).add_(low);
}

// Whatever happens in its scope.
class RestoredAtEnd {
 public:
  explicit RestoredAtEnd(StateKeeper& keeper) : keeper_(keeper) {}
  RestoredAtEnd(const RestoredAtEnd&) = delete;
  RestoredAtEnd& operator=(const RestoredAtEnd&) = delete;
  ~RestoredAtEnd() { keeper_.restore(); }

 private:
  StateKeeper& keeper_;
};

ModuleRun start_run(const RecordedModule& module, const DimensionBindings& sizes,
                    const std::vector<at::Tensor>& examples) {
  ModuleRun run{sizes, {}, examples.size() + module.state.size(), {}};
  for (const at::Tensor& example : examples) run.inputs.push_back(example.clone());  // the module may write to it
  return run;
}

}  // namespace

bool same_contents(const at::Tensor& left, const at::Tensor& right) {
  if (!left.defined() || !right.defined()) return left.defined() == right.defined();
  if (left.sizes() != right.sizes() || left.scalar_type() != right.scalar_type()) return false;
  if (at::equal(left, right)) return true;
  const bool is_float = left.is_floating_point() || left.is_complex();
  return is_float && at::equal(left.isnan(), right.isnan()) && at::equal(left.nan_to_num(), right.nan_to_num());
}

std::string print_sizes(const DimensionBindings& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(size);
  return text;
}

ModuleRunner::ModuleRunner(const RecordedModule& module, const std::vector<TracedInput>& inputs,
                           const ForwardMany& forward)
    : module_(module),
      inputs_(inputs),
      forward_(forward),
      example_sizes_(read_sizes(inputs)),
      keeper_(std::make_unique<StateKeeper>(module)) {}

ModuleRunner::~ModuleRunner() = default;

void ModuleRunner::restore() { keeper_->restore(); }
void ModuleRunner::move_parameters() { keeper_->move_parameters(); }

void ModuleRunner::refuse(const DimensionBindings& sizes, const std::string& reason) const {
  if (sizes == example_sizes_) throw_error(ErrorKind::invalid_input, "the module cannot run on its examples: ", reason);
  throw_error(ErrorKind::invalid_input, "the module cannot run at ", print_sizes(sizes),
              ", which its dimensions' ranges allow: ", reason, ". Narrow the ranges");
}

ModuleRun ModuleRunner::record_run(const DimensionBindings& sizes, const std::vector<at::Tensor>& examples) {
  ModuleRun run = start_run(module_, sizes, examples);
  std::vector<at::Tensor> known = examples;
  for (const StateTensor& state : module_.state) known.push_back(state.tensor);
  const RestoredAtEnd restored(*keeper_);
  run.recording = record_calls(known, module_.level, [&] { return forward_(examples); });
  return run;
}

ModuleRuns ModuleRunner::record() {
  const SizePlan plan = plan_sizes(inputs_, example_sizes_);
  ModuleRuns runs;
  for (const DimensionBindings& sizes : plan.recorded) {
    try {
      runs.recorded.push_back(record_run(sizes, make_examples(inputs_, sizes)));
    } catch (const c10::Error& error) {
      refuse(sizes, error.what_without_backtrace());
    }
  }
  for (const DimensionBindings& sizes : plan.held_out) {
    runs.held_out.push_back(start_run(module_, sizes, make_examples(inputs_, sizes)));
  }
  for (const bool mirrored : {true, false}) {
    std::optional<at::Generator> generator;
    if (!mirrored) generator = at::globalContext().defaultGenerator(at::kCPU).clone();
    std::vector<at::Tensor> redrawn;
    for (const at::Tensor& example : make_examples(inputs_, example_sizes_)) {
      redrawn.push_back(redraw(example, generator));
    }
    try {
      runs.recorded.push_back(record_run(example_sizes_, redrawn));
    } catch (const c10::Error&) {
      // Values that the module refuses tell nothing about those that it takes.
    } catch (const Error& error) {  // so does a program that is recorded
      if (error.kind() != ErrorKind::invalid_input) throw;
    }
  }
  return runs;
}

RunResults ModuleRunner::repeat(const ModuleRun& run) {
  std::vector<at::Tensor> examples;
  for (const at::Tensor& input : run.inputs) examples.push_back(input.clone());
  RunResults results;
  const RestoredAtEnd restored(*keeper_);
  try {
    const c10::AutoGradMode gradients(records_gradients(module_.level));
    results.outputs = forward_(examples);
  } catch (const c10::Error& error) {
    refuse(run.sizes, error.what_without_backtrace());
  }
  for (at::Tensor& output : results.outputs) {  // one at a time: they may be as large as the state that they share
    if (output.defined()) output = output.detach().clone();
  }
  results.written = keeper_->list_changes();
  for (size_t i = 0; i < examples.size(); ++i) {
    if (!same_contents(examples[i], run.inputs[i])) results.written.emplace(inputs_[i].name, examples[i]);
  }
  return results;
}

}  // namespace lissome
