#include "lissome/cli/best_so_far.h"

#include <ATen/core/ivalue.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

namespace lissome {

BestSoFar::BestSoFar(std::string output, std::string report, bool json, const Console& console)
    : output_(std::move(output)), report_path_(std::move(report)), json_(json), console_(console) {}

void BestSoFar::keep(const Optimized& so_far, bool better) {
  std::unique_ptr<AtomicFile> model, report;
  outdated_ = outdated_ || better;
  if (outdated_) model = seal_optimized(so_far, output_);
  if (!report_path_.empty()) {
    report = std::make_unique<AtomicFile>(report_path_);
    report->write(render_html(so_far.record));
    report->seal();
  }
  std::string text =
      json_ ? print_json(to_json(so_far.record)) + "\n" : render_terminal(so_far.record, console_.terminal());
  {
    const std::lock_guard lock(mutex_);
    if (published_) return;
    if (model) std::swap(model_, model);  // what was kept is removed outside of the lock
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
  console_.say("written to " + output_ + (report_path_.empty() ? "" : ", report in " + report_path_));
  return true;
}

}  // namespace lissome
