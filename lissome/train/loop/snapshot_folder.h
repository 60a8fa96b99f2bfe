// The snapshots of one training in one folder, "step-000000120.snapshot": decides when the next is due and which are
// kept, and finds the newest one that is undamaged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/measure.h"
#include "lissome/train/loop/snapshot_file.h"

namespace lissome {

struct SnapshotOptions {
  std::string folder;          // created if its parent exists
  int64_t every_steps = 0;     // optimizer steps between snapshots; 0: not by steps
  double every_seconds = 600;  // seconds between snapshots; 0: not by time
  int64_t keep = 3;            // number of snapshots that are kept; older ones are removed
};

// Paths, oldest first. Throws usage if the folder does not exist.
std::vector<std::string> list_snapshots(const std::string& folder);
// Removes all snapshots, and the folder if nothing else is in it.
void remove_snapshots(const std::string& folder);

struct FoundSnapshot {
  Snapshot snapshot;
  std::string path;                  // empty: the folder holds none
  std::vector<std::string> damaged;  // newer snapshots that were skipped, with the error of each
};
// The newest undamaged snapshot. Throws usage if the folder does not exist, invalid_input if all snapshots are damaged.
FoundSnapshot find_snapshot(const std::string& folder);
// Throws invalid_input if the snapshot is of another training, naming the facts that differ.
void refuse_other_training(const FoundSnapshot& found, const TrainingFacts& facts);

// Checks before work begins that a new training does not overwrite snapshots of another: throws usage, naming the
// newest one, if the folder has any. Writes nothing.
void refuse_used_folder(const std::string& folder);

class SnapshotFolder {
 public:
  // Creates the folder and removes unfinished files of killed processes. Throws usage or io if the folder cannot be
  // written to, and invalid_input for options out of range.
  explicit SnapshotFolder(const SnapshotOptions& options);
  // Removes the folder if this object created it and saved nothing.
  ~SnapshotFolder();
  SnapshotFolder(const SnapshotFolder&) = delete;
  SnapshotFolder& operator=(const SnapshotFolder&) = delete;

  bool is_due(int64_t step) const;
  // Saves, then removes snapshots beyond `keep`. Throws io; older snapshots then stay, and the next save is due at the
  // next regular time.
  void save(int64_t step, const Snapshot& snapshot);
  int64_t saved_step() const { return saved_step_; }  // step of the newest snapshot of this run; 0: none
  const std::string& folder() const { return options_.folder; }

 private:
  SnapshotOptions options_;
  bool made_ = false;
  UnfinishedPath empty_;  // the created folder, until a snapshot is saved into it
  int64_t saved_step_ = 0;
  double tried_seconds_ = 0;
  Stopwatch watch_;
};

}  // namespace lissome
