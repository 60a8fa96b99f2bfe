#include "lissome/cli/pick_point.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "lissome/base.h"
#include "lissome/cli/json_answer.h"
#include "lissome/cli/writable.h"
#include "lissome/report.h"

namespace lissome {
namespace {

constexpr size_t kMostFrontBytes = 1 << 20;  // of front.json

bool is_point(const Json& point) {
  const auto holds = [&](const char* key, bool (Json::*is)() const noexcept) {
    return point.contains(key) && (point[key].*is)();
  };
  return point.is_object() && holds("name", &Json::is_string) && holds("file", &Json::is_string) &&
         holds("seconds", &Json::is_number) && holds("memory", &Json::is_number_integer) &&
         holds("size", &Json::is_number_integer);
}

Json read_front(const std::string& folder, const std::string& model) {
  const std::string path = folder + "/front.json";
  std::error_code none;
  if (!std::filesystem::exists(path, none))
    throw_error(ErrorKind::usage, quote(path), " is not there\nlissome optimize ", model, " --front ", folder,
                " writes it");
  Json front = parse_json(read_text_file(path, kMostFrontBytes), path);
  const bool fits = front.is_object() && front.contains("points") && front["points"].is_array() &&
                    front.contains("model") && front["model"].is_string() &&
                    std::ranges::all_of(front["points"], is_point);
  if (!fits) throw_error(ErrorKind::invalid_input, quote(path), " is no front that lissome optimize wrote");
  if (const std::string of = front["model"]; of != model)
    throw_error(ErrorKind::usage, "the front in ", quote(folder), " is that of ", quote(of), ", not of ", quote(model));
  return front;
}

const Json& find_point(const Json& points, const std::string& name) {
  std::vector<std::string> names;
  for (const Json& point : points) {
    if (point["name"] == name) return point;
    names.push_back(quote(point["name"].get<std::string>()));
  }
  throw_error(ErrorKind::usage, "the front has no version ", quote(name), "; it has ", join(names, ", "));
}

// Of the folder itself: a list from elsewhere names no other files.
std::string find_file(const std::string& folder, const Json& point) {
  const std::string file = point["file"];
  if (file.empty() || file == "." || file == ".." || file.find('/') != std::string::npos ||
      file.find('\0') != std::string::npos)
    throw_error(ErrorKind::invalid_input, "front.json names a file outside of its folder: ", quote(file));
  return folder + "/" + file;
}

}  // namespace

void pick_point(const std::string& folder, const std::string& name, const std::string& model, const std::string& output,
                bool json, const Console& console) {
  const Json front = read_front(folder, model);
  const Json& point = find_point(front.at("points"), name);
  const std::string file = find_file(folder, point);
  refuse_overwriting({output}, model, {file});
  const ModelFile picked = load_model_file(file);
  std::error_code unknown;
  if (const auto bytes = std::filesystem::file_size(file, unknown); bytes != point["size"].get<uint64_t>())
    throw_error(ErrorKind::invalid_input, quote(file), " has ", bytes, " bytes, the version ", quote(name),
                " of the front has ", point["size"].get<int64_t>(), ": it is another file than the search wrote");
  save_model_file(output, picked);
  if (json) return console.print(print_answer("optimize", {{"picked", point}, {"output", output}}, {}));
  console.print(name + ": " + format_duration(point["seconds"].get<double>()) + " a call, " +
                format_bytes(point["memory"].get<int64_t>()) + " of memory, a file of " +
                format_bytes(point["size"].get<int64_t>()) + "\nwritten to " + output + "\n");
}

}  // namespace lissome
