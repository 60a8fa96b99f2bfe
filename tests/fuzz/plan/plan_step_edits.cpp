// Edits of steps: their kernels, operands and order.
#include <algorithm>

#include "lissome/runtime/step/step_binder.h"
#include "tests/fuzz/plan/plan_edits.h"

namespace lissome {
namespace {

Json& pick_step(PlanDocument& document, FuzzRandom& random, size_t& position) {
  position = random.below(document.steps().size());
  return document.steps()[position];
}

// The kernels whose names share the first word with this one: linear_f32, linear_bf16, linear_u8s8.
std::vector<std::string> list_siblings(const std::string& kernel) {
  const std::string family = kernel.substr(0, kernel.find('_'));
  std::vector<std::string> siblings;
  for (const StepRow& row : step_rows())
    if (row.kernel.starts_with(family)) siblings.emplace_back(row.kernel);
  return siblings;
}

int pick_value(const PlanDocument& document, const std::vector<int>& defined, int like, FuzzRandom& random) {
  std::vector<int> fitting;
  const auto count = static_cast<int>(document.plan["values"].size());
  if (like >= 0 && like < count && !random.once_in(4)) {
    for (const int id : defined) {
      if (document.dtype_of(id) == document.dtype_of(like) && document.sizes_of(id) == document.sizes_of(like))
        fitting.push_back(id);
    }
  }
  return fitting.empty() ? random.pick(defined) : random.pick(fitting);
}

}  // namespace

void rewire_operand(PlanDocument& document, FuzzRandom& random) {
  size_t position = 0;
  Json& step = pick_step(document, random, position);
  const std::vector<int> defined = document.list_defined(position);
  if (step["operands"].empty() || defined.empty()) return;
  Json& operand = random.pick(step["operands"]);
  operand = pick_value(document, defined, read_id(operand), random);
}

void change_operands(PlanDocument& document, FuzzRandom& random) {
  size_t position = 0;
  Json& step = pick_step(document, random, position);
  Json& list = random.once_in(6) ? step["results"] : step["operands"];
  const std::vector<int> defined = document.list_defined(position);
  switch (random.below(5)) {
    case 0:
      if (!list.empty()) random.pick(list) = -1;
      break;
    case 1:
      if (!list.empty()) std::swap(random.pick(list), random.pick(list));
      break;
    case 2:
      if (!list.empty()) list.erase(list.size() - 1);
      break;
    case 3:
      if (!list.empty()) list.erase(random.below(list.size()));
      break;
    default:
      if (&list == &step["results"]) {
        list.push_back(document.add_value("arena", "f32", Json::array({pick_size(random)})));
      } else if (!defined.empty()) {
        list.push_back(random.pick(defined));
      }
  }
}

void change_kernel(PlanDocument& document, FuzzRandom& random) {
  size_t position = 0;
  Json& step = pick_step(document, random, position);
  const std::vector<std::string> siblings = list_siblings(step.value("kernel", ""));
  if (!siblings.empty() && !random.once_in(4)) {
    step["kernel"] = random.pick(siblings);
  } else {
    step["kernel"] = step_rows()[random.below(step_rows().size())].kernel;
  }
}

void move_step(PlanDocument& document, FuzzRandom& random) {
  Json& steps = document.steps();
  if (steps.size() > 1) std::swap(random.pick(steps), random.pick(steps));
}

void repeat_step(PlanDocument& document, FuzzRandom& random) {
  if (document.steps().size() > 24) return drop_step(document, random);
  size_t position = 0;
  Json step = pick_step(document, random, position);
  for (Json& result : step["results"]) {
    Json value = document.value(read_id(result));
    const auto fresh = static_cast<int>(document.values().size());
    value["name"] = "m" + std::to_string(fresh);
    document.values().push_back(std::move(value));
    const int before = read_id(result);
    result = fresh;
    // Read in place of the first, or beside it.
    if (random.once_in(2)) {
      document.replace_operand(position + 1, before, fresh, random);
    } else {
      document.add_output(fresh);
    }
  }
  // Behind itself, reading what it made, where that is of the same form.
  Json& steps = document.steps();
  if (random.once_in(3) && !step["operands"].empty()) random.pick(step["operands"]) = steps[position]["results"].at(0);
  steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(position + 1), std::move(step));
}

void drop_step(PlanDocument& document, FuzzRandom& random) {
  Json& steps = document.steps();
  if (steps.size() < 2) return;
  size_t position = 0;
  const Json step = pick_step(document, random, position);
  steps.erase(position);
  const std::vector<int> defined = document.list_defined(position);
  if (defined.empty()) return;
  for (const Json& result : step.at("results")) {
    const int instead = pick_value(document, defined, read_id(result), random);
    for (size_t i = position; i < steps.size(); ++i)
      for (Json& operand : steps[i]["operands"])
        if (operand == result) operand = instead;
    for (Json& output : document.plan["outputs"])
      if (output.contains("value") && output["value"] == result) output["value"] = instead;
  }
}

void insert_step(PlanDocument& document, FuzzRandom& random) {
  if (document.steps().size() > 24) return;
  const size_t position = random.below(document.steps().size() + 1);
  const std::vector<int> defined = document.list_defined(position);
  if (defined.empty()) return;
  const int source = random.pick(defined);
  std::optional<Sizes> sizes = document.sizes_of(source);
  if (!sizes) return;
  std::string dtype = document.dtype_of(source);
  Json step = {{"kernel", "copy"}, {"operands", Json::array({source})}};
  switch (random.below(5)) {
    case 0: break;
    case 1: {
      const int other = pick_value(document, defined, source, random);
      step["kernel"] = "elementwise";
      step["operands"].push_back(other);
      step["attributes"]["program"] = {"load 0 0 0 0 0 0", "load 1 1 0 0 0 0", "add 2 0 1 0 0 0"};
      if (dtype == "i64") step["attributes"]["integers"] = 1;
      break;
    }
    case 2: {
      if (sizes->empty()) return;
      const size_t dim = random.below(sizes->size());
      const int other = pick_value(document, defined, source, random);
      const std::optional<Sizes> more = document.sizes_of(other);
      if (!more || more->size() != sizes->size()) return;
      (*sizes)[dim] += (*more)[dim];
      step["kernel"] = "concat";
      step["operands"].push_back(other);
      step["attributes"]["dim"] = dim;
      break;
    }
    case 3: {
      if (sizes->empty()) return;
      step["kernel"] = "cumulate";
      step["attributes"]["dim"] = random.below(sizes->size());
      break;
    }
    default: {
      constexpr const char* kTargets[] = {"f32", "bf16", "u8", "bool", "i64"};
      step["kernel"] = "elementwise";
      step["attributes"]["program"] = {"load 0 0 0 0 0 0"};
      dtype = random.pick(kTargets);
    }
  }
  const int result = document.add_value("arena", dtype, *sizes);
  if (random.once_in(4)) document.value(result)["format"] = "channels_last";
  step["results"] = Json::array({result});
  Json& steps = document.steps();
  steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(position), std::move(step));
  document.replace_operand(position + 1, source, result, random);
  document.add_output(result);
}

}  // namespace lissome
