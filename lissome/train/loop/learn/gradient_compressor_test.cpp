// Compressed gradients: what is sent and what is kept add up to what was there, ranks get the same bits, and state
// continues.
#include "lissome/train/loop/learn/gradient_compressor.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>

#include "lissome/train/loop/learn/shared_gradients.h"
#include "lissome/train/loop/learn/top_k_compressor.h"
#include "tests/run_ranks.h"

using namespace lissome;

namespace {

using Gradients = std::vector<at::Tensor>;

// A matrix, a convolution's weight and a bias, which travels as it is.
NamedTensors make_parameters() {
  return {{"bias", at::zeros({40})}, {"matrix", at::zeros({60, 50})}, {"conv", at::zeros({16, 8, 3, 3})}};
}

Gradients make_gradients(int rank, int64_t step) {
  const at::Generator random = at::detail::createCPUGenerator(static_cast<uint64_t>(rank * 1000 + step));
  Gradients gradients;
  for (const auto& [name, parameter] : make_parameters())
    gradients.push_back(at::randn(parameter.sizes(), random, at::kFloat));
  return gradients;
}

SharedGradients share(Group& group, const GradientCompression& compression, const OptimizerOptions& optimizer = AdamW{},
                      double clip_norm = 0) {
  const NamedTensors parameters = make_parameters();
  return {group, compression, make_compressor(compression, parameters, {optimizer, {}, clip_norm}), parameters, {}};
}

constexpr UpdatePart kPart = {.loss = 1, .weight = 2, .samples = 2};

void update(SharedGradients& shared, const Gradients& gradients, const UpdatePart& part, int64_t step) {
  shared.begin(part, step, {});
  shared.finish(gradients, part);
}

// Runs `work` as each rank; a failure of any is one of the test.
void run(int ranks, const std::function<void(Group&)>& work) {
  for (const std::string& error : run_ranks(ranks, 20, work)) CHECK(error == "");
}

Gradients copy(const Gradients& tensors) {
  Gradients copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

// The updates of steps 1 to `steps` on each rank. `make` gives the gradients of a rank.
std::vector<std::vector<Gradients>> sum_steps(int ranks, int64_t steps, const GradientCompression& compression,
                                              const std::function<Gradients(int, int64_t)>& make,
                                              const OptimizerOptions& optimizer = AdamW{}, double clip_norm = 0) {
  std::vector<std::vector<Gradients>> seen(static_cast<size_t>(ranks));
  run(ranks, [&](Group& group) {
    SharedGradients shared = share(group, compression, optimizer, clip_norm);
    for (int64_t step = 1; step <= steps; ++step) {
      update(shared, make(group.rank(), step), kPart, step);
      seen[static_cast<size_t>(group.rank())].push_back(copy(shared.gradients()));
    }
  });
  for (const auto& of_rank : seen) {
    for (size_t step = 0; step < of_rank.size(); ++step) {
      for (size_t i = 0; i < of_rank[step].size(); ++i) CHECK(of_rank[step][i].equal(seen[0][step][i]));
    }
  }
  return seen;
}

bool is_close(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  const at::Tensor exact = b.to(at::kDouble);
  return a.to(at::kDouble).sub(exact).norm().item<double>() <= tolerance * exact.norm().item<double>();
}

at::Tensor mean_over_ranks(int ranks, const std::function<at::Tensor(int)>& of_rank) {
  at::Tensor sum = of_rank(0).clone();
  for (int rank = 1; rank < ranks; ++rank) sum.add_(of_rank(rank));
  return sum.div_(ranks);
}

}  // namespace

TEST_CASE("powersgd gives gradients of a rank as low as its own exactly") {
  const auto make = [](int rank, int64_t step) {
    Gradients gradients = make_gradients(rank, step);
    // The same columns on all ranks: the mean has rank 2 too.
    const at::Generator random = at::detail::createCPUGenerator(static_cast<uint64_t>(step));
    gradients[1] = at::mm(at::randn({60, 2}, random, at::kFloat), gradients[1].narrow(0, 0, 2));
    return gradients;
  };
  const auto seen = sum_steps(3, 3, PowerSgdGradients{.rank = 3, .dense_steps = 0}, make);
  for (int64_t step = 1; step <= 3; ++step) {
    const Gradients& sums = seen[0][static_cast<size_t>(step - 1)];
    for (const size_t whole : {size_t{0}, size_t{1}}) {
      const at::Tensor mean = mean_over_ranks(3, [&](int rank) { return make(rank, step)[whole]; });
      CHECK(is_close(sums[whole], mean, 1e-5));
    }
    const at::Tensor conv = mean_over_ranks(3, [&](int rank) { return make(rank, step)[2]; });
    CHECK_FALSE(is_close(sums[2], conv, 0.1));
  }
}

TEST_CASE("powersgd takes gradients that are tiny, huge or zero") {
  for (const double scale : {1e-25, 1e25, 0.0}) {
    const auto make = [&](int rank, int64_t step) {
      Gradients gradients = make_gradients(rank, step);
      gradients[1] = at::mm(at::full({60, 1}, scale, at::kFloat), gradients[1].narrow(0, 0, 1));
      return gradients;
    };
    const auto seen = sum_steps(2, 2, PowerSgdGradients{.rank = 2, .dense_steps = 0}, make);
    CHECK(is_close(seen[0][1][1], mean_over_ranks(2, [&](int rank) { return make(rank, 2)[1]; }), 1e-5));
  }
}

TEST_CASE("what compression does not send comes later: steps and what is kept add up to all gradients") {
  constexpr int kRanks = 3;
  constexpr int64_t kSteps = 12;
  for (const GradientCompression& compression : {GradientCompression(TopKGradients{.share = 0.05, .dense_steps = 2}),
                                                 GradientCompression(PowerSgdGradients{.rank = 2, .dense_steps = 2})}) {
    CAPTURE(describe_compression(compression));
    std::vector<Gradients> sent(kRanks);
    Gradients kept;  // of all ranks
    run(kRanks, [&](Group& group) {
      SharedGradients shared = share(group, compression);
      const auto rank = static_cast<size_t>(group.rank());
      for (const auto& [name, parameter] : make_parameters()) sent[rank].push_back(at::zeros(parameter.sizes()));
      for (int64_t step = 1; step <= kSteps; ++step) {
        update(shared, make_gradients(group.rank(), step), kPart, step);
        for (size_t i = 0; i < sent[rank].size(); ++i) sent[rank][i].add_(shared.gradients()[i]);
      }
      for (const auto& [name, tensor] : shared.collect(kSteps)) {
        if (rank == 0 && name.starts_with("rank ")) kept.push_back(tensor);
      }
    });
    REQUIRE(kept.size() == 2 * kRanks);  // of matrix and conv
    for (size_t i = 0; i < sent[0].size(); ++i) {
      at::Tensor all = at::zeros(sent[0][i].sizes());
      for (int64_t step = 1; step <= kSteps; ++step)
        all.add_(mean_over_ranks(kRanks, [&](int rank) { return make_gradients(rank, step)[i]; }));
      at::Tensor there = sent[0][i].clone();
      for (size_t rank = 0; i > 0 && rank < kRanks; ++rank)
        there.add_(kept[(i - 1) * kRanks + rank].view(there.sizes()));
      CHECK(is_close(there, all, 1e-5));
    }
  }
}

TEST_CASE("top-k sends the largest elements of large gradients, whole gradients of small ones") {
  const auto make = [](int, int64_t step) { return make_gradients(0, step); };  // the same on each rank
  const Gradients sent = sum_steps(2, 1, TopKGradients{.share = 0.01, .dense_steps = 0}, make)[0][0];
  const Gradients all = make(0, 1);
  CHECK(sent[0].equal(all[0]));
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const int64_t count = std::llround(static_cast<double>(all[i].numel()) * 0.01);
    const at::Tensor chosen = sent[i].ne(0);
    CHECK(chosen.sum().item<int64_t>() == count);
    CHECK(all[i].masked_select(chosen).equal(sent[i].masked_select(chosen)));
    CHECK(all[i].abs().masked_select(chosen).min().item<float>() >=
          all[i].abs().masked_select(chosen.logical_not()).max().item<float>());
  }
}

TEST_CASE("the dense steps of top-k are those of SGD with momentum, nesterov and clipping included") {
  for (const bool nesterov : {false, true}) {
    const Sgd sgd = {.lr = 0.1, .momentum = 0.9, .nesterov = nesterov};
    run(1, [&](Group& group) {
      const NamedTensors parameters = make_parameters();
      SharedGradients shared = share(group, TopKGradients{.share = 0.01, .dense_steps = 5}, sgd, 1);
      std::vector<Parameter> ours, theirs;
      for (const auto& [name, tensor] : parameters) {
        ours.push_back({name, tensor.clone(), {}});
        theirs.push_back({name, tensor.clone(), {}});
      }
      Optimizer optimizer(ours, sgd), reference(theirs, sgd);
      for (int64_t step = 1; step <= 5; ++step) {
        StepOptions options = {.clip_norm = 1};
        reference.step(make_gradients(0, step), options);
        update(shared, make_gradients(0, step), kPart, step);
        shared.adjust(options);
        optimizer.step(shared.gradients(), options);
      }
      for (size_t i = 0; i < ours.size(); ++i) CHECK(is_close(ours[i].weight, theirs[i].weight, 1e-5));
    });
  }
}

TEST_CASE("a step with NaN or infinity on one rank is seen by all and leaves what is kept") {
  for (const GradientCompression& compression : {GradientCompression(TopKGradients{.share = 0.05, .dense_steps = 0}),
                                                 GradientCompression(PowerSgdGradients{.rank = 2, .dense_steps = 0})}) {
    run(2, [&](Group& group) {
      SharedGradients shared = share(group, compression);
      update(shared, make_gradients(group.rank(), 1), kPart, 1);
      NamedTensors before;
      for (const auto& [name, tensor] : shared.collect(1)) before.emplace_back(name, tensor.clone());
      Gradients bad = make_gradients(group.rank(), 2);
      if (group.rank() == 1) bad[1][3][4] = std::numeric_limits<float>::infinity();
      update(shared, bad, kPart, 2);
      CHECK(shared.gradients()[1][3][4].item<float>() == std::numeric_limits<float>::infinity());
      const NamedTensors after = shared.collect(2);
      CHECK(after.size() == before.size());
      CHECK(after.empty() == (group.rank() != 0 && std::holds_alternative<TopKGradients>(compression)));
      for (size_t i = 0; i < before.size(); ++i) CHECK(after[i].second.equal(before[i].second));
    });
  }
}

TEST_CASE("a restored state continues with the same bits; other ranks share it") {
  const Sgd sgd = {.momentum = 0.9};
  for (const GradientCompression& compression : {GradientCompression(TopKGradients{.share = 0.05, .dense_steps = 1}),
                                                 GradientCompression(PowerSgdGradients{.rank = 2, .dense_steps = 1})}) {
    CAPTURE(describe_compression(compression));
    NamedTensors state;
    std::mutex mutex;
    const auto whole = sum_steps(2, 8, compression, make_gradients, sgd);
    run(2, [&](Group& group) {
      SharedGradients shared = share(group, compression, sgd);
      for (int64_t step = 1; step <= 4; ++step) update(shared, make_gradients(group.rank(), step), kPart, step);
      const NamedTensors collected = shared.collect(4);
      const std::lock_guard lock(mutex);
      if (group.rank() == 0) {
        for (const auto& [name, tensor] : collected) state.emplace_back(name, tensor.clone());
      }
    });
    run(2, [&](Group& group) {
      SharedGradients shared = share(group, compression, sgd);
      shared.restore(state);
      for (int64_t step = 5; step <= 8; ++step) {
        update(shared, make_gradients(group.rank(), step), kPart, step);
        for (size_t i = 0; i < shared.gradients().size(); ++i)
          CHECK(shared.gradients()[i].equal(whole[0][static_cast<size_t>(step - 1)][i]));
      }
    });
    run(3, [&](Group& group) {
      SharedGradients shared = share(group, compression, sgd);
      shared.restore(state);
      const NamedTensors now = shared.collect(4);
      const auto sum_of = [](const NamedTensors& entries, const std::string& name) {
        at::Tensor sum = at::zeros({1});
        for (const auto& [own, tensor] : entries) {
          if (own.ends_with(name)) sum = sum.add(tensor);
        }
        return sum;
      };
      for (const auto& [name, tensor] : state) {
        const std::string end = name.substr(name.find('/'));
        if (group.rank() == 0) CHECK(is_close(sum_of(now, end), sum_of(state, end), 1e-6));
      }
      NamedTensors other = state;
      other.back().second = at::zeros({7});
      CHECK_THROWS_WITH_AS(shared.restore(other), doctest::Contains("has sizes [7]"), Error);
      other.pop_back();  // of rank 1
      CHECK_THROWS_WITH_AS(shared.restore(other), doctest::Contains("has no state of compression"), Error);
    });
  }
}

TEST_CASE("a function of the user's sums gradients") {
  // Signs alone travel, with the mean magnitude of each rank.
  const GradientCompression signs = [](Group& group, const at::Tensor& gradients, int64_t) {
    const at::Tensor message = at::sign(gradients).mul_(gradients.abs().mean());
    gradients.zero_();
    for (const at::Tensor& of_rank : group.gather(message, "signs")) gradients.add_(of_rank);
  };
  const auto seen = sum_steps(2, 1, signs, make_gradients);
  CHECK(describe_compression(signs) == "a function");
  for (const at::Tensor& gradient : seen[0][0]) {
    CHECK(gradient.abs().max().item<double>() == doctest::Approx(std::sqrt(2 / std::numbers::pi)).epsilon(0.02));
  }
}

TEST_CASE("what would not be smaller travels as it is") {
  CHECK(count_top_elements(1000, 0.01) == 0);
  CHECK(count_top_elements(2000, 0.01) == 20);
  CHECK(count_top_elements(2000, 1e-9) == 1);
  CHECK(count_top_elements(2000, 0.4995) == 999);
  CHECK(count_top_elements(2000, 0.5) == 0);
  const auto bytes_of = [](const GradientCompression& compression) {
    return make_compressor(compression, make_parameters(), {AdamW{}, {}, 0})->count_bytes();
  };
  CHECK(bytes_of(TopKGradients{.share = 1}) == 0);
  CHECK(bytes_of(PowerSgdGradients{.rank = 40}) == 0);
  CHECK(bytes_of(PowerSgdGradients{.rank = 20}) == (60 + 50) * 20 * 4);  // 16 by 72 is not smaller
}

TEST_CASE("options out of range and optimizers that compression excludes are refused") {
  const auto make = [](const GradientCompression& compression, const OptimizerOptions& optimizer = AdamW{},
                       const std::vector<ParameterGroup>& groups = {}) {
    make_compressor(compression, make_parameters(), {optimizer, groups, 1});
  };
  CHECK_THROWS_AS(make(TopKGradients{.share = 0}), Error);
  CHECK_THROWS_AS(make(TopKGradients{.share = 1.5}), Error);
  CHECK_THROWS_AS(make(TopKGradients{.share = std::numeric_limits<double>::quiet_NaN()}), Error);
  CHECK_THROWS_AS(make(PowerSgdGradients{.rank = 0}), Error);
  CHECK_THROWS_AS(make(TopKGradients{}, Lion{}), Error);
  CHECK_THROWS_AS(make(TopKGradients{}, Sgd{.momentum = 0.9, .weight_decay = 0.1}), Error);
  CHECK_THROWS_AS(make(TopKGradients{}, Sgd{.momentum = 0.9, .dampening = 0.1}), Error);
  const ParameterGroup decays = {.pattern = "matrix", .weight_decay = 0.1};
  CHECK_THROWS_AS(make(TopKGradients{}, Sgd{.momentum = 0.9}, {decays}), Error);
  CHECK_NOTHROW(make(TopKGradients{}, Sgd{}, {decays}));
  CHECK_NOTHROW(make(TopKGradients{}, Sgd{.weight_decay = 0.1}));
  CHECK_NOTHROW(make(PowerSgdGradients{}, Lion{}));
}
