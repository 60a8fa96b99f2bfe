// The snapshots that a training saves: the state of its parts together with the facts that identify it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lissome/program.h"
#include "lissome/train/loop/snapshot_folder.h"
#include "lissome/train/loop/training_state.h"

namespace lissome {

class TrainingSnapshots {
 public:
  // `facts` name a precision. Nothing is saved before open().
  explicit TrainingSnapshots(TrainingFacts facts) : facts_(std::move(facts)) {}

  // Saves into a folder from now on. Throws the errors of SnapshotFolder.
  void open(const SnapshotOptions& options) { folder_.emplace(options); }
  bool is_open() const { return folder_.has_value(); }
  // Whether a snapshot is due after so many steps; never before open().
  bool is_due(int64_t steps) const { return folder_ && folder_->is_due(steps); }

  // Saves a snapshot that names `precision`, with what GradientExchange::collect() gave. If the file cannot be
  // written, returns a notice, because training goes on without it. To be called after open().
  std::optional<std::string> save(const TrainingState& state, const NamedTensors& exchanged, Dtype precision);

  // A sentence for errors: the newest snapshot that was saved, or that there is none.
  std::string name_good_state() const;

 private:
  std::optional<SnapshotFolder> folder_;
  TrainingFacts facts_;
};

}  // namespace lissome
