#include "lissome/train/loop/snapshot_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "lissome/base.h"

namespace lissome {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kSuffix = ".snapshot";

std::string make_path(const std::string& folder, int64_t step) {
  char name[48];
  std::snprintf(name, sizeof name, "step-%012lld.snapshot", static_cast<long long>(step));
  return folder + "/" + name;
}

std::string describe_difference(const TrainingFacts& there, const TrainingFacts& here) {
  const auto find = [](const TrainingFacts& facts, const std::string& name) -> std::string {
    for (const auto& [known, text] : facts) {
      if (known == name) return text;
    }
    return "absent";
  };
  std::vector<std::string> differences;
  for (const auto& [name, text] : here) {
    if (find(there, name) != text)
      differences.push_back(name + " " + quote(find(there, name)) + " there, " + quote(text) + " here");
  }
  for (const auto& [name, text] : there) {
    if (find(here, name) == "absent") differences.push_back(name + " " + quote(text) + " there, absent here");
  }
  return join(differences, "; ");
}

}  // namespace

std::vector<std::string> list_snapshots(const std::string& folder) {
  std::error_code failed;
  if (!fs::is_directory(folder, failed))
    throw_error(ErrorKind::usage, "there is no folder ", quote(folder), " with snapshots. Check the path.");
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) paths.push_back(folder + "/" + name);
  }
  if (failed) throw_error(ErrorKind::io, "cannot read the folder ", quote(folder), ": ", failed.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

void remove_snapshots(const std::string& folder) {
  std::error_code ignored;  // a snapshot that cannot be removed stays
  if (!fs::is_directory(folder, ignored)) return;
  for (const std::string& path : list_snapshots(folder)) fs::remove(path, ignored);
  fs::remove(folder, ignored);
}

FoundSnapshot find_snapshot(const std::string& folder) {
  FoundSnapshot found;
  const std::vector<std::string> paths = list_snapshots(folder);
  for (auto path = paths.rbegin(); path != paths.rend() && found.path.empty(); ++path) {
    try {
      found.snapshot = load_snapshot(*path);
      found.path = *path;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_input) throw;
      found.damaged.push_back(error.message());
    }
  }
  if (found.path.empty() && !paths.empty())
    throw_error(ErrorKind::invalid_input, "none of the ", paths.size(), " snapshots in ", quote(folder),
                " is good. The newest: ", found.damaged.front());
  return found;
}

void refuse_other_training(const FoundSnapshot& found, const TrainingFacts& facts) {
  if (found.path.empty()) return;
  const std::string difference = describe_difference(found.snapshot.facts, facts);
  if (!difference.empty())
    throw_error(ErrorKind::invalid_input, "the snapshot ", quote(found.path), " is of another training: ", difference,
                ".\nGive the same model, data and options, or start a new training with another --snapshots folder");
}

void refuse_used_folder(const std::string& folder) {
  std::error_code ignored;  // a folder that cannot be read is reported when it is created
  if (!fs::is_directory(folder, ignored)) return;
  const std::vector<std::string> there = list_snapshots(folder);
  if (there.empty()) return;
  throw_error(ErrorKind::usage, quote(folder),
              " holds snapshots of an unfinished training (the newest: ", fs::path(there.back()).filename().string(),
              ").\nContinue it with --resume ", folder, ", or choose another folder with --snapshots, or remove it");
}

SnapshotFolder::SnapshotFolder(const SnapshotOptions& options) : options_(options) {
  if (options.every_steps < 0 || !(options.every_seconds >= 0) || options.keep < 1 ||
      (options.every_steps == 0 && options.every_seconds == 0))
    throw_error(ErrorKind::invalid_input,
                "snapshots need a number of steps or seconds above 0, and 1 or more must be kept; not ",
                options.every_steps, " steps, ", options.every_seconds, " s, ", options.keep, " kept");
  const int problem = mkdir(options.folder.c_str(), 0777) == 0 ? 0 : errno;
  if (problem != 0 && problem != EEXIST)
    throw_error(problem == ENOENT ? ErrorKind::usage : ErrorKind::io, "the folder ", quote(options.folder),
                " for snapshots cannot be created: ", std::error_code(problem, std::generic_category()).message());
  made_ = problem == 0;
  if (made_) empty_ = UnfinishedPath(options.folder);
  sweep_temporary_files(options.folder);
  const AtomicFile probe(options.folder + "/probe");  // never committed: finds errors now and not after an hour
}

SnapshotFolder::~SnapshotFolder() {
  if (made_ && saved_step_ == 0) rmdir(options_.folder.c_str());  // fails, as intended, if the folder is not empty
}

bool SnapshotFolder::is_due(int64_t step) const {
  if (options_.every_steps > 0 && step % options_.every_steps == 0) return true;
  return options_.every_seconds > 0 && watch_.seconds() - tried_seconds_ >= options_.every_seconds;
}

void SnapshotFolder::save(int64_t step, const Snapshot& snapshot) {
  tried_seconds_ = watch_.seconds();
  const std::string path = make_path(options_.folder, step);
  save_snapshot(path, snapshot);
  empty_.forget();
  tried_seconds_ = watch_.seconds();
  saved_step_ = step;
  // A damaged snapshot of a later step, which resuming skipped, does not count.
  std::vector<std::string> paths = list_snapshots(options_.folder);
  std::erase_if(paths, [&](const std::string& other) { return other > path; });
  const auto kept = static_cast<size_t>(options_.keep);
  std::error_code ignored;  // one too many does no harm
  for (size_t i = 0; i + kept < paths.size(); ++i) fs::remove(paths[i], ignored);
}

}  // namespace lissome
