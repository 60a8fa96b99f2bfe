// Shows the record of a training to people: the table of epochs, and the page of --report.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lissome/report.h"
#include "lissome/train.h"

namespace lissome {

// Another training, whose curves and numbers are shown beside.
struct TrainBeside {
  std::string name;
  TrainRecord record;
};

Table make_epoch_table(const TrainRecord& record);
ReportPage make_train_page(const TrainRecord& record, const std::optional<TrainBeside>& beside,
                           const std::string& model, std::vector<std::pair<std::string, std::string>> facts,
                           const std::string& command);

}  // namespace lissome
