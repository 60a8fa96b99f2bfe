#include "lissome/train/optim/optimizer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "lissome/base.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

const OptimizerOptions kAll[] = {AdamW{.lr = 0.01},
                                 Adam{.weight_decay = 0.1},
                                 Sgd{.lr = 0.1},
                                 Sgd{.momentum = 0.9, .dampening = 0.5},
                                 Lion{.weight_decay = 0.1},
                                 Adafactor{.weight_decay = 0.1},
                                 Sgd{.momentum = 0.9, .weight_decay = 0.1, .nesterov = true}};

at::Tensor make_normal(at::IntArrayRef sizes, uint64_t seed, at::ScalarType dtype = at::kFloat) {
  return at::empty(sizes, at::kFloat).normal_(0, 1, at::detail::createCPUGenerator(seed)).to(dtype);
}

// Two weights; the second is no whole number of registers.
std::vector<Parameter> make_parameters(at::ScalarType dtype = at::kFloat) {
  return {{"layer.weight", make_normal({40, 33}, 1, dtype), {}}, {"layer.bias", make_normal({33}, 2, dtype), {}}};
}

std::vector<at::Tensor> make_gradients(uint64_t step, at::ScalarType dtype = at::kFloat) {
  return {make_normal({40, 33}, 10 + step, dtype), make_normal({33}, 1000 + step, dtype)};
}

double largest_difference(const at::Tensor& left, const at::Tensor& right) {
  return left.to(at::kDouble).sub(right.to(at::kDouble)).abs().max().item<double>();
}

bool same_bits(const at::Tensor& left, const at::Tensor& right) { return left.equal(right); }

}  // namespace

TEST_CASE("states in a file give the same bits, and can be saved and restored") {
  const TemporaryFolder folder;
  at::manual_seed(2);
  std::vector<Parameter> plain, offloaded;
  std::vector<at::Tensor> gradients;
  // The second makes a stretch of its own.
  for (const int64_t size : {int64_t{77}, int64_t{5} << 20, int64_t{1000}, int64_t{5} << 20}) {
    const std::string name = "p" + std::to_string(plain.size());
    const at::Tensor weight = at::randn({size});
    plain.push_back({name, weight.clone(), {}}), offloaded.push_back({name, weight.clone(), {}});
    gradients.push_back(at::randn({size}));
  }
  Optimizer memory(plain, AdamW{}), file(offloaded, AdamW{}, {}, folder.file("."));
  for (int i = 0; i < 3; ++i) memory.step(gradients), file.step(gradients);
  for (size_t i = 0; i < plain.size(); ++i) CHECK(at::equal(plain[i].weight, offloaded[i].weight));
  const NamedTensors states = memory.state(), same = file.state();
  REQUIRE(states.size() == same.size());
  for (size_t i = 0; i < states.size(); ++i) CHECK(at::equal(states[i].second, same[i].second));
  // From one to the other, and on.
  memory.step(gradients);
  file.restore_state(memory.state());
  memory.step(gradients), file.step(gradients);
  CHECK(at::equal(memory.state()[3].second, file.state()[3].second));
  EXPECT_ERROR(usage, Optimizer(plain, AdamW{}, {}, folder.file("none")), "none");
}

TEST_CASE("kernels and ATen's ops do the same updates") {
  for (const OptimizerOptions& options : kAll) {
    CAPTURE(options.index());
    const auto fast = make_parameters(), exact = make_parameters(at::kDouble);
    Optimizer left(fast, options), right(exact, options);
    const StepOptions step_options = {.momentum = 0.8, .clip_norm = 3, .loss_scale = 2};
    for (uint64_t step = 0; step < 20; ++step) {
      const StepResult seen = left.step(make_gradients(step), step_options);
      const StepResult wanted = right.step(make_gradients(step, at::kDouble), step_options);
      CHECK(seen.gradient_norm == doctest::Approx(wanted.gradient_norm).epsilon(1e-9));
    }
    for (size_t i = 0; i < fast.size(); ++i) CHECK(largest_difference(fast[i].weight, exact[i].weight) < 4e-6);
    CHECK(largest_difference(fast[0].weight, make_parameters()[0].weight) > 1e-3);
  }
}

TEST_CASE("states go on where they were kept, to the same bits") {
  for (const OptimizerOptions& options : kAll) {
    CAPTURE(options.index());
    const auto whole = make_parameters();
    Optimizer first(whole, options);
    for (uint64_t step = 0; step < 5; ++step) first.step(make_gradients(step));
    NamedTensors kept;
    for (const auto& [name, tensor] : first.state()) kept.emplace_back(name, tensor.clone());
    std::vector<Parameter> copies = whole;
    for (Parameter& parameter : copies) parameter.weight = parameter.weight.clone();
    Optimizer second(copies, options);
    second.restore_state(kept);
    for (uint64_t step = 5; step < 8; ++step) {
      first.step(make_gradients(step));
      second.step(make_gradients(step));
    }
    for (size_t i = 0; i < whole.size(); ++i) CHECK(same_bits(whole[i].weight, copies[i].weight));
  }
}

TEST_CASE("states that do not fit are refused and change nothing") {
  const auto parameters = make_parameters();
  Optimizer optimizer(parameters, Adam{});
  optimizer.step(make_gradients(0));
  NamedTensors state = optimizer.state();
  REQUIRE(state.size() == 6);
  CHECK(state[0].first == "layer.weight/exp_avg");
  const auto with = [&](size_t index, std::pair<std::string, at::Tensor> item) {
    NamedTensors changed = state;
    changed[index] = std::move(item);
    return changed;
  };
  EXPECT_ERROR(invalid_input, optimizer.restore_state(with(0, {"other/exp_avg", state[0].second})),
               "lacks 'layer.weight/exp_avg'");
  EXPECT_ERROR(invalid_input, optimizer.restore_state(with(0, {state[0].first, at::zeros({3})})),
               "'layer.weight/exp_avg' is f32[3], not f32[40, 33]");
  NamedTensors more = state;
  more.emplace_back("other/step", state[2].second);
  EXPECT_ERROR(invalid_input, optimizer.restore_state(more), "'other/step' belongs to no parameter");
  CHECK(optimizer.state()[2].second.item<int64_t>() == 1);
}

TEST_CASE("a gradient that is not finite changes nothing") {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto parameters = make_parameters();
    Optimizer optimizer(parameters, AdamW{});
    auto gradients = make_gradients(0);
    gradients[1][32] = bad;
    CHECK(optimizer.step(gradients).skipped);
    CHECK(optimizer.state().empty());
    CHECK(same_bits(parameters[0].weight, make_parameters()[0].weight));
    CHECK(!optimizer.step(make_gradients(0)).skipped);
  }
}

TEST_CASE("clipping keeps the direction and looks at the unscaled norm") {
  const at::Tensor weight = at::zeros({2});
  Optimizer optimizer({{"w", weight, {}}}, Sgd{.lr = 1});
  const StepResult result = optimizer.step({at::tensor({300.0f, 400.0f})}, {.clip_norm = 1, .loss_scale = 100});
  CHECK(result.gradient_norm == doctest::Approx(5));
  CHECK(weight[0].item<float>() == doctest::Approx(-0.6));
  CHECK(weight[1].item<float>() == doctest::Approx(-0.8));
}

TEST_CASE("groups freeze, change rates and decay; the first that fits counts") {
  const auto parameters = make_parameters();
  Optimizer frozen(parameters, Sgd{.lr = 1},
                   {{.pattern = "*.weight", .frozen = true}, {.pattern = "*", .lr_factor = 0.5}});
  const std::vector<at::Tensor> ones = {at::full({40, 33}, std::numeric_limits<float>::infinity()), at::ones({33})};
  CHECK(frozen.step(ones).gradient_norm == doctest::Approx(std::sqrt(33.0)));
  CHECK(same_bits(parameters[0].weight, make_parameters()[0].weight));
  CHECK(largest_difference(parameters[1].weight, make_parameters()[1].weight.sub(0.5)) < 1e-6);
  const at::Tensor weight = at::ones({4});
  Optimizer decayed({{"w", weight, {}}}, Sgd{.lr = 1, .weight_decay = 0.5}, {{.pattern = "w", .weight_decay = 0.25}});
  decayed.step({at::zeros({4})});
  CHECK(weight[3].item<float>() == 0.75f);
}

TEST_CASE("weights without a gradient stay, and begin their own count of steps later") {
  const auto parameters = make_parameters(), alone = make_parameters();
  Optimizer optimizer(parameters, Adam{}), fresh({alone[1]}, Adam{});
  optimizer.step({make_gradients(0)[0], {}});
  CHECK(same_bits(parameters[1].weight, make_parameters()[1].weight));
  optimizer.step(make_gradients(1));
  fresh.step({make_gradients(1)[1]});
  CHECK(same_bits(parameters[1].weight, alone[1].weight));
}

TEST_CASE("a sparse gradient changes the rows that it names, and their bf16 copies") {
  for (const OptimizerOptions& options : kAll) {
    CAPTURE(options.index());
    const at::Tensor weight = make_normal({50, 7}, 1), copy = weight.to(at::kBFloat16), before = weight.clone();
    Optimizer optimizer({{"table", weight, copy}}, options);
    const at::Tensor rows = at::tensor({3, 9, 3}, at::kLong);
    const at::Tensor gradient = at::sparse_coo_tensor(rows.unsqueeze(0), at::ones({3, 7}), {50, 7});
    if (std::holds_alternative<Adafactor>(options)) {
      EXPECT_ERROR(unsupported, optimizer.step({gradient}), "Adafactor and 8-bit states take no sparse gradients",
                   "'table'");
      continue;
    }
    CHECK(optimizer.step({gradient}).gradient_norm == doctest::Approx(std::sqrt(7 * (4 + 1.0))));
    const at::Tensor changed = weight.ne(before).any(1);
    for (int64_t row = 0; row < 50; ++row) CHECK(changed[row].item<bool>() == (row == 3 || row == 9));
    CHECK(same_bits(copy, weight.to(at::kBFloat16)));
  }
}

TEST_CASE("bf16 copies are the new weights, rounded") {
  for (const OptimizerOptions& options : kAll) {
    auto parameters = make_parameters();
    for (Parameter& parameter : parameters) parameter.bf16_copy = at::zeros(parameter.weight.sizes(), at::kBFloat16);
    Optimizer(parameters, options).step(make_gradients(0));
    for (const Parameter& parameter : parameters) {
      CHECK(same_bits(parameter.bf16_copy, parameter.weight.to(at::kBFloat16)));
    }
  }
}

TEST_CASE("large weights are cut into parts") {
  const at::Tensor weight = make_normal({300, 1001}, 1), exact = weight.to(at::kDouble);
  const at::Tensor gradient = make_normal({300, 1001}, 2);
  Optimizer fast({{"w", weight, {}}}, AdamW{.lr = 0.1}), slow({{"w", exact, {}}}, AdamW{.lr = 0.1});
  CHECK(fast.step({gradient}).gradient_norm == doctest::Approx(slow.step({gradient.to(at::kDouble)}).gradient_norm));
  CHECK(largest_difference(weight, exact) < 1e-6);
}

TEST_CASE("8-bit states take a quarter of the memory and reach the same minimum") {
  const at::Tensor goal = make_normal({100, 77}, 1), small_goal = make_normal({77}, 2);
  for (const OptimizerOptions& options : {OptimizerOptions{AdamW{.lr = 0.05, .weight_decay = 0, .states_8bit = true}},
                                          OptimizerOptions{Adam{.lr = 0.05, .states_8bit = true}}}) {
    const at::Tensor weight = at::zeros({100, 77}), small = at::zeros({77});
    Optimizer optimizer({{"w", weight, {}}, {"small", small, {}}}, options);
    for (int step = 0; step < 400; ++step) optimizer.step({weight.sub(goal), small.sub(small_goal)});
    CHECK(largest_difference(weight, goal) < 0.01);
    const NamedTensors state = optimizer.state();
    CHECK(state[0].second.nbytes() + state[1].second.nbytes() < weight.nbytes() * 0.26);
    CHECK((state[5].second.scalar_type() == at::kFloat));  // "small/exp_avg"
    const at::Tensor copy = weight.clone();
    Optimizer resumed({{"w", copy, {}}, {"small", small.clone(), {}}}, options);
    resumed.restore_state(state);
    const at::Tensor gradient = weight.sub(goal);
    resumed.step({gradient, {}});
    optimizer.step({gradient, {}});
    CHECK(same_bits(weight, copy));
    const at::Tensor sparse =
        at::sparse_coo_tensor(at::tensor({3}, at::kLong).unsqueeze(0), at::ones({1, 77}), {100, 77});
    EXPECT_ERROR(unsupported, optimizer.step({sparse, {}}), "8-bit states take no sparse gradients", "'w'");
  }
}

TEST_CASE("an optimizer refuses what makes no sense") {
  const auto parameters = make_parameters();
  EXPECT_ERROR(invalid_input, Optimizer(parameters, AdamW{.lr = -1}), "lr must be at least 0, not -1");
  EXPECT_ERROR(invalid_input, Optimizer(parameters, Adam{.beta2 = 1}), "beta2", "below 1, not 1");
  EXPECT_ERROR(invalid_input, Optimizer(parameters, Sgd{.nesterov = true}), "nesterov needs a momentum above 0");
  EXPECT_ERROR(invalid_input, Optimizer({parameters[0], parameters[0]}, Adam{}), "two parameters named 'layer.weight'");
  EXPECT_ERROR(invalid_input, Optimizer({parameters[0], {"tied", parameters[0].weight, {}}}, Adam{}), "'tied' is tied");
  EXPECT_ERROR(invalid_input, Optimizer(parameters, Adam{}, {{.pattern = "head.*"}}), "no parameter matches",
               "'head.*'");
  EXPECT_ERROR(invalid_input, Optimizer({{"n", at::zeros({2}, at::kLong), {}}}, Adam{}), "'n' is not a contiguous");
  EXPECT_ERROR(invalid_input, Optimizer({{"w", at::zeros({2}), at::zeros({2})}}, Adam{}), "bf16 copy of 'w'");
  Optimizer optimizer(parameters, Adam{});
  EXPECT_ERROR(invalid_input, optimizer.step({at::zeros({40, 33})}), "1 gradients for 2 parameters");
  EXPECT_ERROR(invalid_input, optimizer.step({at::zeros({3}), {}}), "'layer.weight' has sizes [3]", "[40, 33]");
}
