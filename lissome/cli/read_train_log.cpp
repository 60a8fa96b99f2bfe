#include "lissome/cli/read_train_log.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace lissome {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;

// Reads null as NaN: the number was not finite.
double read_number(const Json& line, const char* name) {
  const Json& value = line.at(name);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

TrainStepRecord read_step(const Json& line) {
  return {.epoch = line.at("epoch").get<int64_t>(),
          .step = line.at("step").get<int64_t>(),
          .samples = line.at("samples").get<int64_t>(),
          .loss = read_number(line, "loss"),
          .learning_rate = read_number(line, "learning_rate"),
          .gradient_norm = read_number(line, "gradient_norm"),
          .seconds_data = read_number(line, "seconds_data"),
          .seconds_gradients = read_number(line, "seconds_gradients"),
          .seconds_update = read_number(line, "seconds_update"),
          .memory = read_number(line, "memory")};
}

EpochRecord read_epoch(const Json& line) {
  EpochRecord epoch{.epoch = line.at("epoch").get<int64_t>(),
                    .step = line.at("step").get<int64_t>(),
                    .loss = read_number(line, "loss"),
                    .learning_rate = read_number(line, "learning_rate"),
                    .seconds = read_number(line, "seconds")};
  if (line.contains("validation_loss")) epoch.validation_loss = read_number(line, "validation_loss");
  if (line.contains("metrics")) {
    for (const auto& [name, value] : line["metrics"].items())
      epoch.validation_metrics.emplace_back(name, read_number(line["metrics"], name.c_str()));
  }
  return epoch;
}

// Steps and epochs count up from 1. A repeated number replaces the earlier records from it on.
template <typename Record>
void put(std::vector<Record>& records, Record record, int64_t Record::* number) {
  while (!records.empty() && records.back().*number >= record.*number) records.pop_back();
  records.push_back(std::move(record));
}

}  // namespace

TrainRecord read_train_log(const std::string& path) {
  TrainRecord record;
  std::vector<TrainStepRecord> steps;
  int64_t number = 0;
  for (const std::string& text : split(read_text_file(path, kMostBytes), '\n')) {
    ++number;
    if (text.empty()) continue;
    const std::string where = path + ", line " + std::to_string(number);
    const Json line = parse_json(text, where);
    try {
      const std::string event = line.at("event").get<std::string>();
      if (event == "step") put(steps, read_step(line), &TrainStepRecord::step);
      if (event == "epoch") put(record.epochs, read_epoch(line), &EpochRecord::epoch);
    } catch (const Json::exception& error) {
      throw_error(ErrorKind::invalid_input, where,
                  ": the line is not an event of a training (lissome train --log): ", error.what());
    }
  }
  for (const TrainStepRecord& step : steps) add_step(record.history, step);
  record.steps = steps.empty() ? 0 : steps.back().step;
  if (steps.empty()) throw_error(ErrorKind::invalid_input, quote(path), " has no steps of a training");
  return record;
}

}  // namespace lissome
