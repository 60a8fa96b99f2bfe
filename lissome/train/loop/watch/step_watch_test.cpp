// A training changes how batches are loaded and how steps run when they become slow.
#include "lissome/train/loop/watch/step_watch.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "lissome/train/loop/test_line.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

// A disk that becomes slow.
class TiringSource : public BatchSource {
 public:
  explicit TiringSource(Dataset data) : source_(make_source(std::move(data))) {}
  int64_t samples() const override { return source_->samples(); }
  void take(std::span<const int64_t> samples, Batch& batch) const override {
    if (++taken_ > 400) std::this_thread::sleep_for(std::chrono::milliseconds(8));
    source_->take(samples, batch);
  }

 private:
  std::shared_ptr<const BatchSource> source_;
  mutable std::atomic<int> taken_ = 0;
};

}  // namespace

TEST_CASE("workers are tuned once more when batches become slow" * doctest::test_suite("measured")) {
  const Dataset data = make_line();
  TrainOptions options = make_line_options();
  options.epochs = 80, options.batch = 2;
  options.monitor.window = 10;
  GradientHooks hooks;
  hooks.add("w", [](const std::string&, const at::Tensor& gradient) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return gradient;
  });
  options.gradient_hooks = &hooks;
  const auto list_notes = [&] {
    options.batches.source = std::make_shared<TiringSource>(data);
    std::string notes;
    for (const std::string& note : train(make_line_model(), data, nullptr, options).record.notes) notes += note + "\n";
    return notes;
  };
  const std::string notes = list_notes();
  const size_t slow = notes.find("training waits for data"), anew = notes.find("tried anew");
  REQUIRE(slow != std::string::npos);
  REQUIRE(anew != std::string::npos);
  CHECK(notes.find("in the training loop") < slow);
  CHECK(notes.find("by 4 workers", anew) != std::string::npos);
  options.batches.workers = 0;
  options.epochs = 25;
  const std::string asked = list_notes();
  CHECK(asked.find("training waits for data") != std::string::npos);
  CHECK(asked.find("tried anew") == std::string::npos);
}

namespace {

// A product of the batch with itself: twice the samples, four times the work.
Program make_quadratic(int64_t width) {
  const std::string wide = std::to_string(width);
  std::string text = "dim n in 1..1024\ninput %x: f32[n, " + wide + "]\nparameter @w: f32[1, " + wide +
                     "] = 0.001\nparameter @b: f32[1] = 0.0\n";
  // Several products, so that a step takes longer than to load its batch on any machine.
  std::string rows = "x";
  for (const char* number : {"1", "2", "3"}) {
    text += std::string("%s") + number + ": f32[n, n] = aten::linear(%" + rows + ", %" + rows + ", none)\n";
    text += std::string("%m") + number + ": f32[n, " + wide + "] = aten::matmul(%s" + number + ", %x)\n";
    rows = std::string("m") + number;
  }
  return parse_program(text + "%y: f32[n, 1] = aten::linear(%" + rows + ", @w, @b)\nreturn %y\n");
}

Dataset make_wide(int64_t samples, int64_t width) {
  return make_dataset({make_floats("x", {samples, width}, [](int64_t i) { return static_cast<float>(i % 7) * 1e-3f; }),
                       make_floats("labels", {samples, 1}, [](int64_t i) { return static_cast<float>(i % 3); })},
                      {.labels = "labels"}, "wide");
}

std::string join(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += note + "\n";
  return text;
}

}  // namespace

TEST_CASE("when steps are slower than the target, an automatic batch tries fewer samples at once") {
  const Dataset data = make_wide(1024, 512);
  TrainOptions options = make_line_options();
  options.optimizer = Sgd{.lr = 1e-6};
  options.epochs = 3, options.batch = 0;
  options.monitor = {.window = 2, .target_step_seconds = 1e-9};
  const TrainRecord record = train(make_quadratic(512), data, nullptr, options).record;
  const std::string notes = join(record.notes);
  // Which batch is fastest is the machine's to say.
  CHECK_MESSAGE(notes.find("a batch by 512 samples at once takes ") != std::string::npos, notes);
  CHECK(record.batch <= 1024);
  CHECK(notes.find(std::to_string(record.batch) + " samples run at once from now on") != std::string::npos);
  CHECK(record.steps == 3);  // an update sees as many samples as before
  options.batch = 1024;
  const TrainRecord asked = train(make_quadratic(512), data, nullptr, options).record;
  CHECK(join(asked.notes).find("no setting of a step is automatic") != std::string::npos);
  CHECK(asked.batch == 1024);
}

TEST_CASE(
    "when steps are slower than the target, an automatic precision is measured again, and a snapshot names the "
    "choice") {
  const Dataset data = make_wide(256, 512);
  const TemporaryFolder folder;
  const auto make_wide_model = [] {
    return parse_program(
        "dim n in 1..64\n"
        "input %x: f32[n, 512]\n"
        "parameter @v: f32[1024, 512] = 0.001\n"
        "parameter @w: f32[1, 1024] = 0.001\n"
        "%h: f32[n, 1024] = aten::linear(%x, @v, none)\n"
        "%y: f32[n, 1] = aten::linear(%h, @w, none)\n"
        "return %y\n");
  };
  TrainOptions options = make_line_options();
  options.optimizer = Sgd{.lr = 1e-6};
  options.epochs = 1, options.batch = 64;
  options.snapshots = SnapshotOptions{.folder = folder.path() + "/s", .every_steps = 1};
  train(make_wide_model(), data, nullptr, options);
  options.precision.reset();
  options.resume = options.snapshots->folder;
  options.epochs = 3;
  options.monitor = {.window = 2, .target_step_seconds = 1e-9};
  const std::string notes = join(train(make_wide_model(), data, nullptr, options).record.notes);
  CHECK_MESSAGE(notes.find("the precision is f32, as in the snapshot") != std::string::npos, notes);
  const bool changed = notes.find("the precision is bf16 from now on: a step in bf16 takes 0.") != std::string::npos;
  CHECK_MESSAGE(changed != (notes.find("the precision stays f32: a step in bf16 takes") != std::string::npos), notes);
  options.epochs = 4;
  const std::string later = join(train(make_wide_model(), data, nullptr, options).record.notes);
  CHECK(later.find(std::string("the precision is ") + (changed ? "bf16" : "f32") + ", as in the snapshot") !=
        std::string::npos);
}
