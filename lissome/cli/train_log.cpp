#include "lissome/cli/train_log.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "lissome/report.h"

namespace lissome {
namespace {

constexpr double kSecondsBetweenFlushes = 1;

// JSON has no NaN.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

[[noreturn]] void fail(const std::string& path, int code) {
  throw_error(code == ENOENT || code == EISDIR ? ErrorKind::usage : ErrorKind::io, "cannot write ", quote(path), ": ",
              std::error_code(code, std::generic_category()).message());
}

}  // namespace

struct TrainLog::Files {
  std::string path;
  std::FILE* lines = nullptr;
  std::optional<EventFile> events;
  Stopwatch watch;
  double flushed = 0;
};

TrainLog::TrainLog(const std::string& lines, const std::string& events) : files_(std::make_unique<Files>()) {
  files_->path = lines;
  if (!lines.empty()) {
    files_->lines = std::fopen(lines.c_str(), "ae");
    if (files_->lines == nullptr) fail(lines, errno);
  }
  if (!events.empty()) files_->events.emplace(events);
}

TrainLog::~TrainLog() {
  if (files_->lines != nullptr) std::fclose(files_->lines);
}

void TrainLog::add_line(const std::string& line, bool flush) {
  const bool due = flush || files_->watch.seconds() - files_->flushed > kSecondsBetweenFlushes;
  if (due) files_->flushed = files_->watch.seconds();
  if (files_->lines != nullptr) {
    const bool written = std::fputs((line + "\n").c_str(), files_->lines) >= 0;
    if (!written || (due && std::fflush(files_->lines) != 0)) fail(files_->path, errno);
  }
  if (files_->events && due) files_->events->flush();
}

void TrainLog::add_step(const TrainStepRecord& step) {
  if (files_->events) {
    EventFile& events = *files_->events;
    events.add_scalar("loss/train", step.step, step.loss);
    events.add_scalar("learning_rate", step.step, step.learning_rate);
    events.add_scalar("gradient_norm", step.step, step.gradient_norm);
    events.add_scalar("samples_per_second", step.step, static_cast<double>(step.samples) / step.seconds());
    events.add_scalar("memory", step.step, step.memory);
    events.add_scalar("seconds/data", step.step, step.seconds_data);
    events.add_scalar("seconds/gradients", step.step, step.seconds_gradients);
    events.add_scalar("seconds/update", step.step, step.seconds_update);
  }
  if (files_->lines == nullptr) return add_line({}, false);
  add_line(print_json({{"event", "step"},
                       {"epoch", step.epoch},
                       {"step", step.step},
                       {"samples", step.samples},
                       {"loss", number(step.loss)},
                       {"learning_rate", step.learning_rate},
                       {"gradient_norm", number(step.gradient_norm)},
                       {"skipped", step.skipped},
                       {"seconds_data", step.seconds_data},
                       {"seconds_gradients", step.seconds_gradients},
                       {"seconds_update", step.seconds_update},
                       {"memory", step.memory}}),
           false);
}

void TrainLog::add_epoch(const EpochRecord& epoch) {
  Json line = {{"event", "epoch"},           {"epoch", epoch.epoch},     {"step", epoch.step},
               {"loss", number(epoch.loss)}, {"seconds", epoch.seconds}, {"learning_rate", epoch.learning_rate}};
  if (epoch.validation_loss) line["validation_loss"] = number(*epoch.validation_loss);
  for (const auto& [name, value] : epoch.validation_metrics) line["metrics"][name] = number(value);
  if (files_->events) {
    if (epoch.validation_loss) files_->events->add_scalar("loss/validation", epoch.step, *epoch.validation_loss);
    for (const auto& [name, value] : epoch.validation_metrics)
      files_->events->add_scalar(name + "/validation", epoch.step, value);
  }
  add_line(print_json(line), true);
}

void TrainLog::add_memory(const MemoryRecord& memory) {
  if (files_->events) {
    files_->events->add_scalar("memory/allocated", memory.step, static_cast<double>(memory.allocated));
    files_->events->add_scalar("memory/resident", memory.step, static_cast<double>(memory.resident));
  }
  add_line(print_json({{"event", "memory"},
                       {"step", memory.step},
                       {"weights", memory.weights},
                       {"gradients", memory.gradients},
                       {"states", memory.states},
                       {"batch", memory.batch},
                       {"activations", memory.activations},
                       {"scratch", memory.scratch},
                       {"reserved", memory.reserved},
                       {"allocated", memory.allocated},
                       {"resident", memory.resident},
                       {"resident_peak", memory.resident_peak}}),
           true);
}

void TrainLog::add_notice(const std::string& text) {
  add_line(print_json({{"event", "notice"}, {"text", text}}), true);
}

}  // namespace lissome
