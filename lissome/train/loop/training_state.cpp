#include "lissome/train/loop/training_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "lissome/base.h"

namespace lissome {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();  // stands for an absent number that is never NaN
constexpr size_t kStepFields = 11, kEpochFields = 6;

std::optional<double> present(double number) { return std::isnan(number) ? std::nullopt : std::optional(number); }

// ---- record: rows of numbers
// -----------------------------------------------------------------------------------------
void append_step(std::vector<double>& to, const TrainStepRecord& step) {
  to.insert(to.end(),
            {static_cast<double>(step.epoch), static_cast<double>(step.step), static_cast<double>(step.samples),
             step.loss, step.learning_rate, step.gradient_norm, step.seconds_data, step.seconds_gradients,
             step.seconds_update, step.memory, step.skipped ? 1.0 : 0.0});
}

int64_t read_count(double number) {
  if (!(number >= 0 && number <= static_cast<double>(Snapshot::kMostCount)))
    throw_error(ErrorKind::invalid_input, "the snapshot's record counts ", number, " steps, epochs or samples");
  return static_cast<int64_t>(number);
}

TrainStepRecord read_step(const double* from) {
  return {.epoch = read_count(from[0]),
          .step = read_count(from[1]),
          .samples = read_count(from[2]),
          .loss = from[3],
          .learning_rate = from[4],
          .gradient_norm = from[5],
          .seconds_data = from[6],
          .seconds_gradients = from[7],
          .seconds_update = from[8],
          .memory = from[9],
          .skipped = from[10] != 0};
}

void add_record(Snapshot& snapshot, const TrainRecord& record) {
  snapshot.add_count("record/steps", record.steps);
  snapshot.add_count("record/skipped_steps", record.skipped_steps);
  snapshot.add_count("record/stride", record.history.stride);
  snapshot.add_count("record/summed", record.history.summed);
  std::vector<double> points, epochs;
  for (const TrainStepRecord& step : record.history.points) append_step(points, step);
  append_step(points, record.history.sum);
  snapshot.add_numbers("record/points", points);
  for (size_t i = 0; i < record.epochs.size(); ++i) {
    const EpochRecord& epoch = record.epochs[i];
    epochs.insert(epochs.end(), {static_cast<double>(epoch.epoch), static_cast<double>(epoch.step), epoch.loss,
                                 epoch.learning_rate, epoch.seconds, epoch.validation_loss.value_or(kAbsent)});
    for (const auto& [name, number] : epoch.validation_metrics)
      snapshot.add_number("metrics/" + std::to_string(i) + "/" + name, number);
  }
  snapshot.add_numbers("record/epochs", epochs);
}

TrainRecord read_record(const Snapshot& snapshot) {
  TrainRecord record;
  record.steps = snapshot.require_count("record/steps");
  record.skipped_steps = snapshot.require_count("record/skipped_steps");
  record.history.stride = snapshot.require_count("record/stride");
  record.history.summed = snapshot.require_count("record/summed");
  const std::vector<double> points = snapshot.require_numbers("record/points");
  const std::vector<double> epochs = snapshot.require_numbers("record/epochs");
  if (points.empty() || points.size() % kStepFields != 0 || epochs.size() % kEpochFields != 0)
    throw_error(ErrorKind::invalid_input, "the snapshot's record has rows of another length");
  for (size_t i = 0; i + kStepFields < points.size(); i += kStepFields)
    record.history.points.push_back(read_step(&points[i]));
  record.history.sum = read_step(&points[points.size() - kStepFields]);
  for (size_t i = 0; i < epochs.size(); i += kEpochFields) {
    const double* row = &epochs[i];
    EpochRecord epoch{.epoch = read_count(row[0]),
                      .step = read_count(row[1]),
                      .loss = row[2],
                      .learning_rate = row[3],
                      .seconds = row[4],
                      .validation_loss = present(row[5]),
                      .validation_metrics = {}};
    const std::string section = "metrics/" + std::to_string(record.epochs.size());
    for (const auto& [name, number] : snapshot.read_section(section))
      epoch.validation_metrics.emplace_back(name, snapshot.require_number(section + "/" + name));
    record.epochs.push_back(std::move(epoch));
  }
  return record;
}

// ---- place and schedule
// ----------------------------------------------------------------------------------------------
void add_place(Snapshot& snapshot, const TrainingPlace& place) {
  snapshot.add_count("place/epoch", place.epoch);
  snapshot.add_count("place/epoch_steps", place.epoch_steps);
  snapshot.add_count("place/samples", place.samples);
  snapshot.add_number("place/losses", place.losses);
  snapshot.add_number("place/learning_rate", place.learning_rate);
  snapshot.add_number("place/seconds", place.seconds);
}

// libtorch takes the state of its generator (Mersenne Twister) at its word, and reads beyond it where the count of
// numbers left and the place of the next contradict each other. Both are one state of 624 words, which the first draw
// fills. Offsets as at::CPUGeneratorImpl writes them.
void check_generator(const at::Tensor& state) {
  constexpr int kWords = 624;
  constexpr size_t kLeft = 8, kSeeded = 12, kNext = 16, kState = 24, kNormalIsValid = 5040, kFloatIsValid = 5052;
  const auto* bytes = state.const_data_ptr<uint8_t>();
  const auto read = [&]<typename Number>(size_t offset, Number number) {
    std::memcpy(&number, bytes + offset, sizeof number);
    return number;
  };
  const auto left = read(kLeft, int32_t{}), seeded = read(kSeeded, int32_t{});
  const auto next = read(kNext, uint64_t{});
  const bool is_fresh = left == 1 && next == 0;
  bool fits =
      seeded == 1 && left >= 1 && left <= kWords && (is_fresh || next == static_cast<uint64_t>(kWords + 1 - left));
  for (size_t i = 0; i < kWords; ++i) fits = fits && read(kState + i * sizeof(uint64_t), uint64_t{}) <= UINT32_MAX;
  for (const size_t flag : {kNormalIsValid, kFloatIsValid}) fits = fits && bytes[flag] <= 1;
  if (!fits) throw_error(ErrorKind::invalid_input, "the snapshot's 'generator' is no state of a random generator");
}

// Snapshots are saved inside of an epoch, before its row is added to the record.
void check_place(const TrainingPlace& place, const TrainRecord& record) {
  const auto running = static_cast<int64_t>(record.epochs.size()) + 1;
  if (place.epoch != running)
    throw_error(ErrorKind::invalid_input, "the snapshot's 'place/epoch' is ", place.epoch, "; after the ", running - 1,
                " finished epochs of its record it must be ", running);
  if (place.epoch_steps > record.steps)
    throw_error(ErrorKind::invalid_input, "the snapshot's epoch counts ", place.epoch_steps, " steps, its record ",
                record.steps, " in all");
  if ((place.samples == 0) != (place.epoch_steps == 0) || place.samples < place.epoch_steps)
    throw_error(ErrorKind::invalid_input, "the snapshot's epoch counts ", place.samples, " samples in ",
                place.epoch_steps, " steps");
}

double require_finite(const Snapshot& snapshot, const std::string& name) {
  const double number = snapshot.require_number(name);
  if (!std::isfinite(number)) throw_error(ErrorKind::invalid_input, "the snapshot's ", quote(name), " is ", number);
  return number;
}

// A rate or a time.
double require_magnitude(const Snapshot& snapshot, const std::string& name) {
  const double number = require_finite(snapshot, name);
  if (number < 0)
    throw_error(ErrorKind::invalid_input, "the snapshot's ", quote(name), " is ", number,
                "; it must be a number from 0 on");
  return number;
}

TrainingPlace read_place(const Snapshot& snapshot, const TrainRecord& record) {
  const TrainingPlace place = {.epoch = snapshot.require_count("place/epoch"),
                               .epoch_steps = snapshot.require_count("place/epoch_steps"),
                               .losses = require_finite(snapshot, "place/losses"),
                               .samples = snapshot.require_count("place/samples"),
                               .learning_rate = require_magnitude(snapshot, "place/learning_rate"),
                               .seconds = require_magnitude(snapshot, "place/seconds")};
  check_place(place, record);
  return place;
}

void add_plateau(Snapshot& snapshot, const PlateauState& plateau) {
  snapshot.add_number("schedule/learning_rate", plateau.learning_rate);
  snapshot.add_number("schedule/best", plateau.best.value_or(kAbsent));
  snapshot.add_count("schedule/bad_metrics", plateau.bad_metrics);
  snapshot.add_count("schedule/cooldown_left", plateau.cooldown_left);
}

PlateauState read_plateau(const Snapshot& snapshot) {
  return {.learning_rate = require_magnitude(snapshot, "schedule/learning_rate"),
          .best = present(snapshot.require_number("schedule/best")),
          .bad_metrics = snapshot.require_count("schedule/bad_metrics"),
          .cooldown_left = snapshot.require_count("schedule/cooldown_left")};
}

// ---- tensors in the order of state.tensors
// ---------------------------------------------------------------------------
void add_tensors(Snapshot& snapshot, const std::string& section, const NamedTensors& names,
                 const std::vector<at::Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) snapshot.add(section + "/" + names[i].first, tensors[i]);
}

std::vector<at::Tensor> read_tensors(const Snapshot& snapshot, const std::string& section, const NamedTensors& like) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : like) tensors.push_back(snapshot.require_like(section + "/" + name, tensor));
  return tensors;
}

void copy_into(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
}

}  // namespace

Snapshot make_snapshot(const TrainingState& state, TrainingFacts facts) {
  Snapshot snapshot{std::move(facts), {}};
  add_place(snapshot, state.place);
  add_plateau(snapshot, state.schedule.plateau());
  add_record(snapshot, state.record);
  snapshot.add("generator", at::detail::getDefaultCPUGenerator().get_state());
  snapshot.add_section("weight", state.tensors);
  snapshot.add_section("optimizer", state.optimizer.state());
  if (state.scaler != nullptr) snapshot.add_section("scaler", state.scaler->state());
  if (state.average != nullptr) add_tensors(snapshot, "average", state.tensors, state.average->averages());
  if (state.early_stop != nullptr) {
    snapshot.add_number("early_stop/best", state.early_stop->best().value_or(kAbsent));
    snapshot.add_count("early_stop/bad_metrics", state.early_stop->bad_metrics());
    add_tensors(snapshot, "best", state.tensors, state.early_stop->kept());
  }
  return snapshot;
}

void restore_snapshot(const Snapshot& snapshot, const TrainingState& state) {
  const at::NoGradGuard no_gradients;
  TrainRecord record = read_record(snapshot);
  const TrainingPlace place = read_place(snapshot, record);
  const PlateauState plateau = read_plateau(snapshot);
  record.notes = state.record.notes;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor random = snapshot.require_like("generator", generator.get_state()).contiguous();
  check_generator(random);
  const std::vector<at::Tensor> weights = read_tensors(snapshot, "weight", state.tensors);
  std::vector<at::Tensor> averages, best;
  if (state.average != nullptr) averages = read_tensors(snapshot, "average", state.tensors);
  std::optional<double> best_metric;
  int64_t bad_metrics = 0;
  if (state.early_stop != nullptr) {
    best_metric = present(snapshot.require_number("early_stop/best"));
    bad_metrics = snapshot.require_count("early_stop/bad_metrics");
    if (best_metric) best = read_tensors(snapshot, "best", state.tensors);
  }
  if (state.scaler != nullptr) state.scaler->restore_state(snapshot.read_section("scaler"));
  state.optimizer.restore_state(snapshot.read_section("optimizer"));  // changes nothing if it throws

  std::vector<at::Tensor> targets;
  for (const auto& [name, tensor] : state.tensors) targets.push_back(tensor);
  generator.set_state(random);
  copy_into(weights, targets);
  state.place = place;
  state.schedule.restore_plateau(plateau);
  state.record = std::move(record);
  if (state.average != nullptr) copy_into(averages, state.average->averages());
  if (state.early_stop != nullptr) state.early_stop->restore(best_metric, bad_metrics, std::move(best));
}

}  // namespace lissome
