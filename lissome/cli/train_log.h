// What a training writes while it runs: lines of JSON, and event files for TensorBoard.
#pragma once

#include <memory>
#include <string>

#include "lissome/train.h"

namespace lissome {

class TrainLog {
 public:
  // Empty paths: none. Lines are added to an older file. Throws usage or io where nothing can be written.
  TrainLog(const std::string& lines, const std::string& events);
  ~TrainLog();

  // Throw io. What they write can be seen by others when they return, steps within a second.
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
