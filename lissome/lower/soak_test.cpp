// A session that sees a new shape with nearly every run keeps neither memory nor wrong plans.
#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "lissome/lower.h"

using namespace lissome;

namespace {

int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

Program make_block() {
  return parse_program(
      R"(
    dim batch in 1..16
    dim seq in 1..96
    input %x: f32[batch, seq, 48]
    parameter @norm: f32[48]
    parameter @up: f32[192, 48]
    parameter @down: f32[48, 192]
    %0: f32[batch, seq, 48] = aten::layer_norm(%x, [48], @norm)
    %1: f32[batch, seq, 192] = lissome::linear_act(%0, @up, none, "gelu")
    %2: f32[batch, seq, 48] = lissome::linear_act(%1, @down, none, "none", residual=%x)
    %3: f32[batch, seq, 48] = aten::softmax.int(%2, -1)
    %4: f32[batch, seq, 48] = aten::mul.Tensor(%3, %2)
    %5: f32[batch, 48] = aten::mean.dim(%4, [1])
    return %4, %5
  )",
      {{"norm", at::randn({48})}, {"up", at::randn({192, 48}).div(7)}, {"down", at::randn({48, 192}).div(14)}});
}

}  // namespace

TEST_CASE("10,000 random shapes leave the memory of the first 500") {
  const Program program = make_block();
  LowerOptions options;
  options.effort = Effort::fast;
  const auto plan = std::make_shared<Plan>(lower_program(program, options));
  REQUIRE(!plan->needs_reference());
  Session session(plan);
  std::mt19937 random(1);
  const auto pick = [&](unsigned most) { return 1 + static_cast<int64_t>(random() % most); };
  const at::Tensor source = at::randn({16 * 96, 48});
  const auto pick_input = [&] {
    const int64_t batch = pick(16), seq = pick(96);
    return source.narrow(0, 0, batch * seq).view({batch, seq, 48});
  };
  int64_t after_first = 0;
  for (int run = 0; run < 10'000; ++run) {
    run_session(session, {pick_input()});
    if (run == 500) after_first = resident_bytes();
  }
  const int64_t after_all = resident_bytes();
  INFO("resident bytes: ", after_first, " after 500 shapes, ", after_all, " after 10,000");
  CHECK(static_cast<double>(after_all) <= 1.02 * static_cast<double>(after_first));
  for (int run = 0; run < 20; ++run) {
    const at::Tensor x = pick_input();
    const auto seen = run_session(session, {x}), wanted = interpret(program, {x});
    for (size_t i = 0; i < 2; ++i) {
      const at::Tensor left = seen[i].toTensor(), right = wanted[i].toTensor();
      REQUIRE((left.sizes() == right.sizes()));
      CHECK(left.sub(right).abs().max().item().toDouble() <= 1e-5 * right.abs().max().item().toDouble());
    }
  }
}
