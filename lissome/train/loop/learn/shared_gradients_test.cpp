// Gradients of parts of different weight become the mean over all samples, with the same bits on every rank.
#include "lissome/train/loop/learn/shared_gradients.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/run_ranks.h"

using namespace lissome;

namespace {

struct Seen {
  UpdatePart all;
  std::vector<at::Tensor> gradients;
  at::Tensor state;
  bool interrupted = false;
};

at::Tensor make_gradient(double value) { return at::full({2, 3}, value, at::kFloat); }

// What each rank has after a sum of its `parts`; a rank's gradients are full of its number + 1.
std::vector<Seen> sum_on_ranks(const std::vector<UpdatePart>& parts, Dtype dtype = Dtype::f32) {
  std::vector<Seen> seen(parts.size());
  const std::vector<std::string> errors = run_ranks(static_cast<int>(parts.size()), 20, [&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    const at::Tensor state = at::full({2}, static_cast<double>(rank), at::kDouble);
    SharedGradients shared(group, DenseGradients{dtype}, nullptr, {{"a", at::zeros({2, 3})}, {"b", at::zeros({4})}},
                           {state});
    std::vector<at::Tensor> gradients;  // the second parameter has none
    if (parts[rank].samples > 0) gradients = {make_gradient(static_cast<double>(rank) + 1), at::Tensor()};
    shared.begin(parts[rank], 1, {});
    seen[rank].all = shared.finish(gradients, parts[rank]);
    shared.share_state(1);
    for (const at::Tensor& gradient : shared.gradients())
      seen[rank].gradients.push_back(gradient.defined() ? gradient.clone() : at::Tensor());
    seen[rank].state = state, seen[rank].interrupted = shared.last().interrupted;
  });
  for (const std::string& error : errors) CHECK(error == "");
  return seen;
}

}  // namespace

TEST_CASE("parts are weighted, a rank without samples counts for nothing, and all see one update") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    const std::vector<Seen> seen = sum_on_ranks({{.loss = 2, .weight = 3, .samples = 4},
                                                 {},
                                                 {.loss = 6, .weight = 1, .samples = 2, .interrupted = true},
                                                 {.loss = nan, .weight = 0, .samples = 5}},
                                                dtype);
    for (const Seen& rank : seen) {
      CHECK(rank.all.loss == 3);
      CHECK(rank.all.weight == 4);
      CHECK(rank.all.samples == 11);
      CHECK(rank.interrupted);
      REQUIRE(rank.gradients.size() == 2);
      CHECK(rank.gradients[0].equal(make_gradient(1 * 0.75 + 3 * 0.25)));
      CHECK_FALSE(rank.gradients[1].defined());
      CHECK(rank.state.equal(at::full({2}, 0.0, at::kDouble)));
    }
  }
}

TEST_CASE("a loss over no labels at all is no number on every rank") {
  for (const Seen& rank :
       sum_on_ranks({{.loss = 1, .weight = 0, .samples = 1}, {.loss = 1, .weight = 0, .samples = 1}})) {
    CHECK(std::isnan(rank.all.loss));
    CHECK(rank.gradients[0].equal(make_gradient(0)));
    CHECK_FALSE(rank.gradients[1].defined());
    CHECK_FALSE(rank.interrupted);
  }
}
