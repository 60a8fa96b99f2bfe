// Control groups. /proc/self/cgroup tells the group of this process: "0::/group" in version 2, "3:cpu,cpuacct:/group"
// in version 1. In a container the group may lie outside of what is mounted, so the mount's own root is always read
// too.
#include "lissome/base/processor_quota.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

#include "lissome/base/text.h"

namespace lissome {
namespace {

std::vector<std::string> read_words(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  return words;
}

// A plain number; "max" and -1 mean no limit, as a missing file does.
std::optional<int64_t> parse_limit(const std::string& word) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (code != std::errc() || end != word.data() + word.size() || value <= 0) return std::nullopt;
  return value;
}

std::optional<int64_t> read_limit(const std::string& path) {
  const auto words = read_words(path);
  return words.size() == 1 ? parse_limit(words[0]) : std::nullopt;
}

// The folders of this process's group and of all groups above it. `controller` is empty for version 2.
std::vector<std::string> list_groups(const std::string& root, const std::string& controller) {
  std::vector<std::string> folders;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const auto listed = split(names, ',');
    if (controller.empty() ? !names.empty() : std::find(listed.begin(), listed.end(), controller) == listed.end())
      continue;
    const std::string mount = root + "/sys/fs/cgroup" + (controller.empty() ? "" : "/" + names);
    std::string group = line.substr(second + 1);
    for (std::string base : {mount, root + "/sys/fs/cgroup/" + controller}) {
      std::string path = group;
      while (true) {
        while (!path.empty() && path.back() == '/') path.pop_back();
        folders.push_back(base + path);
        if (path.empty()) break;
        path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
      }
    }
  }
  return folders;
}

template <typename Number>
void keep_smaller(std::optional<Number>* smallest, std::optional<Number> value) {
  if (value && (!*smallest || *value < **smallest)) *smallest = value;
}

}  // namespace

std::optional<double> read_processor_quota(const std::string& root) {
  std::optional<double> quota;
  const auto share = [](std::optional<int64_t> time, std::optional<int64_t> period) -> std::optional<double> {
    if (!time || !period) return std::nullopt;
    return static_cast<double>(*time) / static_cast<double>(*period);
  };
  for (const std::string& folder : list_groups(root, "")) {
    const auto words = read_words(folder + "/cpu.max");
    if (words.size() == 2) keep_smaller(&quota, share(parse_limit(words[0]), parse_limit(words[1])));
  }
  for (const std::string& folder : list_groups(root, "cpu"))
    keep_smaller(&quota, share(read_limit(folder + "/cpu.cfs_quota_us"), read_limit(folder + "/cpu.cfs_period_us")));
  return quota;
}

std::optional<int64_t> read_memory_limit(const std::string& root) {
  std::optional<int64_t> limit;
  for (const std::string& folder : list_groups(root, "")) keep_smaller(&limit, read_limit(folder + "/memory.max"));
  for (const std::string& folder : list_groups(root, "memory"))
    keep_smaller(&limit, read_limit(folder + "/memory.limit_in_bytes"));
  return limit;
}

}  // namespace lissome
