// Liveness over roots: a view keeps the memory that it lies in, and so does a tensor of libtorch that may alias it.
#include <algorithm>
#include <set>

#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {

std::vector<bool> find_direct_outputs(const Plan& plan) {
  std::vector<bool> direct(plan.values.size(), false);
  for (const PlanOutput& output : plan.outputs) {
    if (output.value < 0 || output.leaves_after >= 0) continue;
    const PlanValue& value = plan.values[static_cast<size_t>(output.value)];
    if (value.storage == Storage::arena && value.format == Format::row_major) {
      direct[static_cast<size_t>(output.value)] = true;
    }
  }
  return direct;
}

Lifetimes find_lifetimes(const Plan& plan) {
  const size_t count = plan.values.size();
  Lifetimes lifetimes{std::vector<int>(count, -1), std::vector<int>(count, -1), std::vector<int>(count, -1)};
  // The arena values whose memory each value may lie in.
  std::vector<std::set<int>> roots(count);
  const auto touch = [&](int value, int step) {
    for (const int root : roots[static_cast<size_t>(value)]) {
      lifetimes.last[static_cast<size_t>(root)] = std::max(lifetimes.last[static_cast<size_t>(root)], step);
    }
  };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    const int now = static_cast<int>(i);
    std::set<int> kept;
    for (const int operand : step.operands) {
      if (operand < 0) continue;
      touch(operand, now);
      const std::set<int>& more = roots[static_cast<size_t>(operand)];
      kept.insert(more.begin(), more.end());
    }
    for (const int result : step.results) {
      const Storage storage = plan.values[static_cast<size_t>(result)].storage;
      if (storage == Storage::arena) {
        roots[static_cast<size_t>(result)] = {result};
        lifetimes.first[static_cast<size_t>(result)] = now;
        lifetimes.last[static_cast<size_t>(result)] = now;
      } else if (storage == Storage::view) {
        roots[static_cast<size_t>(result)] = roots[static_cast<size_t>(find_viewed(step))];
      } else if (step.keeps_operands) {
        roots[static_cast<size_t>(result)] = kept;
      }
    }
  }
  const int end = static_cast<int>(plan.steps.size());
  for (const PlanOutput& output : plan.outputs) {
    if (output.value < 0) continue;
    touch(output.value, output.leaves_after >= 0 ? output.leaves_after : end);
    for (const int root : roots[static_cast<size_t>(output.value)]) {
      int& given = lifetimes.given[static_cast<size_t>(root)];
      given = std::max(given, output.leaves_after);
    }
  }
  for (const PlanWrite& write : plan.writes) touch(write.value, end);
  return lifetimes;
}

namespace {

// The value that owns the memory of each value: itself, or what a chain of views leads to.
std::vector<int> find_view_owners(const Plan& plan) {
  std::vector<int> owners(plan.values.size());
  for (size_t i = 0; i < owners.size(); ++i) owners[i] = static_cast<int>(i);
  for (const PlanStep& step : plan.steps) {
    for (const int result : step.results) {
      if (plan.values[static_cast<size_t>(result)].storage != Storage::view) continue;
      owners[static_cast<size_t>(result)] = owners[static_cast<size_t>(find_viewed(step))];
    }
  }
  return owners;
}

}  // namespace

std::vector<std::vector<int>> find_held_drops(const Plan& plan) {
  const std::vector<int> owners = find_view_owners(plan);
  std::vector<int> last(plan.values.size(), -1);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto touch = [&](int value) {
      if (value >= 0) last[static_cast<size_t>(owners[static_cast<size_t>(value)])] = static_cast<int>(i);
    };
    for (const int operand : plan.steps[i].operands) touch(operand);
    for (const int result : plan.steps[i].results) touch(result);
  }
  const auto keep = [&](int value) {
    if (value >= 0) last[static_cast<size_t>(owners[static_cast<size_t>(value)])] = -1;
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
  std::vector<std::vector<int>> drops(plan.steps.size());
  for (size_t i = 0; i < last.size(); ++i) {
    if (last[i] >= 0 && plan.values[i].storage == Storage::held) {
      drops[static_cast<size_t>(last[i])].push_back(static_cast<int>(i));
    }
  }
  return drops;
}

std::vector<bool> find_natively_read(const Plan& plan) {
  const std::vector<int> owners = find_view_owners(plan);
  std::vector<bool> read(plan.values.size(), false);
  for (const PlanStep& step : plan.steps) {
    if (step.kernel == kReferenceStep) continue;
    for (const int operand : step.operands) {
      if (operand >= 0) read[static_cast<size_t>(owners[static_cast<size_t>(operand)])] = true;
    }
  }
  for (size_t i = 0; i < read.size(); ++i) read[i] = read[i] && plan.values[i].storage == Storage::held;
  return read;
}

}  // namespace lissome
