#include "lissome/python/runtime/finished_model.h"

namespace lissome {

FinishedModel::FinishedModel(MadeModel made) : made_(std::move(made)), session_(Session(made_.plan, made_.options)) {}

py::list FinishedModel::run(const py::list& values) {
  const GivenInputs given(values);
  std::vector<Array> outputs;
  {
    const py::gil_scoped_release released;
    outputs = std::visit([&](auto& session) { return session.run(given.views()); }, session_);
  }
  return write_outputs(plan(), std::move(outputs));
}

std::unique_ptr<FinishedModel> FinishedModel::pad_to(const std::string& dimension, std::vector<int64_t> sizes,
                                                     std::map<std::string, double> pads, const py::list& sample) const {
  const GivenInputs given(sample);
  const py::gil_scoped_release released;
  auto padded = std::make_unique<FinishedModel>(made_);
  padded->session_ =
      BucketedSession(std::get<Session>(std::move(padded->session_)),
                      {.dimension = dimension, .sizes = std::move(sizes), .pads = std::move(pads)}, given.views());
  return padded;
}

void FinishedModel::save(const std::string& path) const { save_model_file(path, made_.file); }

const Session& FinishedModel::session() const {
  const auto* bucketed = std::get_if<BucketedSession>(&session_);
  return bucketed == nullptr ? std::get<Session>(session_) : bucketed->session();
}

std::optional<double> FinishedModel::seen_difference() const {
  const auto* bucketed = std::get_if<BucketedSession>(&session_);
  return bucketed == nullptr ? std::nullopt : std::optional(bucketed->seen_difference());
}

std::optional<MadeModel> read_finished_model(const std::string& path, const SessionOptions& options) {
  std::optional<ModelFile> file = try_load_model_file(path);
  if (!file || file->plan.empty()) return std::nullopt;
  auto plan = std::make_shared<const Plan>(read_plan(*file));
  return MadeModel{std::move(*file), std::move(plan), options};
}

}  // namespace lissome
