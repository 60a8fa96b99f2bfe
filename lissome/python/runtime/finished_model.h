// A finished model as Python runs it: a session over a plan, and the file it is saved as.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lissome/python/runtime/made_model.h"
#include "lissome/python/runtime/numpy_values.h"

namespace lissome {

class FinishedModel {
 public:
  explicit FinishedModel(MadeModel made);

  // The interpreter's lock is free while the session runs. Several threads may call; their runs take turns.
  py::list run(const py::list& values);
  // The same model, padding one dimension up to buckets that `sample` proves.
  std::unique_ptr<FinishedModel> pad_to(const std::string& dimension, std::vector<int64_t> sizes,
                                        std::map<std::string, double> pads, const py::list& sample) const;
  // The same weights with a session of its own, whose state begins as the file has it.
  std::unique_ptr<FinishedModel> copy() const { return std::make_unique<FinishedModel>(made_); }
  void save(const std::string& path) const;

  const Plan& plan() const { return *made_.plan; }
  const std::string& metadata() const { return made_.file.metadata; }
  const SessionOptions& options() const { return made_.options; }
  const Session& session() const;
  // Of the sample that proved the buckets, relative to its largest element; none without buckets.
  std::optional<double> seen_difference() const;

 private:
  MadeModel made_;
  std::variant<Session, BucketedSession> session_;
};

// A finished .lissome; nothing for any other file.
std::optional<MadeModel> read_finished_model(const std::string& path, const SessionOptions& options);

}  // namespace lissome
