#include "lissome/cli/writable.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>

#include "lissome/base.h"

namespace lissome {

void check_writable(const std::string& path) {
  if (path.empty()) return;
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  struct stat facts{};
  if (stat(folder.c_str(), &facts) != 0)
    throw_error(ErrorKind::usage, "'", path, "' cannot be written: there is no folder '", folder, "'");
  if (!S_ISDIR(facts.st_mode))
    throw_error(ErrorKind::usage, "'", path, "' cannot be written: '", folder, "' is not a folder");
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK, AT_EACCESS) != 0)
    throw_error(ErrorKind::io, "there is no permission to write into '", folder, "' (for '", path, "')");
  if (stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode))
    throw_error(ErrorKind::usage, "'", path, "' is a folder");
  sweep_temporary_files_beside(path);
}

namespace {

namespace fs = std::filesystem;

// What tells files apart: the file itself where it is there, links followed, else the place that its name leads to.
// Nothing for an empty path and for what is no regular file.
std::optional<std::string> identify(const std::string& path) {
  if (path.empty()) return std::nullopt;
  struct stat facts{};
  if (stat(path.c_str(), &facts) == 0) {
    if (!S_ISREG(facts.st_mode)) return std::nullopt;
    return std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino);
  }
  std::error_code failed;  // then the name stands for itself
  const fs::path place = fs::weakly_canonical(fs::absolute(path, failed), failed);
  return place.empty() ? path : place.string();
}

}  // namespace

void refuse_overwriting(const std::vector<std::string>& outputs, const std::string& model,
                        const std::vector<std::string>& data) {
  std::map<std::string, std::string> taken;  // what a file is, for the message
  for (const std::string& path : data) {
    if (const auto file = identify(path)) taken.emplace(*file, "an input");
  }
  if (const auto file = identify(model)) taken.insert_or_assign(*file, "the model");
  for (const std::string& output : outputs) {
    const auto file = identify(output);
    if (!file) continue;
    const auto [found, is_new] = taken.emplace(*file, quote(output));
    if (is_new) continue;
    if (found->second == "an input" || found->second == "the model")
      throw_error(ErrorKind::usage, "the output ", quote(output), " is ", found->second,
                  ", which would be overwritten. Give another file");
    throw_error(ErrorKind::usage, "the outputs ", found->second, " and ", quote(output),
                " are one file, and the later would overwrite the earlier. Give another file");
  }
}

}  // namespace lissome
