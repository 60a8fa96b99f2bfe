// One snapshot of a training as a file: named tensors and the facts that say of which training it is. No pickle, no
// code; snapshot_file.cpp draws the format.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lissome/train/optim/optimizer.h"

namespace lissome {

// What a training is, fact by fact: "batch" -> "64". Two that agree in all of them go on from each other's snapshots.
using TrainingFacts = std::vector<std::pair<std::string, std::string>>;

// Entries have unique names, "weight/fc.bias", "optimizer/fc.bias/exp_avg", "place/step"; numbers are scalars of f64
// or i64, so that every bit is kept.
struct Snapshot {
  TrainingFacts facts;
  NamedTensors entries;

  void add(const std::string& name, const at::Tensor& tensor) { entries.emplace_back(name, tensor); }
  void add_number(const std::string& name, double number);
  void add_count(const std::string& name, int64_t count);
  void add_numbers(const std::string& name, const std::vector<double>& numbers);
  // All under "<section>/".
  void add_section(const std::string& section, const NamedTensors& tensors);

  const at::Tensor* find(const std::string& name) const;  // null when absent
  // Throw invalid_input when the entry is absent or of another kind.
  const at::Tensor& require(const std::string& name) const;
  // Of these sizes and this dtype.
  const at::Tensor& require_like(const std::string& name, const at::Tensor& model) const;
  double require_number(const std::string& name) const;
  int64_t require_count(const std::string& name) const;
  std::vector<double> require_numbers(const std::string& name) const;
  NamedTensors read_section(const std::string& section) const;  // names without the section
};

// All or nothing: written beside, synced, renamed. Throws io and leaves an older file as it was.
void save_snapshot(const std::string& path, const Snapshot& snapshot);
// Checks every byte. Throws invalid_input for what is damaged, no snapshot, or of a newer version.
Snapshot load_snapshot(const std::string& path);

}  // namespace lissome
