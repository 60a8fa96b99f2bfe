// lissome audit: shows on which kernel, dtype and device every node ran, compares this with expectations, and lists
// what loses time.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/json_answer.h"
#include "lissome/cli/model.h"
#include "lissome/cli/profile/slow_nodes.h"

namespace lissome {
namespace {

struct Ran {
  PlanOrigin origin;
  std::string kernel, isa, dtype, device;
  bool multiplies = false;  // dtype and isa are expected of these nodes, which take most time
};

// Reads "dtype=int8,fallback=none", with every key at most once.
using Expectations = std::map<std::string, std::string>;

Expectations parse_expectations(const std::string& text) {
  static const std::map<std::string, std::vector<std::string>> kAllowed = {
      {"dtype", {"f32", "bf16", "f16", "int8"}},
      {"fallback", {"none", "any"}},
      {"isa", {"portable", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"}},
      {"device", {"cpu", "cuda"}},
  };
  Expectations wanted;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string entry = text.substr(at, end - at);
    const size_t equals = entry.find('=');
    const std::string key = entry.substr(0, equals),
                      value = equals == std::string::npos ? "" : entry.substr(equals + 1);
    const auto row = kAllowed.find(key);
    if (row == kAllowed.end())
      throw_error(ErrorKind::usage, "--expect: there is no key ", quote(key),
                  "; the keys are dtype, fallback, isa and device");
    if (std::find(row->second.begin(), row->second.end(), value) == row->second.end()) {
      throw_error(ErrorKind::usage, "--expect: ", key, " must be one of ", join(row->second, ", "), ", not ",
                  quote(value));
    }
    if (!wanted.emplace(key, value).second) throw_error(ErrorKind::usage, "--expect: ", key, " is given twice");
    at = end + 1;
  }
  return wanted;
}

bool multiplies(const std::string& op) {
  for (const char* word : {"linear", "conv", "matmul", "mm", "attention", "einsum", "lstm", "gru"}) {
    if (op.find(word) != std::string::npos) return true;
  }
  return false;
}

std::string name_dtype(Dtype dtype) {
  return dtype == Dtype::u8 || dtype == Dtype::i8 ? "int8" : std::string(dtype_name(dtype));
}

// The dtype that the step multiplies in; int8 layers may read floats and quantize them. For a step that multiplies
// nothing, the dtype of its first operand; for nodes inside a reference step, that of their result. "-" if the plan
// does not contain it.
std::string find_dtype(const Plan& plan, const StepTiming& timing,
                       const std::map<std::string, const PlanValue*>& values) {
  const PlanStep& step = plan.steps[static_cast<size_t>(timing.step)];
  const PlanValue* value = nullptr;
  if (step.kernel == kReferenceStep) {
    const auto found = timing.origin != nullptr ? values.find(timing.origin->node) : values.end();
    if (found != values.end()) value = found->second;
  } else if (timing.products > 0) {
    return name_dtype(timing.multiplied);
  } else if (!step.operands.empty() && is_value(step.operands.front())) {
    value = &plan.value(step.operands.front());
  }
  if (value == nullptr || !value->sized || value->kind != PlanKind::tensor) return "-";
  return name_dtype(value->dtype);
}

std::vector<Ran> watch_run(Session& session, const std::vector<NamedArray>& inputs) {
  const Plan& plan = session.plan();
  std::map<std::string, const PlanValue*> values;
  for (const PlanValue& value : plan.values) values[value.name] = &value;
  const std::vector<TensorView> views = view_arrays(inputs);
  std::vector<Ran> nodes;
  const StepSink sink = [&](const StepTiming& timing) {
    Ran ran;
    ran.kernel = timing.kernel;
    ran.isa = timing.isa;
    ran.dtype = find_dtype(plan, timing, values);
    ran.device = plan.device.substr(0, plan.device.find(':'));
    // Native copies of a product's operands have the product's name and multiply nothing.
    ran.multiplies =
        ran.kernel == kReferenceStep ? timing.origin != nullptr && multiplies(timing.origin->op) : timing.products > 0;
    // A native step has one time for all nodes that it fuses.
    const std::vector<PlanOrigin>& origins = plan.steps[static_cast<size_t>(timing.step)].origins;
    for (const PlanOrigin& origin : origins) {
      if (ran.kernel == kReferenceStep && &origin != timing.origin) continue;
      ran.origin = origin;
      nodes.push_back(ran);
    }
  };
  session.run(views, &sink);
  return nodes;
}

// Empty if the node is as expected, else how it ran.
std::string find_breach(const Ran& ran, const std::string& key, const std::string& wanted) {
  const bool reference = ran.kernel == kReferenceStep;
  if (key == "fallback") return wanted == "none" && reference ? "ran through libtorch" : "";
  if (key == "dtype" && ran.multiplies && ran.dtype != wanted)
    return "multiplied " + (ran.dtype == "-" ? "in a dtype that the plan does not contain" : ran.dtype);
  if (key == "isa" && ran.multiplies && ran.isa != wanted) return "ran on " + ran.isa;
  if (key == "device" && ran.device != wanted) return "ran on " + ran.device;
  return "";
}

std::vector<std::string> list_breaches(const std::vector<Ran>& nodes, const Expectations& wanted) {
  std::vector<std::string> breaches;
  for (const auto& [key, value] : wanted) {
    for (const Ran& ran : nodes) {
      const std::string breach = find_breach(ran, key, value);
      if (breach.empty()) continue;
      const std::string where = ran.origin.module.empty() ? "" : " of " + ran.origin.module;
      breaches.push_back(key + "=" + value + ": %" + ran.origin.node + " (" + ran.origin.op + where + ") " + breach);
    }
  }
  return breaches;
}

Table make_audit_table(const std::vector<Ran>& nodes) {
  Table table{"Nodes",
              {{"node", ""}, {"op", ""}, {"kernel", ""}, {"isa", ""}, {"dtype", ""}, {"device", ""}, {"module", ""}},
              {}};
  for (const Ran& ran : nodes) {
    table.rows.push_back(
        {ran.origin.node, ran.origin.op, ran.kernel, ran.isa, ran.dtype, ran.device, ran.origin.module});
  }
  return table;
}

constexpr int kWarmUps = 3, kTimedRuns = 30;  // of the calls that --slow times

Table find_slow_nodes(Session& session, const std::vector<NamedArray>& inputs) {
  const Profile profile = measure_nodes(session, view_arrays(inputs), kWarmUps, kTimedRuns);
  const MemoryFacts memory = session.memory();
  return list_slow_nodes(profile, find_peaks_of(profile, session.threads()), memory.weights + memory.arena);
}

}  // namespace

int run_audit(const std::vector<std::string>& arguments, Console& console) {
  Flags flags("audit",
              "Shows the kernel, dtype and device of every node, and fails if they differ from --expect; with --slow, "
              "the nodes that lose time.");
  std::string model, expect;
  CallFlags call;
  bool slow = false, json = false;
  flags.require("MODEL", model, kModelHelp);
  add_call_flags(flags, call);
  flags.add("--slow", slow,
            "Time the nodes, and list those that take more than twice the machine's limit, only move data or run "
            "through libtorch; those that lose most first.");
  flags.add("--expect", expect,
            "Expectations, for example dtype=int8,fallback=none,isa=avx512_vnni. dtype and isa refer to nodes that "
            "multiply.");
  flags.add_json(json);
  flags.parse(arguments);

  const Expectations wanted = parse_expectations(expect);
  Session session(open_plan(model, call.threads, call.device), {.threads = call.threads});
  const std::vector<NamedArray> inputs =
      choose_inputs(session.plan(), call.input, call.batch, call.seed, say_notes(console));
  const std::vector<Ran> nodes = watch_run(session, inputs);
  const std::vector<std::string> breaches = list_breaches(nodes, wanted);
  // A .pt2 runs through libtorch, so the torch library is loaded.
  if (session.plan().needs_reference() && load_torch().find_native_code(model) != NativeCode::none)
    console.say("note: " + model +
                " also holds native code of AOTInductor, which was not run (see bench --allow-native)");
  std::vector<Table> tables = {make_audit_table(nodes)};
  if (slow) tables.push_back(find_slow_nodes(session, inputs));
  if (json) {
    const Json result{{"expect", or_null(expect)}, {"as_expected", breaches.empty()}, {"not_as_expected", breaches}};
    console.print(print_answer("audit", result, tables));
  } else {
    if (slow && tables.back().rows.empty())
      console.print("no node loses more than half a percent of a call\n");
    else
      console.print(render_table(tables.back(), console.terminal()) + "\n");
    for (const std::string& breach : breaches) console.print("not as expected: " + clean_text(breach) + "\n");
    if (!wanted.empty() && breaches.empty()) console.print("as expected: " + expect + "\n");
  }
  return breaches.empty() ? 0 : exit_code(ErrorKind::over_budget);
}

}  // namespace lissome
