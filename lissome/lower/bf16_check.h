// Runs a bf16 program through lowering and a session, on every level of instruction sets, beside the same program in
// f32; for tests. Fused nodes round once where the program rounds after each step, so that f32 is the judge: ours may
// be no further from it than twice what PyTorch's own bf16 is.
#pragma once

#include <ATen/core/ivalue.h>
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "lissome/lower.h"
#include "lissome/lower/program_check.h"

namespace lissome {

inline Program parse_as(const std::string& text, const std::string& dtype) {
  return parse_program(std::regex_replace(text, std::regex("DTYPE"), dtype));
}

// The root of the mean square: the largest of few errors is a matter of chance.
inline double measure_error(const c10::IValue& seen, const c10::IValue& wanted) {
  const at::Tensor difference = seen.toTensor().to(at::kDouble).sub(wanted.toTensor().to(at::kDouble));
  return std::sqrt(difference.square().mean().item().toDouble());
}

inline std::shared_ptr<const Plan> lower_natively(const Program& program) {
  LowerOptions options;
  options.effort = Effort::fast;
  const auto plan = std::make_shared<const Plan>(lower_program(program, options));
  CAPTURE(list_refusals(*plan));
  REQUIRE(!plan->needs_reference());
  return plan;
}

// `text` says DTYPE where its dtype is one or the other; `inputs` are f32, of values that bf16 has.
inline void check_beside_f32(const std::string& text, const std::vector<c10::IValue>& inputs) {
  const Program program = parse_as(text, "bf16"), exact = parse_as(text, "f32");
  const auto theirs = interpret(program, inputs), truth = interpret(exact, inputs);
  for (const char* level : {"none", "avx2", "avx512", "vnni", "bf16", "amx"}) {
    CAPTURE(std::string(level));
    mask_features(level);
    for (const int threads : {1, 2}) {
      SessionOptions session_options;
      session_options.threads = threads;
      Session session(lower_natively(program), session_options);
      const auto seen = run_session(session, inputs);
      REQUIRE(seen.size() == theirs.size());
      for (size_t i = 0; i < seen.size(); ++i) {
        CAPTURE(i);
        CHECK((seen[i].toTensor().scalar_type() == theirs[i].toTensor().scalar_type()));
        // What is f32 there may be exact.
        CHECK(measure_error(seen[i], truth[i]) <= 2 * measure_error(theirs[i], truth[i]) + 1e-6);
      }
    }
  }
  mask_features("amx");
}

}  // namespace lissome
