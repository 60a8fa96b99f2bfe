#include "lissome/runtime/session/session.h"

#include "lissome/base.h"
#include "lissome/runtime/plan/input_check.h"
#include "lissome/runtime/plan/plan_io.h"
#include "lissome/runtime/session/runner.h"

namespace lissome {

Session::Session(std::shared_ptr<const Plan> plan, const SessionOptions& options)
    : runner_(std::make_unique<Runner>(std::move(plan), options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

namespace {

std::shared_ptr<const Plan> load_plan(const std::string& path) {
  const ModelFile file = load_model_file(path);
  if (file.plan.empty()) {
    throw_error(ErrorKind::invalid_input, quote(path), " holds a program but no plan to run it by.",
                "\n      Make one: lissome prepare ", path, " -o prepared.lissome");
  }
  return std::make_shared<const Plan>(read_plan(file));
}

}  // namespace

Session Session::load(const std::string& path, const SessionOptions& options) {
  return Session(load_plan(path), options);
}

const Plan& Session::plan() const { return runner_->plan(); }
int Session::threads() const { return runner_->threads(); }
MemoryFacts Session::memory() const { return runner_->memory(); }
StreamFacts Session::stream() const { return runner_->stream(); }
void Session::stream_inputs(std::span<const size_t> inputs, int64_t bytes) { runner_->stream_inputs(inputs, bytes); }

void Session::release_memory() { runner_->release_memory(); }

void Session::stop_runs(std::function<bool()> should_stop) { runner_->stop_runs(std::move(should_stop)); }

std::vector<Array> Session::run(std::span<const TensorView> inputs, const StepSink* sink, const OutputTaker* taker) {
  return runner_->run(inputs, {sink, taker});
}

void Session::run_into(std::span<const TensorView> inputs, std::span<const TensorView> outputs, const StepSink* sink,
                       const OutputTaker* taker) {
  runner_->run_into(inputs, outputs, {sink, taker});
}

std::vector<TensorView> Session::order_inputs(std::span<const NamedArray> inputs) const {
  const std::vector<PlanInput>& wanted = plan().inputs;
  std::vector<TensorView> ordered;
  if (inputs.size() == 1 && wanted.size() == 1 && inputs[0].name.empty()) return {inputs[0].array.view()};
  for (const PlanInput& input : wanted) {
    const NamedArray* found = nullptr;
    for (const NamedArray& given : inputs) {
      if (given.name == input.name) found = &given;
    }
    if (!found) {
      throw_error(ErrorKind::invalid_input, "input ", quote(input.name), " is missing; it is ",
                  describe_input(plan(), input));
    }
    ordered.push_back(found->array.view());
  }
  for (const NamedArray& given : inputs) {
    std::vector<std::string> names;
    for (const PlanInput& input : wanted) names.push_back(input.name);
    if (std::find(names.begin(), names.end(), given.name) != names.end()) continue;
    throw_error(ErrorKind::invalid_input, "the model has no input ", quote(given.name), "; it takes ",
                join(names, ", "));
  }
  return ordered;
}

std::vector<NamedArray> Session::run(std::span<const NamedArray> inputs, const StepSink* sink) {
  const std::vector<TensorView> ordered = order_inputs(inputs);
  std::vector<Array> arrays = run(ordered, sink);
  std::vector<NamedArray> outputs;
  for (size_t i = 0; i < arrays.size(); ++i) outputs.push_back({plan().outputs[i].name, std::move(arrays[i])});
  return outputs;
}

}  // namespace lissome
