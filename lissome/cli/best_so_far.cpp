#include "lissome/cli/best_so_far.h"

#include <ATen/core/ivalue.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "lissome/cli/json_answer.h"

namespace lissome {
namespace {

std::string print_record(const OptimizationRecord& record, const OptimizeOutputs& outputs) {
  Json result = to_json(record);
  result["output"] = outputs.model;
  result["report"] = or_null(outputs.report);
  const Table tables[] = {make_goal_table(record), make_step_table(record), make_front_table(record),
                          make_layer_table(record)};
  return print_answer("optimize", std::move(result), tables);
}

}  // namespace

BestSoFar::BestSoFar(OptimizeOutputs outputs, const Console& console)
    : outputs_(std::move(outputs)), console_(console) {}

void BestSoFar::keep(const Optimized& so_far, bool better) {
  std::unique_ptr<AtomicFile> model, report;
  outdated_ = outdated_ || better;
  if (outdated_) model = seal_optimized(so_far, outputs_.model, outputs_.contents);
  if (!outputs_.report.empty()) {
    report = std::make_unique<AtomicFile>(outputs_.report);
    report->write(render_html(so_far.record));
    report->seal();
  }
  std::string text =
      outputs_.json ? print_record(so_far.record, outputs_) : render_terminal(so_far.record, console_.terminal());
  {
    const std::lock_guard lock(mutex_);
    if (published_) return;
    if (model) std::swap(model_, model);  // the old model is removed outside of the lock
    std::swap(report_, report);
    text_ = std::move(text);
  }
  outdated_ = false;
  kept_.notify_all();
}

bool BestSoFar::publish(double seconds) {
  std::unique_lock lock(mutex_);
  if (published_) return true;
  if (!kept_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return model_ != nullptr; })) return false;
  published_ = true;
  model_->commit();
  if (report_) report_->commit();
  console_.print(text_);
  console_.say("written to " + outputs_.model + (outputs_.report.empty() ? "" : ", report in " + outputs_.report));
  return true;
}

}  // namespace lissome
