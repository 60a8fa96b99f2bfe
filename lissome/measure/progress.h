// How long work reports where it stands and learns that it shall stop. The library never prints: callers draw.
#pragma once

#include <functional>
#include <string>

namespace lissome {

struct Progress {
  std::string stage;         // "computation"
  std::string message;       // "int8: calibrating, 64 of 256 samples"
  double fraction = 0;       // of the whole work, 0..1
  double seconds_left = -1;  // -1: not known yet
};

struct WorkControl {
  std::function<void(const Progress&)> on_progress;  // may be empty; called from the working thread, often
  std::function<bool()> should_stop;                 // may be empty; true: finish soon with the best so far

  void report(const Progress& progress) const {
    if (on_progress) on_progress(progress);
  }
  bool stopped() const { return should_stop && should_stop(); }
};

}  // namespace lissome
