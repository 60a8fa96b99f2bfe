// The snapshots of one training in one folder, "step-000000120.snapshot": when the next is due, which are kept, which
// is the newest good one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/measure.h"
#include "lissome/train/loop/snapshot_file.h"

namespace lissome {

struct SnapshotOptions {
  std::string folder;          // made if its parent is there
  int64_t every_steps = 0;     // optimizer steps; 0: not by steps
  double every_seconds = 600;  // 0: not by time
  int64_t keep = 3;            // the newest ones; older ones are removed
};

// Paths, oldest first. Throws usage where there is no such folder.
std::vector<std::string> list_snapshots(const std::string& folder);
// Removes them, and the folder when nothing else is in it.
void remove_snapshots(const std::string& folder);

struct FoundSnapshot {
  Snapshot snapshot;
  std::string path;                  // empty: the folder holds none
  std::vector<std::string> damaged;  // newer ones that were passed over, and what is wrong with each
};
// The newest good one. Throws usage where there is no such folder, invalid_input when none of those there is good.
FoundSnapshot find_snapshot(const std::string& folder);
// Throws invalid_input when it differs in its facts: what there, what here.
void refuse_other_training(const FoundSnapshot& found, const TrainingFacts& facts);

// A training that begins anew needs a folder without snapshots, so that none is lost. Writes nothing, and is asked
// before work begins. Throws usage, naming the newest one there.
void refuse_used_folder(const std::string& folder);

class SnapshotFolder {
 public:
  // Makes the folder, and removes what killed processes left half written. Throws usage or io where nothing can be
  // written, and invalid_input for options out of range.
  explicit SnapshotFolder(const SnapshotOptions& options);
  // Removes a folder that it made and saved nothing into.
  ~SnapshotFolder();
  SnapshotFolder(const SnapshotFolder&) = delete;
  SnapshotFolder& operator=(const SnapshotFolder&) = delete;

  bool is_due(int64_t step) const;
  // Saves, and then removes what is too old. Throws io, with all older ones as they were; the next try is at the next
  // due time.
  void save(int64_t step, const Snapshot& snapshot);
  int64_t saved_step() const { return saved_step_; }  // the newest of this run; 0: none
  const std::string& folder() const { return options_.folder; }

 private:
  SnapshotOptions options_;
  bool made_ = false;
  UnfinishedPath empty_;  // the folder that was made, until something is saved into it
  int64_t saved_step_ = 0;
  double tried_seconds_ = 0;
  Stopwatch watch_;
};

}  // namespace lissome
