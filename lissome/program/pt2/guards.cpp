#include "lissome/program/pt2/guards.h"

#include <charconv>
#include <set>

namespace lissome {
namespace {

[[noreturn]] void refuse(std::string_view guard) {
  throw_error(
      ErrorKind::unsupported, "the export holds only where ", quote(guard.substr(0, 200)),
      ", which cannot be checked here.\n      Export the model with fixed sizes there (no dynamic_shapes for that "
      "dimension).");
}

bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// ['x']['ids'][0].mask -> x.ids.0.mask, the name of an input; the path ends at a method or where nothing follows.
std::string read_path(std::string_view guard, size_t& at) {
  std::string path;
  while (at < guard.size() && (guard[at] == '[' || guard[at] == '.')) {
    size_t end = at + 1;
    if (guard[at] == '[') {
      end = guard.find(']', at);
      if (end == std::string_view::npos) refuse(guard);
    } else {
      while (end < guard.size() && is_name(guard[end])) ++end;
      if (end < guard.size() && guard[end] == '(') break;
    }
    std::string_view key = guard.substr(at + 1, end - at - 1);
    if (key.size() >= 2 && (key.front() == '\'' || key.front() == '"')) key = key.substr(1, key.size() - 2);
    path += (path.empty() ? "" : ".") + std::string(key);
    at = guard[at] == '[' ? end + 1 : end;
  }
  return path;
}

// An argument of `*others` is others.0 in a guard, and an input others_0.
const ValueType* find_input(const Program& program, const std::string& path) {
  std::string variadic = path;
  if (const size_t dot = path.find('.'); dot != std::string::npos) variadic[dot] = '_';
  for (const std::string& name : {path, variadic}) {
    for (const ProgramInput& input : program.inputs) {
      if (input.name == name) return &program.value(input.value).type;
    }
  }
  return nullptr;
}

// "L['x'].size()[1]" from `at` on, as the size that this is; `at` moves behind it.
std::string read_size(const Program& program, std::string_view guard, size_t& at) {
  at += 1;  // L
  const ValueType* type = find_input(program, read_path(guard, at));
  if (type == nullptr || !type->sized) refuse(guard);
  if (type->kind == ValueKind::integer && type->sizes.size() == 1) return "(" + type->sizes[0].print() + ")";
  constexpr std::string_view kSize = ".size()[";
  if (type->kind != ValueKind::tensor || !guard.substr(at).starts_with(kSize)) refuse(guard);
  at += kSize.size();
  size_t place = 0;
  const auto [end, failure] = std::from_chars(guard.data() + at, guard.data() + guard.size(), place);
  at = static_cast<size_t>(end - guard.data());
  if (failure != std::errc() || place >= type->sizes.size() || at >= guard.size() || guard[at] != ']') refuse(guard);
  ++at;
  const Dimension& size = type->sizes[place];
  return size.operation() == Dimension::Operation::name ? size.name() : "(" + size.print() + ")";
}

std::string name_sizes(const Program& program, std::string_view guard) {
  std::string text;
  for (size_t at = 0; at < guard.size();) {
    const bool source = guard.substr(at).starts_with("L[") && (at == 0 || !is_name(guard[at - 1]));
    if (source) {
      text += read_size(program, guard, at);
    } else {
      text += guard[at++];
    }
  }
  return text;
}

}  // namespace

void read_guards(const Pt2Archive& archive, Program& program) {
  const Json* guards = find_json_member(archive.model, "guards_code");
  if (guards == nullptr) return;
  std::set<std::string> seen;  // many are written down for each layer
  for (const Json& item : json_list(*guards, "guards_code")) {
    const std::string& guard = json_text(item, "guards_code");
    SizeRequirement requirement;
    try {
      requirement = SizeRequirement::parse(name_sizes(program, guard));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::unsupported) throw;
      refuse(guard);
    }
    const std::optional<int64_t> known = requirement.slack.constant();
    if (!known) {
      if (seen.insert(requirement.slack.print()).second) program.requirements.push_back(std::move(requirement));
    } else if (*known < 0) {
      throw_error(ErrorKind::invalid_input, "the export holds only where ", quote(guard), ", which is never so");
    }
  }
}

}  // namespace lissome
