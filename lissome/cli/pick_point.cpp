#include "lissome/cli/pick_point.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "lissome/base.h"
#include "lissome/cli/json_answer.h"
#include "lissome/report.h"

namespace lissome {
namespace {

constexpr size_t kMostFrontBytes = 1 << 20;  // of front.json

Json read_front(const std::string& folder, const std::string& model) {
  const std::string path = folder + "/front.json";
  if (access(path.c_str(), F_OK) != 0)
    throw_error(ErrorKind::usage, quote(path), " is not there\nlissome optimize ", model, " --front ", folder,
                " writes it");
  Json front = parse_json(read_text_file(path, kMostFrontBytes), path);
  if (!front.is_object() || !front.value("points", Json()).is_array())
    throw_error(ErrorKind::invalid_input, quote(path), " is no front that lissome optimize wrote");
  if (front.value("model", "") != model)
    throw_error(ErrorKind::usage, "the front in ", quote(folder), " is that of ", quote(front.value("model", "")),
                ", not of ", quote(model));
  return front;
}

const Json& find_point(const Json& points, const std::string& name) {
  std::vector<std::string> names;
  for (const Json& point : points) {
    if (!point.is_object() || !point.value("file", Json()).is_string()) continue;
    names.push_back(point.value("name", ""));
    if (names.back() == name) return point;
  }
  throw_error(ErrorKind::usage, "the front has no version ", quote(name), "; it has ", join(names, ", "));
}

// Of the folder itself: a list from elsewhere names no other files.
std::string find_file(const std::string& folder, const Json& point) {
  const std::string file = point.at("file").get<std::string>();
  if (file.find('/') != std::string::npos)
    throw_error(ErrorKind::invalid_input, "front.json names a file outside of its folder: ", quote(file));
  return folder + "/" + file;
}

}  // namespace

void pick_point(const std::string& folder, const std::string& name, const std::string& model, const std::string& output,
                bool json, const Console& console) {
  const Json front = read_front(folder, model);
  const Json& point = find_point(front.at("points"), name);
  save_model_file(output, load_model_file(find_file(folder, point)));
  if (json) return console.print(print_answer("optimize", {{"picked", point}, {"output", output}}, {}));
  console.print(name + ": " + format_duration(point.value("seconds", 0.0)) + " a call, " +
                format_bytes(point.value("memory", int64_t{0})) + " of memory, a file of " +
                format_bytes(point.value("size", int64_t{0})) + "\nwritten to " + output + "\n");
}

}  // namespace lissome
