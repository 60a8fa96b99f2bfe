// Liveness over roots: a view keeps the memory that it lies in, and so does a tensor of libtorch that may alias it.
#include <algorithm>
#include <ranges>

#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {

std::vector<bool> find_direct_outputs(const Plan& plan) {
  std::vector<bool> direct(plan.values.size(), false);
  for (const PlanOutput& output : plan.outputs) {
    if (!is_value(output.value) || output.leaves_after >= 0) continue;
    const PlanValue& value = plan.value(output.value);
    if (value.storage == Storage::arena && value.format == Format::row_major) {
      direct[static_cast<size_t>(output.value)] = true;
    }
  }
  return direct;
}

namespace {

// Whatever is last read from a value is last read from those whose memory it may lie in: from what a view views, and
// from all operands of a step of libtorch whose results may be aliases. Steps from the last to the first, so that a
// chain of aliases takes one pass however long it is.
void pass_to_roots(const Plan& plan, std::vector<int>& last) {
  const auto pass = [&](PlanValueId from, PlanValueId to) {
    if (is_value(to))
      last[static_cast<size_t>(to)] = std::max(last[static_cast<size_t>(to)], last[static_cast<size_t>(from)]);
  };
  for (const PlanStep& step : std::views::reverse(plan.steps)) {
    for (const PlanValueId result : step.results) {
      const Storage storage = plan.value(result).storage;
      if (storage == Storage::view) pass(result, find_viewed(step));
      if (storage != Storage::held || !step.keeps_operands) continue;
      for (const PlanValueId operand : step.operands) pass(result, operand);
    }
  }
  for (size_t i = 0; i < last.size(); ++i) {
    if (plan.values[i].storage != Storage::arena) last[i] = -1;
  }
}

}  // namespace

Lifetimes find_lifetimes(const Plan& plan) {
  const size_t count = plan.values.size();
  Lifetimes lifetimes{std::vector<int>(count, -1), std::vector<int>(count, -1), std::vector<int>(count, -1)};
  const auto touch = [&](PlanValueId value, int step) {
    int& last = lifetimes.last[static_cast<size_t>(value)];
    last = std::max(last, step);
  };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    const int now = static_cast<int>(i);
    for (const PlanValueId operand : step.operands) {
      if (is_value(operand)) touch(operand, now);
    }
    for (const PlanValueId result : step.results) {
      if (plan.value(result).storage != Storage::arena) continue;
      lifetimes.first[static_cast<size_t>(result)] = now;
      touch(result, now);
    }
  }
  const int end = static_cast<int>(plan.steps.size());
  for (const PlanOutput& output : plan.outputs) {
    if (!is_value(output.value)) continue;
    touch(output.value, output.leaves_after >= 0 ? output.leaves_after : end);
    int& given = lifetimes.given[static_cast<size_t>(output.value)];
    given = std::max(given, output.leaves_after);
  }
  for (const PlanWrite& write : plan.writes) touch(write.value, end);
  pass_to_roots(plan, lifetimes.last);
  pass_to_roots(plan, lifetimes.given);
  return lifetimes;
}

namespace {

// The value that owns the memory of each value: itself, or what a chain of views leads to.
std::vector<PlanValueId> find_view_owners(const Plan& plan) {
  std::vector<PlanValueId> owners = plan.value_ids();
  for (const PlanStep& step : plan.steps) {
    for (const PlanValueId result : step.results) {
      if (plan.value(result).storage != Storage::view) continue;
      owners[static_cast<size_t>(result)] = owners[static_cast<size_t>(find_viewed(step))];
    }
  }
  return owners;
}

}  // namespace

std::vector<std::vector<PlanValueId>> find_held_drops(const Plan& plan) {
  const std::vector<PlanValueId> owners = find_view_owners(plan);
  std::vector<int> last(plan.values.size(), -1);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto touch = [&](PlanValueId value) {
      if (is_value(value)) last[static_cast<size_t>(owners[static_cast<size_t>(value)])] = static_cast<int>(i);
    };
    for (const PlanValueId operand : plan.steps[i].operands) touch(operand);
    for (const PlanValueId result : plan.steps[i].results) touch(result);
  }
  const auto keep = [&](PlanValueId value) {
    if (is_value(value)) last[static_cast<size_t>(owners[static_cast<size_t>(value)])] = -1;
  };
  for (const PlanOutput& output : plan.outputs) {
    if (output.leaves_after < 0) continue;
    int& owner = last[static_cast<size_t>(owners[static_cast<size_t>(output.value)])];
    owner = std::max(owner, output.leaves_after);
  }
  for (const PlanOutput& output : plan.outputs) {
    if (output.leaves_after < 0) keep(output.value);
  }
  for (const PlanWrite& write : plan.writes) keep(write.value);
  std::vector<std::vector<PlanValueId>> drops(plan.steps.size());
  for (const PlanValueId value : plan.value_ids()) {
    const int step = last[static_cast<size_t>(value)];
    if (step >= 0 && plan.value(value).storage == Storage::held) drops[static_cast<size_t>(step)].push_back(value);
  }
  return drops;
}

std::vector<bool> find_natively_read(const Plan& plan) {
  const std::vector<PlanValueId> owners = find_view_owners(plan);
  std::vector<bool> read(plan.values.size(), false);
  for (const PlanStep& step : plan.steps) {
    if (step.kernel == kReferenceStep) continue;
    for (const PlanValueId operand : step.operands) {
      if (is_value(operand)) read[static_cast<size_t>(owners[static_cast<size_t>(operand)])] = true;
    }
  }
  for (size_t i = 0; i < read.size(); ++i) read[i] = read[i] && plan.values[i].storage == Storage::held;
  return read;
}

}  // namespace lissome
