// Keeps the best model that optimize has found so far on disk under temporary names. Any thread can publish it under
// its real name at any time, in about a millisecond whatever its size.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "lissome/cli/console.h"
#include "lissome/tune.h"

namespace lissome {

// The files and the text that optimize writes.
struct OptimizeOutputs {
  std::string model;
  FileContents contents = FileContents::plan;
  std::string report;  // path; empty: no report
  bool json = false;   // print the record as JSON; false: as a table
};

class BestSoFar {
 public:
  BestSoFar(OptimizeOutputs outputs, const Console& console);

  // Replaces the kept model and record. Unless `better`, the kept model stays and only the record is replaced. Throws
  // io and then keeps the old ones; the next call writes the model whatever `better` says.
  void keep(const Optimized& so_far, bool better);
  bool keeps_any() const { return model_ != nullptr; }  // only for the thread that calls keep()
  // Gives the files their names and prints the record. Returns false if nothing was kept within `seconds`. Only the
  // first call has an effect; later calls return its result.
  bool publish(double seconds);

 private:
  const OptimizeOutputs outputs_;
  const Console& console_;
  bool outdated_ = true;  // the kept model is no longer the best
  std::mutex mutex_;      // guards all members below
  std::condition_variable kept_;
  std::unique_ptr<AtomicFile> model_, report_;
  std::string text_;
  bool published_ = false;
};

}  // namespace lissome
