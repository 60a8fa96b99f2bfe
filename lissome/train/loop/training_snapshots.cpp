// See training_snapshots.h.
#include "lissome/train/loop/training_snapshots.h"

#include <algorithm>

#include "lissome/base.h"

namespace lissome {
namespace {

void name_precision(TrainingFacts& facts, Dtype precision) {
  const auto found =
      std::find_if(facts.begin(), facts.end(), [](const auto& fact) { return fact.first == "precision"; });
  LISSOME_CHECK(found != facts.end(), "no precision among the facts");
  found->second = dtype_name(precision);
}

}  // namespace

std::optional<std::string> TrainingSnapshots::save(const TrainingState& state, const NamedTensors& exchanged,
                                                   Dtype precision) {
  LISSOME_CHECK(folder_.has_value(), "there is no folder for snapshots");
  name_precision(facts_, precision);
  try {
    Snapshot snapshot = make_snapshot(state, facts_);
    snapshot.add_section("exchange", exchanged);
    folder_->save(state.record.steps, snapshot);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    return "the snapshot of step " + std::to_string(state.record.steps) +
           " was not saved, and training continues: " + error.message();
  }
  return std::nullopt;
}

std::string TrainingSnapshots::name_good_state() const {
  if (!folder_) return "No snapshot was saved.";
  if (folder_->saved_step() == 0) return "No snapshot was saved before it (see --snapshot-every).";
  return "The last good state is that of step " + std::to_string(folder_->saved_step()) + " in " +
         quote(folder_->folder()) + ".";
}

}  // namespace lissome
