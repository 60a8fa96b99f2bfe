// Reads "stack_trace" (Python's traceback text; the last frame outside torch itself is the user's line) and
// "nn_module_stack" ("key,path,type" per module, joined by ';', innermost last).
#include "lissome/program/pt2/origin.h"

#include <optional>

namespace lissome {
namespace {

struct Frame {
  std::string_view file;
  std::string_view line;
  std::string_view code;
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return line;
}

// `File "path", line 33, in forward`
std::optional<Frame> parse_frame(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  line = trim(line);
  if (!line.starts_with(kFile)) return std::nullopt;
  line.remove_prefix(kFile.size());
  const size_t end = line.find(kLine);
  if (end == std::string_view::npos) return std::nullopt;
  Frame frame{line.substr(0, end), line.substr(end + kLine.size()), {}};
  frame.line = frame.line.substr(0, frame.line.find_first_not_of("0123456789"));
  return frame;
}

bool is_inside_torch(std::string_view file) {
  for (const std::string_view folder : {"site-packages/torch/", "dist-packages/torch/", "<frozen", "<string>"}) {
    if (file.find(folder) != std::string_view::npos) return true;
  }
  return false;
}

// The innermost frame of the user's own code; torch's innermost where there is no other.
std::optional<Frame> find_user_frame(std::string_view trace) {
  std::optional<Frame> user, any;
  while (!trace.empty()) {
    std::optional<Frame> frame = parse_frame(take_line(trace));
    if (!frame) continue;
    std::string_view rest = trace;
    const std::string_view code = trim(take_line(rest));
    if (!parse_frame(code)) frame->code = code;
    any = frame;
    if (!is_inside_torch(frame->file)) user = frame;
  }
  return user ? user : any;
}

// Splits "key,path,type" at the commas outside brackets.
std::vector<std::string_view> split_fields(std::string_view entry) {
  std::vector<std::string_view> fields;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < entry.size(); ++i) {
    if (entry[i] == '[' || entry[i] == '(') ++depth;
    if (entry[i] == ']' || entry[i] == ')') --depth;
    if (entry[i] != ',' || depth > 0) continue;
    fields.push_back(entry.substr(start, i - start));
    start = i + 1;
  }
  fields.push_back(entry.substr(start));
  return fields;
}

// torch.export gives nodes that its own passes make a module of this name, which the user's model does not have.
constexpr std::string_view kNoModule = "_empty_nn_module_stack_from_metadata_hook";

// The innermost module of the user's.
void read_module(std::string_view stack, Origin& origin) {
  for (;;) {
    const size_t last = stack.rfind(';');
    const auto fields = split_fields(last == std::string_view::npos ? stack : stack.substr(last + 1));
    if (fields.size() != 3) return;
    if (fields[1] != kNoModule) {
      origin.module = fields[1];
      const size_t dot = fields[2].rfind('.');
      origin.module_type = dot == std::string_view::npos ? fields[2] : fields[2].substr(dot + 1);
      return;
    }
    if (last == std::string_view::npos) return;
    stack = stack.substr(0, last);
  }
}

std::string read_metadata(const Json* metadata, std::string_view key) {
  const Json* text = metadata != nullptr && metadata->is_object() ? find_json_member(*metadata, key) : nullptr;
  return text != nullptr && text->is_string() ? text->get<std::string>() : std::string();
}

}  // namespace

std::shared_ptr<const Origin> OriginTable::find(const Json* metadata) {
  const std::string trace = read_metadata(metadata, "stack_trace");
  const std::string modules = read_metadata(metadata, "nn_module_stack");
  if (trace.empty() && modules.empty()) return nullptr;
  auto& known = known_[trace + '\0' + modules];
  if (known) return known;
  auto origin = std::make_shared<Origin>();
  if (const auto frame = find_user_frame(trace)) {
    const size_t slash = frame->file.rfind('/');
    origin->source = frame->file.substr(slash == std::string_view::npos ? 0 : slash + 1);
    if (!frame->line.empty()) origin->source += ":" + std::string(frame->line);
    origin->code = frame->code;
  }
  read_module(modules, *origin);
  known = std::move(origin);
  return known;
}

}  // namespace lissome
