// Walks the trees "[1, {type, context, children_spec}]" of torch.utils._pytree. A hostile tree is bounded by the JSON
// parser's depth; anything unexpected in it only costs the nice names.
#include "lissome/program/pt2/call_tree.h"

#include <optional>

namespace lissome {
namespace {

constexpr int kDeepestTree = 60;

std::optional<Json> parse_spec(const Json* signature, std::string_view key) {
  if (signature == nullptr || !signature->is_object()) return std::nullopt;
  const Json* text = find_json_member(*signature, key);
  if (text == nullptr || !text->is_string()) return std::nullopt;
  Json document = parse_json(text->get_ref<const std::string&>(), key, kDeepestTree);
  if (!document.is_array() || document.size() != 2) return std::nullopt;
  return std::move(document[1]);
}

std::optional<std::vector<std::string>> read_names(const Json& value, size_t count) {
  if (!value.is_array() || value.size() != count) return std::nullopt;
  std::vector<std::string> names;
  for (const Json& item : value) {
    if (item.is_string()) {
      names.push_back(item.get<std::string>());
    } else if (item.is_number_integer()) {
      names.push_back(print_json(item));
    } else {
      return std::nullopt;
    }
  }
  return names;
}

// A dict's context lists its keys, a dataclass's starts with the list of its fields, a default dict's holds the keys
// under "dict_context". Everything else goes by position.
std::optional<std::vector<std::string>> read_keys(const Json& node, size_t count) {
  const Json* text = find_json_member(node, "context");
  if (text == nullptr || !text->is_string() || count == 0) return std::nullopt;
  const auto& raw = text->get_ref<const std::string&>();
  if (!raw.starts_with("[") && !raw.starts_with("{")) return std::nullopt;
  const Json context = parse_json(raw, "context", kDeepestTree);
  if (const auto names = read_names(context, count)) return names;
  if (context.is_array() && !context.empty()) return read_names(context[0], count);
  const Json* inner = context.is_object() ? find_json_member(context, "dict_context") : nullptr;
  return inner != nullptr ? read_names(*inner, count) : std::nullopt;
}

bool is_leaf(const Json& node) { return find_json_member(node, "type") == nullptr; }

void name_leaves(const Json& node, const std::string& name, std::vector<std::string>& leaves) {
  if (is_leaf(node)) {
    leaves.push_back(name);
    return;
  }
  const auto& children = list_member(node, "children_spec");
  const auto keys = read_keys(node, children.size());
  for (size_t i = 0; i < children.size(); ++i) {
    const std::string key = keys ? (*keys)[i] : std::to_string(i);
    name_leaves(children[i], name.empty() ? key : name + "." + key, leaves);
  }
}

std::vector<std::string> read_parameter_names(const Json& signature) {
  std::vector<std::string> names;
  const Json* list = find_json_member(signature, "forward_arg_names");
  if (list == nullptr) return names;
  for (const Json& name : json_list(*list, "forward_arg_names")) names.push_back(json_text(name, "forward_arg_names"));
  return names;
}

void name_arguments(const Json& root, const Json& signature, std::vector<std::string>& leaves) {
  const auto& parts = list_member(root, "children_spec");  // positional, keyword
  if (parts.size() != 2) throw_error(ErrorKind::invalid_input, "in_spec must hold positional and keyword arguments");
  const auto& positional = list_member(parts[0], "children_spec");
  const std::vector<std::string> parameters = read_parameter_names(signature);
  for (size_t i = 0; i < positional.size(); ++i) {
    name_leaves(positional[i], i < parameters.size() ? parameters[i] : "input." + std::to_string(i), leaves);
  }
  name_leaves(parts[1], "", leaves);
}

}  // namespace

std::vector<std::string> name_call_inputs(const Json* signature) {
  std::vector<std::string> leaves;
  const auto root = parse_spec(signature, "in_spec");
  if (root) name_arguments(*root, *signature, leaves);
  return leaves;
}

std::vector<std::string> name_call_outputs(const Json* signature) {
  std::vector<std::string> leaves;
  const auto root = parse_spec(signature, "out_spec");
  if (!root) return leaves;
  const Json* type = find_json_member(*root, "type");
  // Keys name outputs well enough alone; positions need a word before them.
  const bool keyed = type != nullptr && read_keys(*root, list_member(*root, "children_spec").size()).has_value();
  name_leaves(*root, keyed ? "" : "output", leaves);
  return leaves;
}

std::string print_call_tree(const Json* signature, std::string_view spec_key, const Json& leaves) {
  Json tree = Json::object();
  const auto root = parse_spec(signature, spec_key);
  if (root) tree["spec"] = *root;
  tree["leaves"] = leaves;
  return print_json(tree);
}

}  // namespace lissome
