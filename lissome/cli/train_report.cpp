#include "lissome/cli/train_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lissome {
namespace {

// Names of metrics, in the order in which epochs first have them.
std::vector<std::string> list_metrics(const TrainRecord& record) {
  std::vector<std::string> names;
  for (const EpochRecord& epoch : record.epochs) {
    for (const auto& [name, value] : epoch.validation_metrics) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::optional<double> find_metric(const EpochRecord& epoch, const std::string& wanted) {
  for (const auto& [name, value] : epoch.validation_metrics) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

std::string metric_unit(const std::string& name) { return name == "accuracy" ? "%" : ""; }

template <typename Number>
Series make_series(const TrainRecord& record, const std::string& name, const std::string& unit, const Number& number) {
  Series series{name, "step", unit, {}, {}};
  for (const TrainStepRecord& step : record.history.points) {
    series.x.push_back(static_cast<double>(step.step));
    series.y.push_back(number(step));
  }
  return series;
}

template <typename Number>
Series make_epoch_series(const TrainRecord& record, const std::string& name, const std::string& unit,
                         const Number& number) {
  Series series{name, "step", unit, {}, {}};
  for (const EpochRecord& epoch : record.epochs) {
    const std::optional<double> value = number(epoch);
    if (!value) continue;
    series.x.push_back(static_cast<double>(epoch.step));
    series.y.push_back(*value);
  }
  return series;
}

double read_throughput(const TrainStepRecord& step) { return static_cast<double>(step.samples) / step.seconds(); }

Series make_metric_series(const TrainRecord& record, const std::string& metric, const std::string& name) {
  return make_epoch_series(record, name, metric_unit(metric),
                           [&](const EpochRecord& epoch) { return find_metric(epoch, metric); });
}

PageChart make_loss_chart(const TrainRecord& record, const TrainBeside* beside) {
  const auto loss = [](const TrainStepRecord& step) { return step.loss; };
  PageChart chart{"Loss", "Training loss of each batch before its update; validation loss after each epoch.", {}};
  Series validation =
      make_epoch_series(record, "validation", "", [](const EpochRecord& epoch) { return epoch.validation_loss; });
  if (!validation.y.empty()) chart.series.push_back(std::move(validation));
  chart.series.push_back(make_series(record, "train", "", loss));
  if (beside != nullptr) chart.series.push_back(make_series(beside->record, beside->name + ", train", "", loss));
  return chart;
}

// One curve, and the curve of the other training.
template <typename Number>
PageChart make_step_chart(const std::string& title, const std::string& hint, const std::string& unit,
                          const TrainRecord& record, const TrainBeside* beside, const Number& number) {
  PageChart chart{title, hint, {make_series(record, beside != nullptr ? "this training" : title, unit, number)}};
  if (beside != nullptr) chart.series.push_back(make_series(beside->record, beside->name, unit, number));
  return chart;
}

std::vector<PageChart> make_charts(const TrainRecord& record, const TrainBeside* beside) {
  using Step = TrainStepRecord;
  std::vector<PageChart> charts = {make_loss_chart(record, beside)};
  for (const std::string& name : list_metrics(record)) {
    PageChart chart{name, "Measured on the validation data.", {make_metric_series(record, name, name)}};
    if (beside != nullptr) chart.series.push_back(make_metric_series(beside->record, name, beside->name));
    charts.push_back(std::move(chart));
  }
  charts.push_back(make_step_chart("Learning rate", "Learning rate of each step.", "", record, beside,
                                   [](const Step& step) { return step.learning_rate; }));
  charts.push_back(make_step_chart("Throughput", "Samples per second.", "", record, beside, read_throughput));
  charts.push_back(
      {"Time of a step",
       "Time of each part of a step.",
       {make_series(record, "forward and backward", "s", [](const Step& step) { return step.seconds_gradients; }),
        make_series(record, "data", "s", [](const Step& step) { return step.seconds_data; }),
        make_series(record, "optimizer", "s", [](const Step& step) { return step.seconds_update; })}});
  charts.push_back(make_step_chart("Gradient norm", "Global norm before clipping.", "", record, beside,
                                   [](const Step& step) { return step.gradient_norm; }));
  charts.push_back(make_step_chart("Memory", "Resident set of the process.", "B", record, beside,
                                   [](const Step& step) { return step.memory; }));
  if (record.step_memory.size() > 1) {
    Series series{"activations and scratch", "kernel", "B", {}, {}};
    for (const int64_t bytes : record.step_memory) {
      series.x.push_back(static_cast<double>(series.x.size()));
      series.y.push_back(static_cast<double>(bytes));
    }
    charts.push_back({"Memory over a step",
                      "Bytes alive at each kernel, through the forward and the backward pass.",
                      {std::move(series)}});
  }
  return charts;
}

// The values that are alive at the peak of a step.
Table make_place_table(const TrainRecord& record) {
  constexpr size_t kMostPlaces = 20;
  Table table{"Memory at the peak of a step", {{"module", ""}, {"source", ""}, {"values", ""}, {"bytes", "B"}}, {}};
  for (const MemoryPlace& place : record.places) {
    if (table.rows.size() == kMostPlaces) break;
    table.rows.push_back({place.module.empty() ? std::string("-") : place.module,
                          place.source.empty() ? std::string("-") : place.source, static_cast<double>(place.values),
                          static_cast<double>(place.bytes)});
  }
  return table;
}

std::string print_plain(double number) { return format_cell(number, ""); }

struct Totals {
  double seconds = 0, data = 0, samples = 0, steps = 0, memory = 0;  // memory: most
  double throughput() const { return samples / seconds; }
};
Totals add_up(const TrainRecord& record) {
  Totals totals;
  for (const TrainStepRecord& step : record.history.points) {
    totals.seconds += step.seconds(), totals.data += step.seconds_data;
    totals.samples += static_cast<double>(step.samples), totals.steps += 1;
    totals.memory = std::max(totals.memory, step.memory);
  }
  return totals;
}

// Compares this training with the other one.
void add_compared_tiles(const Totals& totals, const TrainBeside& beside, std::vector<PageTile>& tiles) {
  const Totals other = add_up(beside.record);
  if (other.steps == 0 || totals.steps == 0) return;
  tiles.push_back({"Throughput over " + beside.name, print_plain(totals.throughput() / other.throughput()) + "x",
                   print_plain(other.throughput()) + " samples per second there"});
  tiles.push_back({"Resident memory over " + beside.name, format_percent(totals.memory / other.memory),
                   format_bytes(static_cast<int64_t>(other.memory)) + " there"});
}

std::vector<PageTile> make_tiles(const TrainRecord& record, const TrainBeside* beside) {
  std::vector<PageTile> tiles;
  if (record.epochs.empty()) return tiles;
  const EpochRecord &first = record.epochs.front(), &last = record.epochs.back();
  tiles.push_back({"Training loss", print_plain(last.loss), "was " + print_plain(first.loss) + " in the first epoch"});
  if (last.validation_loss) {
    const auto detail = first.validation_loss ? "was " + print_plain(*first.validation_loss) : std::string();
    tiles.push_back({"Validation loss", print_plain(*last.validation_loss), detail});
  }
  for (const auto& [name, value] : last.validation_metrics)
    tiles.push_back({name, format_cell(value, metric_unit(name)), "on the validation data"});
  const Totals totals = add_up(record);
  if (totals.steps > 0) {
    tiles.push_back({"One step", format_duration(totals.seconds / totals.steps),
                     format_percent(totals.data / totals.seconds) + " of it is waiting for data"});
    tiles.push_back({"Samples per second", print_plain(totals.throughput()), std::to_string(record.steps) + " steps"});
  }
  if (beside != nullptr) add_compared_tiles(totals, *beside, tiles);
  return tiles;
}

std::string make_answer(const TrainRecord& record) {
  std::string text = "Trained for " + std::to_string(record.steps) + " steps in " +
                     std::to_string(record.epochs.size()) + (record.epochs.size() == 1 ? " epoch" : " epochs");
  if (record.interrupted) text = "Interrupted. " + text;
  if (record.stopped_early) text += ", stopped early";
  if (record.epochs.empty()) return text;
  const EpochRecord& last = record.epochs.back();
  text += ": loss " + print_plain(last.loss);
  if (last.validation_loss) text += ", validation loss " + print_plain(*last.validation_loss);
  for (const auto& [name, value] : last.validation_metrics)
    text += ", " + name + " " + format_cell(value, metric_unit(name));
  return text;
}

}  // namespace

Table make_epoch_table(const TrainRecord& record) {
  Table table{"Epochs", {{"epoch", ""}, {"loss", ""}, {"validation loss", ""}}, {}};
  const std::vector<std::string> metrics = list_metrics(record);
  for (const std::string& name : metrics) table.columns.push_back({name, metric_unit(name)});
  table.columns.push_back({"learning rate", ""});
  table.columns.push_back({"took", "s"});
  for (const EpochRecord& epoch : record.epochs) {
    std::vector<Cell> row = {static_cast<double>(epoch.epoch), epoch.loss,
                             epoch.validation_loss.value_or(std::nan(""))};
    for (const std::string& name : metrics) row.push_back(find_metric(epoch, name).value_or(std::nan("")));
    row.insert(row.end(), {epoch.learning_rate, epoch.seconds});
    table.rows.push_back(std::move(row));
  }
  return table;
}

ReportPage make_train_page(const TrainRecord& record, const std::optional<TrainBeside>& beside,
                           const std::string& model, std::vector<std::pair<std::string, std::string>> facts,
                           const std::string& command) {
  const TrainBeside* other = beside ? &*beside : nullptr;
  std::vector<Table> tables = {make_epoch_table(record)};
  if (!record.places.empty()) tables.push_back(make_place_table(record));
  if (other != nullptr) {
    tables.push_back(make_epoch_table(other->record));
    tables.back().title = "Epochs of " + other->name;
  }
  return {.title = model,
          .answer = make_answer(record),
          .tiles = make_tiles(record, other),
          .charts = make_charts(record, other),
          .notes = record.notes,
          .tables = std::move(tables),
          .facts = std::move(facts),
          .command = command};
}

}  // namespace lissome
