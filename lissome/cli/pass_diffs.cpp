#include "lissome/cli/pass_diffs.h"

#include <nlohmann/json.hpp>

namespace lissome {

Json list_diffs(const std::vector<PassResult>& results) {
  Json diffs = Json::array();
  for (const PassResult& result : results) {
    if (!result.diff.empty()) diffs.push_back({{"pass", result.name}, {"text", result.diff}});
  }
  return diffs;
}

std::string describe_diffs(const std::vector<PassResult>& results) {
  std::string text;
  for (const PassResult& result : results) {
    if (!result.diff.empty()) text += "-- " + result.name + "\n" + result.diff + "\n";
  }
  return text;
}

}  // namespace lissome
