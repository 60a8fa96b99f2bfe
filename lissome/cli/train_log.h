// Writes the log of a running training: lines of JSON, and event files for TensorBoard.
#pragma once

#include <memory>
#include <string>

#include "lissome/train.h"

namespace lissome {

class TrainLog {
 public:
  // An empty path disables its output. Lines are added to an existing file. Throws usage or io if a path cannot be
  // written to.
  TrainLog(const std::string& lines, const std::string& events);
  ~TrainLog();

  // These throw io. Other processes see the output when they return; steps are seen within a second.
  void add_step(const TrainStepRecord& step);
  void add_epoch(const EpochRecord& epoch);
  void add_memory(const MemoryRecord& memory);
  void add_notice(const std::string& text);

 private:
  struct Files;
  void add_line(const std::string& line, bool flush);
  std::unique_ptr<Files> files_;
};

}  // namespace lissome
