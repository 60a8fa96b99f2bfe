// Sessions with less memory than weights, on a file with weights enough to count its resident pages.
#include "lissome/runtime/memory/weight_stream.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "lissome/kernel.h"
#include "lissome/runtime/plan/plan_io.h"
#include "tests/count_allocations.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

// Steps of libtorch, each with a weight of its own, whose results may share memory with all weights before.
Plan make_chain_of_aliases(int steps) {
  Plan plan;
  const auto add = [&](Storage storage, int array) {
    return plan.add_value({"v" + std::to_string(plan.values.size()),
                           storage,
                           PlanKind::tensor,
                           Dtype::f32,
                           true,
                           {},
                           Format::row_major,
                           array});
  };
  PlanValueId held = add(Storage::held, -1);
  for (int i = 0; i < steps; ++i) {
    PlanStep step;
    step.kernel = kReferenceStep;
    step.keeps_operands = true;
    step.operands = {held, add(Storage::constant, 0)};
    step.results = {held = add(Storage::held, -1)};
    plan.steps.push_back(step);
  }
  plan.arrays.push_back({"w", true, make_array(Dtype::f32, {1})});
  return plan;
}

constexpr int64_t kWide = 512, kLayers = 24;
constexpr int64_t kLayerBytes = kWide * kWide * 4;  // 1 MiB

// y = x w1 w2 ... each w turning all elements by its own number of places, so that the order of layers shows.
ModelFile make_model() {
  Plan plan;
  plan.dimensions = {{"batch", 1, 64}};
  const SizeExpression batch = SizeExpression::parse("batch", plan.dimensions);
  const auto add = [&](std::string name, Storage storage, std::vector<SizeExpression> sizes, int array = -1) {
    return plan.add_value(
        {std::move(name), storage, PlanKind::tensor, Dtype::f32, true, std::move(sizes), Format::row_major, array});
  };
  PlanValueId x = add("x", Storage::input, {batch, kWide});
  plan.inputs = {{"x", x}};
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    Array weight = make_array(Dtype::f32, {packed_linear_f32_size(kWide, kWide)});
    for (int64_t k = 0; k < kWide; ++k) {
      const int64_t n = (k + 7 * layer + 1) % kWide;
      weight.data<float>()[(n / kLinearPanel) * kWide * kLinearPanel + k * kLinearPanel + n % kLinearPanel] =
          1 + static_cast<float>(k == layer);
    }
    plan.arrays.push_back({"w" + std::to_string(layer), true, weight});
    const PlanValueId w =
        add("w" + std::to_string(layer), Storage::constant, {weight.sizes[0]}, static_cast<int>(layer));
    PlanStep step;
    step.kernel = "linear_f32";
    step.attributes.set("outputs", kWide);
    step.operands = {x, w, PlanValueId::none, PlanValueId::none};
    step.results = {x = add("y" + std::to_string(layer), Storage::arena, {batch, kWide})};
    plan.steps.push_back(step);
  }
  plan.outputs = {{"y", x, {}}};
  ModelFile file;
  put_plan(file, plan);
  return file;
}

// Bytes of a mapped file that are in this process's memory now.
int64_t count_resident(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  int64_t bytes = 0;
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("-") < line.find(" ") && line.find(":") > line.find(" ")) ours = line.ends_with(path);
    if (ours && line.starts_with("Rss:")) bytes += std::stoll(line.substr(4)) * 1024;
  }
  return bytes;
}

class Model {
 public:
  Model() : path_(folder_.file("wide.lissome")) { save_model_file(path_, make_model()); }
  const std::string& path() const { return path_; }

  int64_t resident() const { return count_resident(path_); }

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

// The same plan, whose weights are inputs behind x, and a shared mapping of a file that they lie in, as training has
// it.
class WeightsAsInputs {
 public:
  WeightsAsInputs() : plan_(read_plan(make_model())), path_(folder_.write("weights", "")) {
    std::filesystem::resize_file(path_, static_cast<uintmax_t>(kLayers * kLayerBytes));
    const int file = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    data_ = static_cast<std::byte*>(mmap(nullptr, kLayers * kLayerBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
    REQUIRE(data_ != MAP_FAILED);
    for (const PlanValueId id : plan_.value_ids()) {
      PlanValue& value = plan_.value(id);
      if (value.storage != Storage::constant) continue;
      std::memcpy(place(value.array), plan_.arrays[static_cast<size_t>(value.array)].array.storage.get(), kLayerBytes);
      value.storage = Storage::input, value.array = -1;
      plan_.inputs.push_back({value.name, id});
    }
    plan_.arrays.clear();
    forget();
  }
  ~WeightsAsInputs() { munmap(data_, kLayers * kLayerBytes); }
  WeightsAsInputs(const WeightsAsInputs&) = delete;
  WeightsAsInputs& operator=(const WeightsAsInputs&) = delete;

  const Plan& plan() const { return plan_; }
  std::byte* place(int layer) const { return data_ + layer * kLayerBytes; }
  void forget() const { madvise(data_, kLayers * kLayerBytes, MADV_DONTNEED); }
  int64_t resident() const { return count_resident(path_); }

  std::vector<size_t> places() const {
    std::vector<size_t> places(kLayers);
    std::iota(places.begin(), places.end(), 1);
    return places;
  }
  std::vector<TensorView> list_inputs(const Array& x) const {
    std::vector<TensorView> views = {x.view()};
    for (int i = 0; i < kLayers; ++i) views.push_back({Dtype::f32, {kWide * kWide}, {1}, place(i)});
    return views;
  }

 private:
  TemporaryFolder folder_;
  Plan plan_;
  std::string path_;
  std::byte* data_ = nullptr;
};

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
  const PlanValueId chosen =
      plan.add_value({"ids", Storage::input, PlanKind::tensor, Dtype::i64, true, {n}, Format::row_major, -1});
  const PlanValueId rows = plan.add_value(
      {"table", Storage::constant, PlanKind::tensor, Dtype::f32, true, {kRows, kWide}, Format::row_major, 0});
  const PlanValueId y =
      plan.add_value({"y", Storage::arena, PlanKind::tensor, Dtype::f32, true, {n, kWide}, Format::row_major, -1});
  plan.inputs = {{"ids", chosen}};
  plan.outputs = {{"y", y, {}}};
  PlanStep step;
  step.kernel = "gather_rows";
  step.operands = {rows, chosen}, step.results = {y};
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

TEST_CASE("inputs come from their file inside the limit, and what is written between runs is read") {
  const WeightsAsInputs model;
  const Array x = make_input(8);
  const std::vector<TensorView> inputs = model.list_inputs(x);
  for (const int threads : {1, 2}) {
    Session free(std::make_shared<Plan>(model.plan()), {.threads = threads});
    Session session(std::make_shared<Plan>(model.plan()), {.threads = threads});
    for (const int64_t mebibytes : {1, 2, 7}) {
      CAPTURE(mebibytes);
      session.stream_inputs(model.places(), mebibytes << 20);
      for (int repeat = 0; repeat < 3; ++repeat) {
        // As an update does.
        reinterpret_cast<float*>(model.place(5))[0] += 1;
        const Array wanted = free.run(inputs)[0];
        model.forget();
        int64_t most = 0;
        const StepSink sink = [&](const StepTiming&) { most = std::max(most, model.resident()); };
        const Array seen = session.run(inputs, &sink)[0];
        CHECK(std::memcmp(seen.storage.get(), wanted.storage.get(), static_cast<size_t>(wanted.bytes())) == 0);
        CHECK(most <= mebibytes << 20);
        CHECK(most >= kLayerBytes);
        CHECK(model.resident() == 0);
      }
      CHECK(session.stream().streamed == kLayers * kLayerBytes);
    }
    session.stream_inputs(model.places(), kLayerBytes / 2);
    EXPECT_ERROR(over_budget, session.run(inputs), "a step reads 1.0 MiB");
    session.stream_inputs({}, 0);
    session.run(inputs);
    CHECK(model.resident() == kLayers * kLayerBytes);
    model.forget();
  }
}

TEST_CASE("inputs that lie elsewhere in the next run are left alone where they lay") {
  const WeightsAsInputs first, second;
  const Array x = make_input(8);
  Session session(std::make_shared<Plan>(first.plan()), {.threads = 2});
  session.stream_inputs(first.places(), int64_t{4} << 20);
  const Array wanted = session.run(first.list_inputs(x))[0];
  std::memset(first.place(0), 0, kLayerBytes);
  const int64_t touched = first.resident();
  const Array seen = session.run(second.list_inputs(x))[0];
  CHECK(first.resident() == touched);
  CHECK(std::memcmp(seen.storage.get(), wanted.storage.get(), static_cast<size_t>(wanted.bytes())) == 0);
}

TEST_CASE("what steps read through aliases is bounded, not listed by the square of the steps") {
  const auto open = [](int steps) {
    const Plan plan = make_chain_of_aliases(steps);
    const std::vector<Array> arrays = {plan.arrays[0].array};
    WeightStream stream(plan, arrays);
  };
  CHECK_NOTHROW(open(1000));
  EXPECT_ERROR(invalid_input, open(5000), "share memory", "4194304");
}
