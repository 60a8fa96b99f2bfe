// One snapshot of a training as a file: named tensors, and the facts that identify the training. It holds no pickle and
// no code; snapshot_file.cpp describes the format.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lissome/train/optim/optimizer.h"

namespace lissome {

// Identifies a training: "batch" -> "64". Trainings with equal facts can continue from each other's snapshots.
using TrainingFacts = std::vector<std::pair<std::string, std::string>>;

// Entries have unique names: "weight/fc.bias", "optimizer/fc.bias/exp_avg", "place/step". Numbers are f64 or i64
// scalars, so that every bit is kept.
struct Snapshot {
  TrainingFacts facts;
  NamedTensors entries;

  void add(const std::string& name, const at::Tensor& tensor) { entries.emplace_back(name, tensor); }
  void add_number(const std::string& name, double number);
  void add_count(const std::string& name, int64_t count);
  void add_numbers(const std::string& name, const std::vector<double>& numbers);
  // Adds the tensors under "<section>/".
  void add_section(const std::string& section, const NamedTensors& tensors);

  const at::Tensor* find(const std::string& name) const;  // null when absent
  // These throw invalid_input when the entry is absent or of another kind.
  const at::Tensor& require(const std::string& name) const;
  // The entry must have the sizes and the dtype of `model`.
  const at::Tensor& require_like(const std::string& name, const at::Tensor& model) const;
  double require_number(const std::string& name) const;
  int64_t require_count(const std::string& name) const;    // within 0 and kMostCount
  static constexpr int64_t kMostCount = int64_t{1} << 53;  // beyond it a double would not hold it
  std::vector<double> require_numbers(const std::string& name) const;
  NamedTensors read_section(const std::string& section) const;  // names without the section
};

// Writes a file beside, syncs it and renames it, so that the snapshot is whole or absent. Throws io; an older file then
// stays as it was.
void save_snapshot(const std::string& path, const Snapshot& snapshot);
// Checks every byte. Throws invalid_input for a damaged file, a file that is no snapshot, and a newer version.
Snapshot load_snapshot(const std::string& path);

}  // namespace lissome
