// How fuzz_plan's inputs change: by edits of the plan's own structure, so that a good share still passes the reader and
// runs. Each call makes one edit, sometimes a few; libFuzzer applies them one on top of another.
#include <cstring>

#include "tests/fuzz/fuzz_hooks.h"
#include "tests/fuzz/plan/plan_edits.h"

namespace lissome {
namespace {

struct EditRow {
  PlanEdit edit;
  size_t weight;
};

constexpr EditRow kEdits[] = {
    {change_attribute, 12}, {change_size_everywhere, 12},
    {change_value, 10},     {change_dtype_everywhere, 3},
    {rewire_operand, 10},   {change_operands, 5},
    {change_kernel, 5},     {move_step, 2},
    {repeat_step, 4},       {drop_step, 6},
    {change_outputs, 4},    {change_dimensions, 4},
    {change_writes, 3},     {change_head, 12},
    {change_leaf, 2},       {insert_view, 10},
    {insert_step, 6},
};

void apply_edit(PlanDocument& document, FuzzRandom& random) {
  size_t total = 0;
  for (const EditRow& row : kEdits) total += row.weight;
  size_t at = random.below(total);
  for (const EditRow& row : kEdits) {
    if (at < row.weight) return row.edit(document, random);
    at -= row.weight;
  }
}

// A step that takes one value, for when there is nothing to begin with.
constexpr std::string_view kSmallest =
    R"({"level":1,"threads":1,"runs":1,"data":0,"extents":[2],"arrays":[]})"
    "\n"
    R"({"format":3,"machine":{"processor":"","features":"","threads":1},"dimensions":[],)"
    R"("inputs":[{"name":"x","value":0}],"outputs":[{"name":"y","value":1}],"arrays":[],)"
    R"("values":[{"name":"x","storage":"input","dtype":"f32","sizes":[2,3]},)"
    R"({"name":"y","storage":"arena","dtype":"f32","sizes":[2,3]}],)"
    R"("steps":[{"kernel":"copy","operands":[0],"results":[1]}]})";

size_t copy_out(std::string_view text, uint8_t* out, size_t limit) {
  if (text.size() > limit) return 0;
  std::memcpy(out, text.data(), text.size());
  return text.size();
}

// The document of the text that the last mutation gave: libFuzzer mostly asks for the next one on top of it.
struct LastMutation {
  std::string text;
  std::optional<PlanDocument> document;
};
LastMutation& last_mutation() {
  static LastMutation last;
  return last;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t limit, unsigned seed) {
  FuzzRandom random(seed);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  LastMutation& last = last_mutation();
  if (last.text != text || !last.document || !last.document->is_editable()) last.document = PlanDocument::parse(text);
  if (!last.document) return copy_out(kSmallest, data, limit);
  PlanDocument& document = *last.document;
  try {
    do {
      apply_edit(document, random);
    } while (document.is_editable() && random.once_in(6));
  } catch (const nlohmann::json::exception&) {
    // An earlier edit left something of another type where this one looked: what there is goes on to the reader.
  }
  last.text = document.print();
  const size_t written = copy_out(last.text, data, limit);
  if (written > 0) return written;
  last.document.reset();
  return copy_out(kSmallest, data, limit);
}

namespace {

// Positions in `json`, -1 aside, moved behind those of the first plan.
void shift(Json& json, size_t by) {
  for (Json& item : json)
    if (read_id(item) >= 0) item = item.get<size_t>() + by;
}

void append_values(PlanDocument& to, const PlanDocument& from) {
  const size_t arrays = to.plan["arrays"].size(), filled = to.head["arrays"].size();
  for (const Json& array : from.head["arrays"]) to.head["arrays"].push_back(array);
  for (const Json& row : from.plan["arrays"]) {
    const auto name = static_cast<size_t>(std::strtoul(row.value("name", "").c_str(), nullptr, 10));
    to.plan["arrays"].push_back({{"name", std::to_string(name + filled)}, {"packed", true}});
  }
  for (Json value : from.plan["values"]) {
    const int array = value.contains("array") ? read_id(value["array"]) : -1;
    if (array >= 0) value["array"] = static_cast<size_t>(array) + arrays;
    to.values().push_back(std::move(value));
  }
}

// Inputs of the second plan become values of the first that look alike, where there are some.
void join_inputs(PlanDocument& to, const PlanDocument& from, size_t values, size_t steps, FuzzRandom& random) {
  const std::vector<int> defined = to.list_defined(steps);
  for (const Json& input : from.plan["inputs"]) {
    const int wanted = read_id(input.at("value")) + static_cast<int>(values);
    std::vector<int> fitting;
    for (const int id : defined) {
      const bool old = static_cast<size_t>(id) < values;
      if (old && to.dtype_of(id) == to.dtype_of(wanted) && to.sizes_of(id) == to.sizes_of(wanted))
        fitting.push_back(id);
    }
    if (fitting.empty() || random.once_in(4)) {
      to.plan["inputs"].push_back({{"name", "s" + std::to_string(wanted)}, {"value", wanted}});
      continue;
    }
    const int instead = random.pick(fitting);
    for (size_t i = steps; i < to.steps().size(); ++i)
      for (Json& operand : to.steps()[i]["operands"])
        if (operand == wanted) operand = instead;
  }
}

// Time goes with the steps of a plan, and what steps do to each other shows among few.
constexpr size_t kMostJoined = 8;

}  // namespace

// Steps of the second behind those of the first, joined where a value of one fits an input of the other.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* first_data, size_t first_size, const uint8_t* second_data,
                                            size_t second_size, uint8_t* out, size_t limit, unsigned seed) {
  const std::string_view first(reinterpret_cast<const char*>(first_data), first_size),
      second(reinterpret_cast<const char*>(second_data), second_size);
  FuzzRandom random(seed);
  std::optional<PlanDocument> to = PlanDocument::parse(first);
  std::optional<PlanDocument> from = PlanDocument::parse(second);
  if (!to || !from) return copy_out(kSmallest, out, limit);
  const size_t values = to->values().size(), steps = to->steps().size();
  try {
    if (steps + from->steps().size() > kMostJoined) return copy_out(second, out, limit);
    append_values(*to, *from);
    for (Json step : from->steps()) {
      shift(step["operands"], values);
      shift(step["results"], values);
      to->steps().push_back(std::move(step));
    }
    for (const Json& dimension : from->plan["dimensions"])
      if (!to->plan["dimensions"].contains(dimension)) to->plan["dimensions"].push_back(dimension);
    join_inputs(*to, *from, values, steps, random);
    for (const Json& output : from->plan["outputs"])
      if (output.contains("value")) to->add_output(read_id(output["value"]) + static_cast<int>(values));
  } catch (const nlohmann::json::exception&) {
    return copy_out(first, out, limit);
  }
  const size_t written = copy_out(to->print(), out, limit);
  return written > 0 ? written : copy_out(first, out, limit);
}

}  // namespace lissome
