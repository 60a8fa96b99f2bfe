// Parts of a batch give what the whole gives, whatever made them: a wish or a limit on memory.
#include "lissome/train/optim/accumulate.h"

#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include "lissome/measure.h"
#include "lissome/train/budget/allocation_meter.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int64_t kClasses = 5;

Program parse_with_random_weights(std::string_view text) {
  at::manual_seed(3);
  Program program = parse_program(text);
  for (Weight& weight : program.weights) {
    if (weight.role == WeightRole::parameter) weight.tensor.normal_(0, 0.3);
  }
  return program;
}

Program make_classifier(std::string_view middle, std::string_view loss_arguments = "") {
  return parse_with_random_weights(
      "training\n"
      "dim n in 1..4096\n"
      "input %x: f32[n, 8]\n"
      "input %labels: i64[n]\n"
      "parameter @w: f32[512, 8]\n"
      "parameter @b: f32[512]\n"
      "parameter @v: f32[5, 512]\n"
      "constant @c: f32[5]\n"
      "%h: f32[n, 512] = aten::linear(%x, @w, @b)\n" +
      std::string(middle) +
      "%scores: f32[n, 5] = aten::linear(%m, @v)\n"
      "%loss: f32[] = aten::cross_entropy_loss(%scores, %labels" +
      std::string(loss_arguments) + ")\nreturn %loss\n");
}

struct Samples {
  at::Tensor x, labels;
};

Samples draw(int64_t count, int64_t least_label = 0) {
  at::manual_seed(4);
  return {at::randn({count, 8}), at::randint(least_label, kClasses, {count}, at::kLong)};
}

// Batches of samples that follow each other.
struct Source {
  Samples samples;
  Tensors take(int64_t first, int64_t count) const {
    return {samples.x.narrow(0, first, count), samples.labels.narrow(0, first, count)};
  }
};

BatchStepOptions at_once(int64_t count) {
  BatchStepOptions options;
  options.at_once = count;
  return options;
}

struct Outcome {
  double loss = 0;
  Tensors gradients;
};

Outcome run(BatchStep& step, const Source& source, int64_t first, int64_t count) {
  at::manual_seed(9);
  Outcome outcome{step.run(source.take(first, count)), {}};
  for (const at::Tensor& gradient : step.gradients()) outcome.gradients.push_back(gradient.clone());
  return outcome;
}

double distance(const at::Tensor& seen, const at::Tensor& wanted) {
  return seen.sub(wanted).norm().item().toDouble() / wanted.norm().item().toDouble();
}

void check_close(const Outcome& seen, const Outcome& wanted, double bound) {
  CHECK(seen.loss == doctest::Approx(wanted.loss).epsilon(bound));
  REQUIRE(seen.gradients.size() == wanted.gradients.size());
  for (size_t i = 0; i < seen.gradients.size(); ++i) CHECK(distance(seen.gradients[i], wanted.gradients[i]) <= bound);
}

constexpr std::string_view kGelu = "%m: f32[n, 512] = aten::gelu(%h)\n";

}  // namespace

TEST_CASE("parts of any size give loss and gradients of the whole") {
  const Program program = make_classifier(kGelu);
  const Samples samples = draw(64);
  const Source source{samples};
  BatchStep whole(program, source.take(0, 3), at_once(64));
  for (const int64_t size : {1, 7, 20, 32, 63}) {
    BatchStep parts(program, source.take(0, 3), at_once(size));
    check_close(run(parts, source, 0, 64), run(whole, source, 0, 64), 1e-6);
    check_close(run(parts, source, 40, 23), run(whole, source, 40, 23), 1e-6);  // the last of an epoch
    CHECK(parts.notes().empty());
  }
}

TEST_CASE("labels that are ignored and classes of their own weights count in parts as in the whole") {
  const Program program = make_classifier(kGelu, ", @c, 1, -100");
  const LossOptions loss{.class_weights = {1, 0.5, 3, 2, 0.1}};
  for (int64_t i = 0; i < kClasses; ++i)
    program.find_weight("c")->tensor[i].fill_(loss.class_weights[static_cast<size_t>(i)]);
  Samples samples = draw(48);
  samples.labels.narrow(0, 5, 9).fill_(-100);  // a part that counts for nothing, and one that counts less
  const Source source{samples};
  BatchStepOptions small = at_once(6), large = at_once(48);
  small.loss = large.loss = loss;
  BatchStep whole(program, source.take(0, 3), large), parts(program, source.take(0, 3), small);
  check_close(run(parts, source, 0, 48), run(whole, source, 0, 48), 2e-6);
}

TEST_CASE("dropout draws for each part, the same numbers with the same seed") {
  const Program program = make_classifier("%m: f32[n, 512] = aten::dropout(%h, 0.5, true)\n");
  const Source source{draw(32)};
  BatchStep parts(program, source.take(0, 3), at_once(8));
  const Outcome first = run(parts, source, 0, 32), again = run(parts, source, 0, 32);
  CHECK(first.loss == again.loss);
  for (size_t i = 0; i < first.gradients.size(); ++i) CHECK(at::equal(first.gradients[i], again.gradients[i]));
}

TEST_CASE("running statistics and counters are written once an update, as if all samples had run at once") {
  const Program program = parse_with_random_weights(
      "training\n"
      "dim n in 2..64\n"
      "input %x: f32[n, 8]\n"
      "input %labels: i64[n]\n"
      "parameter @v: f32[5, 4]\n"
      "parameter @scale: f32[4]\n"
      "parameter @shift: f32[4]\n"
      "buffer @mean: f32[4] = 0.25\n"
      "buffer @variance: f32[4] = 2.0\n"
      "buffer @steps: i64[] = 7\n"
      "%i: f32[n, 4, 2] = aten::reshape(%x, [-1, 4, 2])\n"
      "%b: f32[n, 4, 2], %m: f32[4], %s: f32[4], %new: f32[4], %next: f32[4] = "
      "aten::_native_batch_norm_legit_functional(%i, @scale, @shift, @mean, @variance, true, 0.1, 1e-5)\n"
      "%more: i64[] = aten::add.Scalar(@steps, 1)\n"
      "@mean <- %new\n"
      "@variance <- %next\n"
      "@steps <- %more\n"
      "%p: f32[n, 4] = aten::mean.dim(%b, [2])\n"
      "%scores: f32[n, 5] = aten::linear(%p, @v)\n"
      "%loss: f32[] = aten::cross_entropy_loss(%scores, %labels)\n"
      "return %loss\n");
  const at::Tensor mean = program.find_weight("mean")->tensor, variance = program.find_weight("variance")->tensor;
  const at::Tensor steps = program.find_weight("steps")->tensor;
  Samples samples = draw(23);
  samples.x.narrow(0, 0, 9).add_(5);  // parts that are far from each other
  const Source source{samples};
  const auto run_from_start = [&](int64_t size) {
    mean.fill_(0.25), variance.fill_(2), steps.fill_(7);
    BatchStep step(program, source.take(0, 3), at_once(size));
    run(step, source, 0, 23);
    CHECK(steps.item().toLong() == 8);
    CHECK((step.notes().size() == 1) == (size < 23));
    return Tensors{mean.clone(), variance.clone()};
  };
  const Tensors whole = run_from_start(23), parts = run_from_start(6);
  for (size_t i = 0; i < 2; ++i) CHECK(distance(parts[i], whole[i]) <= 1e-6);
}

TEST_CASE("with f16 gradients carry the scale of the loss, and parts are summed in f32") {
  const Program program = make_classifier(kGelu);
  const Source source{draw(32)};
  BatchStepOptions small = at_once(8), large = at_once(32);
  small.precision = large.precision = Dtype::f16;
  BatchStep parts(program, source.take(0, 3), small), whole(program, source.take(0, 3), large);
  BatchStep exact(program, source.take(0, 3), at_once(32));
  Outcome seen = run(parts, source, 0, 32), wanted = run(whole, source, 0, 32);
  CHECK(parts.loss_scale() == 65536);
  check_close(seen, wanted, 1e-3);
  const Outcome unscaled = run(exact, source, 0, 32);
  for (size_t i = 0; i < seen.gradients.size(); ++i) {
    CHECK((seen.gradients[i].scalar_type() == at::kFloat));
    CHECK(distance(seen.gradients[i].div(65536), unscaled.gradients[i]) <= 3e-3);
  }
  parts.note_update(true);
  CHECK(parts.loss_scale() == 32768);
}

namespace {

// The most bytes above those before that a step of these sizes takes.
int64_t measure_peak(const Program& program, const Source& source, int64_t size, int64_t count) {
  meter_allocations();
  MemoryCounter& counter = allocator_memory();
  BatchStep step(program, source.take(0, 3), at_once(size));
  const int64_t before = counter.live();
  counter.reset_peak();
  run(step, source, 0, count);
  return counter.peak() - before;
}

// For what the tests themselves hold under a limit: copies of gradients, and differences.
constexpr int64_t kRoomForTests = 200'000;

}  // namespace

TEST_CASE("a part that does not fit is halved until it does; the update is the same") {
  const Program program = make_classifier(kGelu);
  const Source source{draw(1024)};
  BatchStep whole(program, source.take(0, 3), at_once(1024));
  const Outcome wanted = run(whole, source, 0, 1024);
  const int64_t enough = measure_peak(program, source, 256, 1024), much = measure_peak(program, source, 1024, 1024);
  REQUIRE(enough < much / 2);
  BatchStep step(program, source.take(0, 3), at_once(1024));
  {
    const AllocationLimit limit(allocator_memory().live() + enough + kRoomForTests);
    check_close(run(step, source, 0, 1024), wanted, 1e-6);
    CHECK(step.at_once() == 256);
    REQUIRE(step.notes().size() == 2);
    CHECK(step.notes()[0].find("1024 samples at once do not fit") == 0);
    CHECK(step.notes()[1].find("256 samples run at once") != std::string::npos);
    check_close(run(step, source, 0, 1024), wanted, 1e-6);
    CHECK(step.notes().size() == 2);
  }
  BatchStep starved(program, source.take(0, 3), at_once(1024));
  const AllocationLimit limit(allocator_memory().live() + 20'000);
  EXPECT_ERROR(over_budget, starved.run(source.take(0, 1024)), "1 samples, the fewest", "does not fit into memory");
}

TEST_CASE("the largest batch that fits is found by running it, and leaves no trace") {
  const Program program = make_classifier("%m: f32[n, 512] = aten::dropout(%h, 0.5, true)\n");
  const Source source{draw(1024)};
  const int64_t exact = measure_peak(program, source, 300, 300), enough = exact + kRoomForTests;
  // Sizes that were tried and did not fit leave nothing behind that the one found lacks.
  for (const int64_t room : {20'000, 40'000, 60'000, 100'000, 150'000}) {
    BatchStep tight(program, source.take(0, 3), at_once(1));
    const std::vector<at::Tensor> few = source.take(0, 5), all = source.take(0, 1024);
    const AllocationLimit limit(allocator_memory().live() + exact + room);
    const int64_t found = tight.find_largest(few, 1024);
    tight.rehearse({all[0].narrow(0, 0, found), all[1].narrow(0, 0, found)});
    CHECK(tight.notes().empty());
  }
  BatchStep step(program, source.take(0, 3), at_once(1));
  at::manual_seed(9);
  const at::Tensor untouched = at::randn({3});
  int64_t found = 0;
  {
    const AllocationLimit limit(allocator_memory().live() + enough);
    at::manual_seed(9);
    found = step.find_largest(source.take(0, 5), 1024);
    CHECK(found >= 300 - 300 / 16);
    CHECK(step.at_once() == found);
    CHECK(at::equal(at::randn({3}), untouched));
  }
  {
    const AllocationLimit limit(allocator_memory().live() + enough + kRoomForTests);
    run(step, source, 0, found);
    CHECK(step.notes().empty());
  }
  CHECK(measure_peak(program, source, found, found) <= enough + kRoomForTests);
  const int64_t more = found + found / 16;
  CHECK(measure_peak(program, source, more, more) > enough);
  CHECK(step.find_largest(source.take(0, 5), 700) == 700);
}

TEST_CASE("a model of a fixed batch size runs in parts of that size") {
  const Program program = parse_with_random_weights(
      "input %x: f32[4, 8]\n"
      "input %labels: i64[4]\n"
      "parameter @v: f32[5, 8]\n"
      "%scores: f32[4, 5] = aten::linear(%x, @v)\n"
      "%loss: f32[] = aten::cross_entropy_loss(%scores, %labels)\n"
      "return %loss\n");
  const Program any = parse_program(
      "dim n in 1..64\n"
      "input %x: f32[n, 8]\n"
      "input %labels: i64[n]\n"
      "parameter @v: f32[5, 8]\n"
      "%scores: f32[n, 5] = aten::linear(%x, @v)\n"
      "%loss: f32[] = aten::cross_entropy_loss(%scores, %labels)\n"
      "return %loss\n",
      {{"v", program.find_weight("v")->tensor}});
  const Source source{draw(16)};
  BatchStepOptions options = at_once(16);
  options.fixed = 4;
  BatchStep parts(program, source.take(0, 4), options), whole(any, source.take(0, 3), at_once(16));
  check_close(run(parts, source, 0, 16), run(whole, source, 0, 16), 1e-6);
  CHECK(parts.find_largest(source.take(0, 4), 100) == 4);
}
