// The best model that optimize has found so far, written to the disk under temporary names: giving it its name takes a
// millisecond, whatever its size, and any thread may do so at any time.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "lissome/cli/console.h"
#include "lissome/tune.h"

namespace lissome {

// What optimize writes.
struct OptimizeOutputs {
  std::string model;
  FileContents contents = FileContents::plan;
  std::string report;  // a path; empty: none
  bool json = false;   // the record is printed as JSON, else as a table
};

class BestSoFar {
 public:
  BestSoFar(OptimizeOutputs outputs, const Console& console);

  // Takes the place of what was kept. Unless `better`, the model that was kept stays and only the record is new.
  // Throws io, and keeps what was kept; the next call then writes the model whatever `better` says.
  void keep(const Optimized& so_far, bool better);
  bool keeps_any() const { return model_ != nullptr; }  // for the thread that keeps
  // Gives the files their names and prints the record; false where nothing was kept within `seconds`. The first call
  // counts: another does nothing and returns what that one did.
  bool publish(double seconds);

 private:
  const OptimizeOutputs outputs_;
  const Console& console_;
  bool outdated_ = true;  // the model that is kept is not the best any more
  std::mutex mutex_;      // guards all below
  std::condition_variable kept_;
  std::unique_ptr<AtomicFile> model_, report_;
  std::string text_;
  bool published_ = false;
};

}  // namespace lissome
