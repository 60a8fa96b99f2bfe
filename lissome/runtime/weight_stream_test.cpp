// Sessions with less memory than weights, on a file with weights enough to count its resident pages.
#include "lissome/runtime/weight_stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "lissome/kernel.h"
#include "lissome/runtime/plan_io.h"
#include "tests/count_allocations.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

constexpr int64_t kWide = 512, kLayers = 24;
constexpr int64_t kLayerBytes = kWide * kWide * 4;  // 1 MiB

// y = x w1 w2 ... each w turning all elements by its own number of places, so that the order of layers shows.
ModelFile make_model() {
  Plan plan;
  plan.dimensions = {{"batch", 1, 64}};
  const SizeExpression batch = SizeExpression::parse("batch", plan.dimensions);
  const auto add = [&](std::string name, Storage storage, std::vector<SizeExpression> sizes, int array = -1) {
    plan.values.push_back(
        {std::move(name), storage, PlanKind::tensor, Dtype::f32, true, std::move(sizes), Format::row_major, array});
    return static_cast<int>(plan.values.size()) - 1;
  };
  int x = add("x", Storage::input, {batch, kWide});
  plan.inputs = {{"x", x}};
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    Array weight = make_array(Dtype::f32, {packed_linear_f32_size(kWide, kWide)});
    for (int64_t k = 0; k < kWide; ++k) {
      const int64_t n = (k + 7 * layer + 1) % kWide;
      weight.data<float>()[(n / kLinearPanel) * kWide * kLinearPanel + k * kLinearPanel + n % kLinearPanel] =
          1 + static_cast<float>(k == layer);
    }
    plan.arrays.push_back({"w" + std::to_string(layer), true, weight});
    const int w = add("w" + std::to_string(layer), Storage::constant, {weight.sizes[0]}, static_cast<int>(layer));
    PlanStep step;
    step.kernel = "linear_f32";
    step.attributes.set("outputs", kWide);
    step.operands = {x, w, -1, -1};
    step.results = {x = add("y" + std::to_string(layer), Storage::arena, {batch, kWide})};
    plan.steps.push_back(step);
  }
  plan.outputs = {{"y", x, {}}};
  ModelFile file;
  put_plan(file, plan);
  return file;
}

class Model {
 public:
  Model() : path_(folder_.file("wide.lissome")) { save_model_file(path_, make_model()); }
  const std::string& path() const { return path_; }

  // Bytes of the file that are in this process's memory now.
  int64_t resident() const {
    std::ifstream maps("/proc/self/smaps");
    int64_t bytes = 0;
    bool ours = false;
    for (std::string line; std::getline(maps, line);) {
      if (line.find("-") < line.find(" ") && line.find(":") > line.find(" ")) ours = line.ends_with(path_);
      if (ours && line.starts_with("Rss:")) bytes += std::stoll(line.substr(4)) * 1024;
    }
    return bytes;
  }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

std::vector<float> run(Session& session, const Array& x, const StepSink* sink = nullptr) {
  const std::vector<Array> outputs = session.run(std::vector<TensorView>{x.view()}, sink);
  return {outputs[0].data<float>(), outputs[0].data<float>() + outputs[0].elements()};
}

Array make_input(int64_t batch) {
  Array x = make_array(Dtype::f32, {batch, kWide});
  for (int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = static_cast<float>(i % 97) - 40;
  return x;
}

std::string refuse(const Model& model, int64_t memory, int64_t batch) {
  try {
    Session session = Session::load(model.path(), {.threads = 1, .memory = memory});
    run(session, make_input(batch));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::over_budget);
    return error.message();
  }
  return {};
}

}  // namespace

TEST_CASE("weights that do not fit come from the file, inside the limit") {
  const Model model;
  for (const int threads : {1, 2}) {
    Session free = Session::load(model.path(), {.threads = threads});
    std::vector<std::vector<float>> wanted;
    for (const int64_t batch : {3, 64, 1}) wanted.push_back(run(free, make_input(batch)));
    CHECK(free.stream().weights == 0);
    for (const int64_t mebibytes : {2, 3, 5, 12, 23}) {
      CAPTURE(mebibytes);
      const Model own;  // its own file, whose pages are counted
      Session session = Session::load(own.path(), {.threads = threads, .memory = mebibytes << 20});
      const int64_t idle = own.resident();
      CHECK(idle < kLayerBytes);
      int64_t most = 0;
      const StepSink sink = [&](const StepTiming&) { most = std::max(most, own.resident()); };
      size_t i = 0;
      for (const int64_t batch : {3, 64, 1}) {
        for (int repeat = 0; repeat < 3; ++repeat) CHECK(run(session, make_input(batch), &sink) == wanted[i]);
        ++i;
      }
      // Pages of the archive's directory, which the plan was read from, come on top.
      CHECK(most - idle + session.memory().arena <= mebibytes << 20);
      CHECK(most > kLayerBytes);
      const StreamFacts facts = session.stream();
      CHECK(facts.weights >= kLayers * kLayerBytes);
      CHECK(facts.streamed > 0);
      CHECK(facts.streamed <= facts.weights);
      if (mebibytes == 23) CHECK(facts.streamed < facts.weights / 4);
      CHECK(facts.bytes_per_second > 1e6);
      CHECK(facts.seconds() > 0);
    }
  }
}

TEST_CASE("with memory enough nothing is read again") {
  const Model model;
  Session session = Session::load(model.path(), {.threads = 1, .memory = int64_t{64} << 20});
  run(session, make_input(2));
  CHECK(session.stream().streamed == 0);
  CHECK(session.stream().seconds() == 0);
}

TEST_CASE("a limit that cannot be met is refused with the least that is needed") {
  const Model model;
  CHECK(refuse(model, kLayerBytes / 2, 1).find("1.0 MiB for the weights of the largest layer") != std::string::npos);
  const std::string refused = refuse(model, kLayerBytes + (int64_t{64} << 10), 64);
  CHECK(refused.find("at least ") != std::string::npos);
  // What it names is enough.
  const int64_t least = std::stoll(refused.substr(refused.find("at least ") + 9));
  CHECK(least > kLayerBytes + 64 * kWide * 4);
  CHECK(refuse(model, least - 1, 64).find(std::to_string(least)) != std::string::npos);
  CHECK(refuse(model, least, 64).empty());
  // Refused for one shape, the session still runs a smaller one.
  Session session = Session::load(model.path(), {.threads = 1, .memory = kLayerBytes + (int64_t{64} << 10)});
  CHECK_THROWS_AS(run(session, make_input(64)), Error);
  CHECK(run(session, make_input(1)).size() == kWide);
}

TEST_CASE("weights in memory that no file stands behind count whole, and are never given back") {
  const Plan plan = [] {
    Plan read = read_plan(make_model());
    return read;
  }();
  CHECK_THROWS_AS(Session(std::make_shared<Plan>(plan), {.threads = 1, .memory = int64_t{8} << 20}), Error);
  Session session(std::make_shared<Plan>(plan), {.threads = 1, .memory = int64_t{32} << 20});
  Session free(std::make_shared<Plan>(plan), {.threads = 1});
  CHECK(run(session, make_input(3)) == run(free, make_input(3)));
  CHECK(session.stream().streamed == 0);
}

TEST_CASE("a warm run that streams allocates nothing") {
  const Model model;
  Session session = Session::load(model.path(), {.threads = 2, .memory = int64_t{6} << 20});
  const Array x = make_input(4), y = make_array(Dtype::f32, {4, kWide});
  const std::vector<TensorView> inputs = {x.view()}, outputs = {y.view()};
  for (int i = 0; i < 2; ++i) session.run_into(inputs, outputs);
  const int64_t before = count_allocations();
  session.run_into(inputs, outputs);
  CHECK(count_allocations() == before);
}

TEST_CASE("of a table only the chosen rows are in memory") {
  constexpr int64_t kRows = 4096, kBytes = kRows * kWide * 4;  // 8 MiB
  Plan plan;
  plan.dimensions = {{"n", 1, 64}};
  const SizeExpression n = SizeExpression::parse("n", plan.dimensions);
  Array table = make_array(Dtype::f32, {kRows, kWide});
  for (int64_t i = 0; i < kRows; ++i) table.data<float>()[i * kWide + 5] = static_cast<float>(i);
  plan.arrays = {{"table", true, table}};
  plan.values = {{"ids", Storage::input, PlanKind::tensor, Dtype::i64, true, {n}, Format::row_major, -1},
                 {"table", Storage::constant, PlanKind::tensor, Dtype::f32, true, {kRows, kWide}, Format::row_major, 0},
                 {"y", Storage::arena, PlanKind::tensor, Dtype::f32, true, {n, kWide}, Format::row_major, -1}};
  plan.inputs = {{"ids", 0}};
  plan.outputs = {{"y", 2, {}}};
  PlanStep step;
  step.kernel = "gather";
  step.operands = {1, 0}, step.results = {2};
  plan.steps = {step};
  ModelFile file;
  put_plan(file, plan);
  const TemporaryFolder folder;
  save_model_file(folder.file("table.lissome"), file);
  Session session = Session::load(folder.file("table.lissome"), {.threads = 1, .memory = kBytes / 2});
  Array ids = make_array(Dtype::i64, {8});
  for (int64_t i = 0; i < 8; ++i) ids.data<int64_t>()[i] = (i * 511) % kRows;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const std::vector<Array> outputs = session.run(std::vector<TensorView>{ids.view()});
    for (int64_t i = 0; i < 8; ++i) CHECK(outputs[0].data<float>()[i * kWide + 5] == ids.data<int64_t>()[i]);
  }
  CHECK(session.stream().streamed == 0);
  const Array many = make_array(Dtype::i64, {64});
  session.run(std::vector<TensorView>{many.view()});
  CHECK_THROWS_AS(Session::load(folder.file("table.lissome"), {.threads = 1, .memory = kBytes / 4})
                      .run(std::vector<TensorView>{many.view()}),
                  Error);
}
