// Gradients that leave a step early have the sums of gradients that are summed after it, with the same bits on every
// rank.
#include "lissome/train/loop/learn/early_gradients.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "lissome/train/loop/learn/shared_gradients.h"
#include "tests/run_ranks.h"

using namespace lissome;

namespace {

NamedTensors make_four() {
  return {{"a", at::zeros({30, 7})}, {"b", at::zeros({40})}, {"c", at::zeros({5, 8, 3})}, {"d", at::zeros({11})}};
}

const std::vector<size_t> kOrder = {2, 0, 3, 1};

// The last parameter has no gradient.
std::vector<at::Tensor> draw_four(int rank, int64_t step) {
  const at::Generator random = at::detail::createCPUGenerator(static_cast<uint64_t>(rank * 1000 + step));
  std::vector<at::Tensor> gradients;
  for (const auto& [name, parameter] : make_four())
    gradients.push_back(at::randn(parameter.sizes(), random, at::kFloat));
  gradients.back() = at::Tensor();
  return gradients;
}

UpdatePart run_step(EarlyGradients& exchange, const std::vector<at::Tensor>& gradients, UpdatePart part, int64_t step) {
  const double loss = std::exchange(part.loss, 0.0);
  exchange.begin(part, step, {});
  std::vector<at::Tensor> stayed = gradients;
  for (const size_t parameter : kOrder) {
    if (parameter == 1 || gradients.empty() || !gradients[parameter].defined()) continue;  // that of b stays
    exchange.take(parameter, std::exchange(stayed[parameter], at::Tensor()));
  }
  part.loss = loss;
  return exchange.finish(stayed, part);
}

void run_on(int ranks, const std::function<void(Group&)>& work) {
  for (const std::string& error : run_ranks(ranks, 20, work)) CHECK(error == "");
}

bool matches(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return tolerance == 0 ? a.equal(b) : a.allclose(b, tolerance, tolerance * 0.1);
}

// Part 1 has no samples, and part 2 no label that counts, where there are so many ranks.
UpdatePart make_part(int rank) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<UpdatePart> parts = {{.loss = 2, .weight = 3, .samples = 4, .save_due = true},
                                         {},
                                         {.loss = nan, .weight = 0, .samples = 5},
                                         {.loss = 6, .weight = 1, .samples = 2, .interrupted = true}};
  return parts[static_cast<size_t>(rank)];
}

}  // namespace

TEST_CASE("early sums are those after the step, in buckets of any size and type") {
  for (const int ranks : {1, 2, 4}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
      for (const int64_t bucket : {1, 300, 1 << 20}) {
        run_on(ranks, [&](Group& group) {
          EarlyGradients early(group, dtype, bucket, make_four(), kOrder, {});
          SharedGradients after(group, DenseGradients{dtype}, nullptr, make_four(), {});
          for (int64_t step = 1; step <= 3; ++step) {
            const UpdatePart part = make_part(group.rank());
            const std::vector<at::Tensor> gradients =
                part.samples > 0 ? draw_four(group.rank(), step) : std::vector<at::Tensor>();
            const UpdatePart all = run_step(early, gradients, part, step);
            after.begin(part, step, {});
            const UpdatePart expected = after.finish(gradients, part);
            CHECK(all.loss == doctest::Approx(expected.loss));
            CHECK(all.weight == expected.weight);
            CHECK(all.samples == expected.samples);
            CHECK(all.interrupted == (ranks == 4));
            CHECK(all.save_due);
            // Sums of more than two numbers are rounded in the order that Gloo takes for the size of a bucket.
            const double tolerance = ranks <= 2 ? 0 : dtype == Dtype::f32 ? 1e-6 : 2e-2;
            for (size_t i = 0; i < 4; ++i) CHECK(matches(early.gradients()[i], after.gradients()[i], tolerance));
            CHECK_FALSE(early.gradients()[3].defined());
            for (const at::Tensor& gradient : early.gradients()) {
              if (!gradient.defined()) continue;
              for (const at::Tensor& other : group.gather(gradient.contiguous(), "a check"))
                CHECK(other.equal(gradient));
            }
          }
        });
      }
    }
  }
}

TEST_CASE("no label counts on any rank") {
  run_on(2, [](Group& group) {
    EarlyGradients early(group, Dtype::f32, 1, make_four(), kOrder, {});
    const UpdatePart none = {.loss = std::numeric_limits<double>::quiet_NaN(), .weight = 0, .samples = 3};
    const UpdatePart all = run_step(early, draw_four(group.rank(), 1), none, 1);
    CHECK(std::isnan(all.loss));
    for (size_t i = 0; i < 3; ++i) CHECK(early.gradients()[i].eq(0).all().item<bool>());
    CHECK_FALSE(early.gradients()[3].defined());
  });
}

TEST_CASE("the step of the cut gives the right sums, also to a rank without samples and in another order") {
  run_on(2, [](Group& group) {
    EarlyGradients early(group, Dtype::f32, std::nullopt, make_four(), kOrder, {});
    const UpdatePart part = {.loss = 1, .weight = 1, .samples = 1};
    for (int64_t step = 1; step <= 5; ++step) {
      const bool idle = group.rank() == 1 && step % 2 == 1;  // the cut is made before step 3
      const std::vector<at::Tensor> gradients = draw_four(group.rank(), step);
      if (idle) {
        run_step(early, {}, {}, step);
      } else if (group.rank() == 1) {
        early.begin(part, step, {});
        for (const size_t parameter : {size_t{0}, size_t{1}, size_t{2}}) early.take(parameter, gradients[parameter]);
        early.finish(std::vector<at::Tensor>(4), part);
      } else {
        run_step(early, gradients, part, step);
      }
      for (size_t i = 0; i < 3; ++i) {
        const at::Tensor first = draw_four(0, step)[i];
        const at::Tensor mean = step % 2 == 1 ? first : first.add(draw_four(1, step)[i]).mul(0.5);
        CHECK(matches(early.gradients()[i], mean, 1e-6));
      }
    }
  });
}

TEST_CASE("a measured cut is that of rank 0 on all ranks, and a snapshot keeps it") {
  NamedTensors state;
  run_on(3, [&](Group& group) {
    EarlyGradients early(group, Dtype::f32, std::nullopt, make_four(), kOrder, {});
    const UpdatePart part = {.loss = 1, .weight = 1, .samples = 1};
    CHECK(early.collect(0).empty());
    std::string note;
    for (int64_t step = 1; step <= 4; ++step) {
      run_step(early, draw_four(group.rank(), step), part, step);
      note += early.take_note();
    }
    CHECK(note.find("gradients leave in ") == 0);
    const NamedTensors own = early.collect(4);
    REQUIRE(own.size() == 1);
    for (const at::Tensor& other : group.gather(own[0].second, "a check")) CHECK(other.equal(own[0].second));
    if (group.rank() == 0) state = own;
  });
  run_on(2, [&](Group& group) {
    EarlyGradients early(group, Dtype::f32, std::nullopt, make_four(), kOrder, {});
    early.restore(state);
    CHECK(early.collect(4)[0].second.equal(state[0].second));
    const NamedTensors kept = early.collect(4);
    for (const at::Tensor& wrong : {at::tensor({9}), at::tensor({3, 3, 4}), at::tensor({-1, 4}), at::zeros({2})}) {
      CHECK_THROWS_WITH_AS(early.restore({{"bucket_ends", wrong}}), doctest::Contains("does not cut 4"), Error);
      CHECK(early.collect(4)[0].second.equal(kept[0].second));
    }
  });
}

TEST_CASE("an order that differs between ranks is harmless") {
  run_on(2, [](Group& group) {
    EarlyGradients early(group, Dtype::f32, 1, make_four(), kOrder, {});
    const UpdatePart part = {.loss = 1, .weight = 1, .samples = 1};
    const std::vector<at::Tensor> gradients = draw_four(group.rank(), 1);
    early.begin(part, 1, {});
    std::vector<size_t> order = {0, 1, 2};
    if (group.rank() == 1) order = {2, 1, 0};
    for (const size_t parameter : order) early.take(parameter, gradients[parameter]);
    early.finish(std::vector<at::Tensor>(4), part);
    for (size_t i = 0; i < 3; ++i) {
      const at::Tensor mean = draw_four(0, 1)[i].add(draw_four(1, 1)[i]).mul(0.5);
      CHECK(matches(early.gradients()[i], mean, 1e-6));
    }
  });
}
