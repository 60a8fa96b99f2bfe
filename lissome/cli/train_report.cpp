#include "lissome/cli/train_report.h"

#include <algorithm>
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

Cell find_metric(const EpochRecord& epoch, const std::string& wanted) {
  for (const auto& [name, value] : epoch.validation_metrics) {
    if (name == wanted) return value;
  }
  return std::string("-");
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

std::vector<PageChart> make_charts(const TrainRecord& record) {
  using Step = TrainStepRecord;
  std::vector<PageChart> charts;
  PageChart loss{"Loss",
                 "Of the batches as they were met; of the validation data after each epoch.",
                 {make_series(record, "train", "", [](const Step& step) { return step.loss; })}};
  Series validation =
      make_epoch_series(record, "validation", "", [](const EpochRecord& epoch) { return epoch.validation_loss; });
  if (!validation.y.empty()) loss.series.insert(loss.series.begin(), std::move(validation));
  charts.push_back(std::move(loss));
  for (const std::string& name : list_metrics(record)) {
    charts.push_back({name,
                      "Of the validation data.",
                      {make_epoch_series(record, name, metric_unit(name), [&](const EpochRecord& epoch) {
                        const Cell cell = find_metric(epoch, name);
                        const double* value = std::get_if<double>(&cell);
                        return value != nullptr ? std::optional(*value) : std::nullopt;
                      })}});
  }
  charts.push_back({"Learning rate", "Of each step.", {make_series(record, "rate", "", [](const Step& step) {
                      return step.learning_rate;
                    })}});
  charts.push_back(
      {"Throughput", "Samples a second.", {make_series(record, "samples a second", "", [](const Step& step) {
         return static_cast<double>(step.samples) / step.seconds();
       })}});
  charts.push_back(
      {"Time of a step",
       "What it goes into.",
       {make_series(record, "forward and backward", "s", [](const Step& step) { return step.seconds_gradients; }),
        make_series(record, "data", "s", [](const Step& step) { return step.seconds_data; }),
        make_series(record, "optimizer", "s", [](const Step& step) { return step.seconds_update; })}});
  charts.push_back({"Gradient norm", "Global, before clipping.", {make_series(record, "norm", "", [](const Step& step) {
                      return step.gradient_norm;
                    })}});
  charts.push_back({"Memory", "Resident set of the process.", {make_series(record, "memory", "B", [](const Step& step) {
                      return step.memory;
                    })}});
  return charts;
}

std::string print_plain(double number) { return format_cell(number, ""); }

std::vector<PageTile> make_tiles(const TrainRecord& record) {
  std::vector<PageTile> tiles;
  if (record.epochs.empty()) return tiles;
  const EpochRecord &first = record.epochs.front(), &last = record.epochs.back();
  tiles.push_back({"Training loss", print_plain(last.loss), "was " + print_plain(first.loss) + " in the first epoch"});
  if (last.validation_loss) {
    const auto detail = first.validation_loss ? "was " + print_plain(*first.validation_loss) : std::string();
    tiles.push_back({"Validation loss", print_plain(*last.validation_loss), detail});
  }
  for (const auto& [name, value] : last.validation_metrics)
    tiles.push_back({name, format_cell(value, metric_unit(name)), "of the validation data"});
  double seconds = 0, data = 0, samples = 0, steps = 0;
  for (const TrainStepRecord& step : record.history.points) {
    seconds += step.seconds(), data += step.seconds_data;
    samples += static_cast<double>(step.samples), steps += 1;
  }
  if (steps > 0) {
    tiles.push_back({"One step", format_duration(seconds / steps), format_percent(data / seconds) + " waits for data"});
    tiles.push_back({"Samples a second", print_plain(samples / seconds), std::to_string(record.steps) + " steps"});
  }
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
  Table table{"Training", {{"epoch", ""}, {"loss", ""}, {"validation loss", ""}}, {}};
  const std::vector<std::string> metrics = list_metrics(record);
  for (const std::string& name : metrics) table.columns.push_back({name, metric_unit(name)});
  table.columns.push_back({"learning rate", ""});
  table.columns.push_back({"took", "s"});
  for (const EpochRecord& epoch : record.epochs) {
    std::vector<Cell> row = {static_cast<double>(epoch.epoch), epoch.loss,
                             epoch.validation_loss ? Cell(*epoch.validation_loss) : Cell(std::string("-"))};
    for (const std::string& name : metrics) row.push_back(find_metric(epoch, name));
    row.insert(row.end(), {epoch.learning_rate, epoch.seconds});
    table.rows.push_back(std::move(row));
  }
  return table;
}

ReportPage make_train_page(const TrainRecord& record, const std::string& model,
                           std::vector<std::pair<std::string, std::string>> facts, const std::string& command) {
  Table epochs = make_epoch_table(record);
  epochs.title = "Epochs";
  return {.title = model,
          .answer = make_answer(record),
          .tiles = make_tiles(record),
          .charts = make_charts(record),
          .notes = record.notes,
          .tables = {std::move(epochs)},
          .facts = std::move(facts),
          .command = command};
}

}  // namespace lissome
