#include "tests/fuzz/program/graph_case.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "lissome/base.h"
#include "tests/fuzz/filled_array.h"
#include "tests/fuzz/stored_zip.h"

namespace lissome {
namespace {

constexpr int64_t kMostElements = 1 << 14;

bool add_members(StoredZip& zip, const Json& rows, const std::string& folder) {
  if (!rows.is_object()) return false;
  for (const auto& [name, row] : rows.items()) {
    if (!row.is_array() || row.size() != 3 || !row[0].is_string() || !row[1].is_number_integer() ||
        !row[2].is_number_integer()) {
      return false;
    }
    const std::optional<Dtype> dtype = parse_dtype(row[0].get_ref<const std::string&>());
    const auto elements = row[1].get<int64_t>();
    if (!dtype || elements < 0 || elements > kMostElements) return false;
    const Array array = make_filled({*dtype, {elements}, row[2].get<uint64_t>()});
    zip.add(folder + name, {static_cast<const char*>(array.storage.get()), static_cast<size_t>(array.bytes())});
  }
  return true;
}

}  // namespace

std::string make_graph_archive(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return {};
  const Json head = Json::parse(text.substr(0, end), nullptr, false);
  if (!head.is_object()) return {};
  for (const char* name : {"weights", "constants", "bytes", "constant_bytes"})
    if (!head.contains(name)) return {};
  StoredZip zip;
  zip.add("model/archive_format", "pt2");
  zip.add("model/archive_version", "0");
  zip.add("model/byteorder", "little");
  zip.add("model/models/model.json", text.substr(end + 1));
  zip.add("model/data/weights/model_weights_config.json", head["weights"].dump());
  zip.add("model/data/constants/model_constants_config.json", head["constants"].dump());
  if (!add_members(zip, head["bytes"], "model/data/weights/")) return {};
  if (!add_members(zip, head["constant_bytes"], "model/data/constants/")) return {};
  return zip.finish();
}

uint64_t read_graph_data(std::string_view text) {
  const Json head = Json::parse(text.substr(0, text.find('\n')), nullptr, false);
  return head.is_object() && head.contains("data") && head["data"].is_number_integer() ? head["data"].get<uint64_t>()
                                                                                       : 0;
}

}  // namespace lissome
