// Programs through lowering and a session, against interpret().
#include "lissome/lower.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <cstdio>

using namespace lissome;

namespace {

void check_same(const std::vector<c10::IValue>& seen, const std::vector<c10::IValue>& wanted) {
  REQUIRE(seen.size() == wanted.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!wanted[i].isTensor()) continue;
    REQUIRE(seen[i].isTensor());
    const at::Tensor left = seen[i].toTensor(), right = wanted[i].toTensor();
    REQUIRE((left.sizes() == right.sizes()));
    CHECK((left.scalar_type() == right.scalar_type()));
    CHECK(at::allclose(left, right, 1e-4, 1e-5, true));
  }
}

Program make_mlp() {
  return parse_program(R"(
    input %x: f32[batch, 30]
    parameter @first.weight: f32[70, 30]
    parameter @first.bias: f32[70]
    parameter @second.weight: f32[10, 70]
    %1: f32[batch, 70] = aten::linear(%x, @first.weight, @first.bias)
    %2: f32[batch, 70] = aten::relu(%1)
    %3: f32[batch, 10] = aten::linear(%2, @second.weight)
    %4: f32[batch, 10] = aten::softmax.int(%3, -1)
    return %4
  )", {{"first.weight", at::randn({70, 30})}, {"first.bias", at::randn({70})}, {"second.weight", at::randn({10, 70})}});
}

}  // namespace

TEST_CASE("a program with native and reference steps agrees with interpret, for several batch sizes") {
  const Program program = make_mlp();
  const auto plan = std::make_shared<Plan>(lower_program(program));
  CHECK(plan->needs_reference());
  Session session(plan);
  for (const int64_t batch : {1, 5, 64, 5}) {
    const std::vector<c10::IValue> inputs = {at::randn({batch, 30})};
    check_same(run_session(session, inputs), interpret(program, inputs));
  }
}

TEST_CASE("a saved plan runs as before") {
  const Program program = make_mlp();
  const Plan plan = lower_program(program);
  const std::string path = std::string(LISSOME_BINARY_DIR) + "/lower_test.lissome";
  save_prepared(program, plan, path);
  Session session = Session::load(path);
  const std::vector<c10::IValue> inputs = {at::randn({3, 30})};
  check_same(run_session(session, inputs), interpret(program, inputs));
  CHECK(print_plan(session.plan()) == print_plan(plan));
  std::remove(path.c_str());
}
