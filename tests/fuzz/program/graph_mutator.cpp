// How fuzz_graph's inputs change: by edits of the serialized graph, of its signature and of what is said of its
// weights.
#include <ATen/core/function_schema.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/fuzz_hooks.h"
#include "tests/fuzz/json_edits.h"
#include "tests/fuzz/program/op_choice.h"

namespace lissome {
namespace {

struct GraphDocument {
  Json head, model;

  static std::optional<GraphDocument> parse(std::string_view text) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    GraphDocument document{Json::parse(text.substr(0, end), nullptr, false),
                           Json::parse(text.substr(end + 1), nullptr, false)};
    if (!document.head.is_object() || !document.model.is_object()) return std::nullopt;
    if (!document.model.contains("graph_module") || !document.model["graph_module"].contains("graph"))
      return std::nullopt;
    return document;
  }
  std::string print() const {
    constexpr auto kReplace = Json::error_handler_t::replace;
    return head.dump(-1, ' ', false, kReplace) + "\n" + model.dump(-1, ' ', false, kReplace);
  }
};

void collect_graphs(Json& json, std::vector<Json*>& graphs) {
  if (!json.is_structured()) return;
  if (json.is_object() && json.contains("nodes") && json["nodes"].is_array()) graphs.push_back(&json);
  for (Json& item : json) collect_graphs(item, graphs);
}

// The outermost graph, or one that a node of it calls.
Json& pick_graph(GraphDocument& document, FuzzRandom& random) {
  Json& outermost = document.model["graph_module"]["graph"];
  if (!random.once_in(4)) return outermost;
  std::vector<Json*> graphs;
  collect_graphs(outermost, graphs);
  return graphs.empty() ? outermost : *random.pick(graphs);
}

Json* pick_node(GraphDocument& document, FuzzRandom& random) {
  Json& nodes = pick_graph(document, random)["nodes"];
  return nodes.empty() ? nullptr : &random.pick(nodes);
}

// {"as_tensor": {"name": "x"}} and its kin, at any depth.
void collect_tagged(Json& json, std::string_view tag, std::vector<Json*>& found) {
  if (!json.is_structured()) return;
  if (json.is_object()) {
    for (auto& [key, value] : json.items())
      if (key.starts_with(tag)) found.push_back(&value);
  }
  for (Json& item : json) collect_tagged(item, tag, found);
}

char classify(const Json& argument) {
  if (!argument.is_object() || argument.empty()) return 'w';
  const std::string tag = argument.begin().key();
  if (tag == "as_tensor" || tag == "as_sym_int") return tag == "as_tensor" ? 'v' : 'i';
  if (tag == "as_int") return 'i';
  if (tag == "as_float") return 'f';
  if (tag == "as_bool") return 'b';
  if (tag == "as_none") return 'n';
  if (tag == "as_string") return 's';
  return tag == "as_ints" || tag == "as_tensors" || tag == "as_sym_ints" || tag == "as_floats" ? 'l' : 'w';
}

// "aten::add.Tensor" as a serialized graph has it.
std::string write_target(const std::string& op) {
  const size_t colons = op.find("::");
  const std::string name = op.substr(colons + 2);
  return "torch.ops." + op.substr(0, colons) + "." + name + (name.find('.') == std::string::npos ? ".default" : "");
}

void change_target(GraphDocument& document, FuzzRandom& random) {
  Json* node = pick_node(document, random);
  if (!node) return;
  std::string letters;
  for (const Json& input : (*node)["inputs"]) letters += classify(input.at("arg"));
  const std::vector<Op>& like = find_like_ops(letters, (*node)["outputs"].size());
  if (like.empty()) return;
  const Op& op = like[random.below(like.size())];
  (*node)["target"] = write_target(op.name());
  for (size_t i = 0; i < letters.size(); ++i) (*node)["inputs"][i]["name"] = op.schema().arguments()[i].name();
}

void change_literal(GraphDocument& document, FuzzRandom& random) {
  Json* node = pick_node(document, random);
  if (!node) return;
  constexpr const char* kTags[] = {"as_int",         "as_float",         "as_bool",  "as_string",
                                   "as_scalar_type", "as_memory_format", "as_layout"};
  std::vector<Json*> found;
  for (const char* tag : kTags) collect_tagged((*node)["inputs"], tag, found);
  if (found.empty()) return;
  Json& value = *random.pick(found);
  const Json floats[] = {0.0, 1.5, -1.0, 1e30, "Infinity", "NaN", "-Infinity", 1e-8};
  const Json words[] = {"mean", "none", "reflect", "constant", "tanh", ""};
  if (value.is_number_integer()) {
    value = random.once_in(2) ? Json(random.below(5)) : Json(pick_number(random));
  } else if (value.is_boolean()) {
    value = !value.get<bool>();
  } else if (value.is_number()) {
    value = random.pick(floats);
  } else if (value.is_string()) {
    value = random.pick(words);
  } else if (value.is_array()) {
    if (value.empty() || random.once_in(3)) {
      value.push_back(value.empty() ? Json(pick_size(random)) : Json(random.pick(value)));
    } else if (random.once_in(3)) {
      value.erase(value.size() - 1);
    } else if (Json& item = random.pick(value); item.is_number_integer()) {
      item = random.once_in(2) ? Json(pick_size(random)) : Json(pick_number(random));
    }
  }
}

// The names of what exists in this graph.
std::vector<std::string> list_names(Json& graph, std::string_view tag) {
  std::vector<Json*> found;
  collect_tagged(graph["inputs"], tag, found);
  for (Json& node : graph["nodes"]) collect_tagged(node["outputs"], tag, found);
  std::vector<std::string> names;
  for (const Json* item : found)
    if (item->is_object() && item->contains("name")) names.push_back(item->at("name").get<std::string>());
  return names;
}

void rewire_input(GraphDocument& document, FuzzRandom& random) {
  Json& graph = pick_graph(document, random);
  const char* tag = random.once_in(6) ? "as_sym_int" : "as_tensor";
  const std::vector<std::string> names = list_names(graph, tag);
  std::vector<Json*> found;
  if (graph["nodes"].empty() || names.empty()) return;
  collect_tagged(random.once_in(5) ? graph["outputs"] : random.pick(graph["nodes"])["inputs"], tag, found);
  if (found.empty()) return;
  Json& place = *random.pick(found);
  if (place.is_object() && place.contains("name")) place["name"] = names[random.below(names.size())];
}

void drop_node(GraphDocument& document, FuzzRandom& random) {
  Json& graph = pick_graph(document, random);
  if (graph["nodes"].size() < 2) return;
  const size_t position = random.below(graph["nodes"].size());
  std::vector<Json*> made;
  collect_tagged(graph["nodes"][position]["outputs"], "as_tensor", made);
  if (made.empty() || !made[0]->contains("name")) return;
  const Json name = made[0]->at("name");
  graph["nodes"].erase(position);
  const std::vector<std::string> names = list_names(graph, "as_tensor");
  if (names.empty()) return;
  std::vector<Json*> uses;
  collect_tagged(graph["nodes"], "as_tensor", uses);
  collect_tagged(graph["outputs"], "as_tensor", uses);
  const std::string instead = names[random.below(names.size())];
  for (Json* use : uses)
    if (use->is_object() && use->contains("name") && (*use)["name"] == name) (*use)["name"] = instead;
}

void repeat_node(GraphDocument& document, FuzzRandom& random) {
  Json& graph = pick_graph(document, random);
  const size_t count = graph["nodes"].size();
  if (count == 0 || count > 24) return;
  const size_t position = random.below(count);
  Json node = graph["nodes"][position];
  std::vector<Json*> made;
  collect_tagged(node["outputs"], "as_tensor", made);
  for (Json* value : made) {
    if (!value->is_object() || !value->contains("name")) return;
    const std::string before = (*value)["name"].get<std::string>();
    const std::string after = before + "_m" + std::to_string(count);
    if (graph["tensor_values"].contains(before)) graph["tensor_values"][after] = Json(graph["tensor_values"][before]);
    (*value)["name"] = after;
    std::vector<Json*> read;  // anew each time: a name moves what lies beside it
    collect_tagged(node["inputs"], "as_tensor", read);
    if (read.empty() || !random.once_in(2)) continue;
    Json& changed = *random.pick(read);
    if (changed.is_object()) changed["name"] = before;
  }
  Json& nodes = graph["nodes"];  // not before: tensor_values may have joined it in the graph
  nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(position + 1), std::move(node));
}

// Dtype, sizes, strides of a value or a weight as the file states them.
void change_meta(GraphDocument& document, FuzzRandom& random) {
  Json& metas = random.once_in(2) ? pick_graph(document, random)["tensor_values"] : document.head["weights"]["config"];
  if (metas.empty()) return;
  auto chosen = metas.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(random.below(metas.size())));
  Json& meta = chosen->contains("tensor_meta") ? (*chosen)["tensor_meta"] : *chosen;
  switch (random.below(5)) {
    case 0: meta["dtype"] = random.below(16); break;
    case 1: change_any_leaf(meta["sizes"], random); break;
    case 2: meta["storage_offset"]["as_int"] = pick_number(random); break;
    default: {
      std::vector<Json*> found;
      collect_tagged(meta[random.once_in(2) ? "sizes" : "strides"], "as_int", found);
      if (!found.empty()) *random.pick(found) = random.once_in(2) ? Json(pick_size(random)) : Json(pick_number(random));
    }
  }
}

void change_size_everywhere(Json& json, int64_t before, int64_t after) {
  if (json.is_number_integer() && json.get<int64_t>() == before) json = after;
  if (!json.is_structured()) return;
  for (Json& item : json) change_size_everywhere(item, before, after);
}

void change_sizes(GraphDocument& document, FuzzRandom& random) {
  std::vector<Json*> found;
  Json& graph = document.model["graph_module"]["graph"];
  collect_tagged(graph["tensor_values"], "as_int", found);
  if (found.empty()) return;
  const Json& chosen = *random.pick(found);
  if (!chosen.is_number_integer()) return;
  const auto before = chosen.get<int64_t>();
  const int64_t after = pick_size(random);
  change_size_everywhere(graph["tensor_values"], before, after);
  change_size_everywhere(document.head["weights"], before, after);
  for (Json& node : graph["nodes"]) change_size_everywhere(node["inputs"], before, after);
}

void change_signature(GraphDocument& document, FuzzRandom& random) {
  Json& module = document.model["graph_module"];
  constexpr const char* kParts[] = {"signature", "module_call_graph"};
  if (Json& part = module[random.pick(kParts)]; part.is_structured()) change_any_leaf(part, random);
}

void change_head(GraphDocument& document, FuzzRandom& random) {
  Json& bytes = document.head[random.once_in(3) ? "constant_bytes" : "bytes"];
  if (bytes.empty() || random.once_in(3)) return static_cast<void>(document.head["data"] = random.below(64));
  auto row = bytes.begin();
  std::advance(row, static_cast<std::ptrdiff_t>(random.below(bytes.size())));
  (*row)[random.once_in(4) ? 1 : 2] = random.below(64);
}

void change_anything(GraphDocument& document, FuzzRandom& random) { change_any_leaf(document.model, random); }

using GraphEdit = void (*)(GraphDocument&, FuzzRandom&);
struct EditRow {
  GraphEdit edit;
  size_t weight;
};
constexpr EditRow kEdits[] = {{change_target, 14}, {change_literal, 14}, {rewire_input, 14}, {drop_node, 8},
                              {repeat_node, 6},    {change_meta, 6},     {change_sizes, 6},  {change_signature, 2},
                              {change_head, 10},   {change_anything, 2}};

void apply_edit(GraphDocument& document, FuzzRandom& random) {
  size_t total = 0;
  for (const EditRow& row : kEdits) total += row.weight;
  size_t at = random.below(total);
  for (const EditRow& row : kEdits) {
    if (at < row.weight) return row.edit(document, random);
    at -= row.weight;
  }
}

struct LastMutation {
  std::string text;
  std::optional<GraphDocument> document;
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
  if (last.text != text || !last.document) last.document = GraphDocument::parse(text);
  if (!last.document) return size;
  try {
    do {
      apply_edit(*last.document, random);
    } while (random.once_in(6));
  } catch (const nlohmann::json::exception&) {
    // An earlier edit left something of another type where this one looked: what there is goes on to the reader.
  }
  last.text = last.document->print();
  if (last.text.size() > limit) {
    last.document.reset();
    return size;
  }
  std::memcpy(data, last.text.data(), last.text.size());
  return last.text.size();
}

}  // namespace lissome
