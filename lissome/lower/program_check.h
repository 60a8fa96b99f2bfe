// Runs a program through lowering and a session in every way that there is, against interpret(); for tests.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lissome/lower.h"

namespace lissome {

inline void check_same(const std::vector<c10::IValue>& seen, const std::vector<c10::IValue>& wanted,
                       double tolerance = 1e-5) {
  REQUIRE(seen.size() == wanted.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!wanted[i].isTensor()) continue;
    REQUIRE(seen[i].isTensor());
    const at::Tensor left = seen[i].toTensor(), right = wanted[i].toTensor();
    REQUIRE((left.sizes() == right.sizes()));
    CHECK((left.scalar_type() == right.scalar_type()));
    if (!right.is_floating_point()) {
      CHECK(at::equal(left, right));
      continue;
    }
    if (right.numel() == 0) continue;
    // As parity is judged: relative to the largest element, since sums that cancel have no digits of their own.
    const double difference = left.sub(right).abs().max().item().toDouble();
    CHECK(difference <= tolerance * right.abs().max().item().toDouble());
  }
}

inline int64_t count_steps(const Plan& plan, std::string_view kernel) {
  return std::ranges::count(plan.steps, kernel, &PlanStep::kernel);
}

// Where libtorch runs a node: what each of our kernels said.
inline std::string list_refusals(const Plan& plan) {
  std::string refusals;
  for (const PlanChoice& choice : plan.choices) {
    if (choice.chosen != "reference") continue;
    for (const PlanCandidate& candidate : choice.candidates)
      refusals += choice.node + " (" + choice.op + ") " + candidate.name + ": " + candidate.refused + "\n";
  }
  return refusals;
}

using Weights = std::vector<std::pair<std::string, at::Tensor>>;

// Lowers without timing, so that our own kernels are taken wherever they accept; `native` says that they took all.
inline void check_program(const char* text, const Weights& weights, const std::vector<c10::IValue>& inputs,
                          bool native = true) {
  set_cache_folder("none");  // what is timed here is timed now
  const Program program = parse_program(text, weights);
  LowerOptions options;
  options.effort = Effort::fast;
  const auto plan = std::make_shared<Plan>(lower_program(program, options));
  CAPTURE(list_refusals(*plan));
  CHECK(plan->needs_reference() != native);
  for (const int threads : {1, 2}) {
    SessionOptions session_options;
    session_options.threads = threads;
    Session session(plan, session_options);
    for (int run = 0; run < 2; ++run) check_same(run_session(session, inputs), interpret(program, inputs));
  }
  // Every other way to run it gives the same.
  options.effort = Effort::normal;
  Session timed(std::make_shared<Plan>(lower_program(program, options)));
  const auto& steps = timed.plan().steps;
  const bool winograd =
      std::any_of(steps.begin(), steps.end(), [](const PlanStep& step) { return step.kernel == "winograd_f32"; });
  // What winograd_f32.h allows itself, which timing alone may choose; an activation that saturates makes it count more.
  check_same(run_session(timed, inputs), interpret(program, inputs), winograd ? 1e-4 : 1e-5);
  options.forced = {{"*", "reference"}};
  Session session(std::make_shared<Plan>(lower_program(program, options)));
  check_same(run_session(session, inputs), interpret(program, inputs));
}

}  // namespace lissome
