#include "lissome/base/cache_folder.h"

#include <filesystem>
#include <mutex>
#include <optional>

#include "lissome/base/environment.h"

namespace lissome {
namespace {

std::mutex mutex;
std::optional<std::string> chosen;

std::string find_default() {
  if (const auto folder = read_environment("LISSOME_CACHE")) return *folder;
  if (const auto caches = read_environment("XDG_CACHE_HOME")) return *caches + "/lissome";
  if (const auto home = read_environment("HOME")) return *home + "/.cache/lissome";
  return "none";
}

}  // namespace

std::string cache_folder() {
  const std::lock_guard lock(mutex);
  const std::string folder = chosen ? *chosen : find_default();
  if (folder == "none") return {};
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  return failed ? std::string() : folder;
}

void set_cache_folder(std::string path) {
  const std::lock_guard lock(mutex);
  chosen = std::move(path);
}

}  // namespace lissome
