#include "lissome/cli/writable.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

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
  if (access(folder.c_str(), W_OK) != 0)
    throw_error(ErrorKind::io, "there is no permission to write into '", folder, "' (for '", path, "')");
  if (stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode))
    throw_error(ErrorKind::usage, "'", path, "' is a folder");
  sweep_temporary_files_beside(path);
}

void refuse_overwriting(const std::string& output, const std::string& model, const std::vector<std::string>& data) {
  std::vector<std::string> read = data;
  read.push_back(model);
  for (const std::string& path : read) {
    std::error_code failed;  // ignored: a file that does not exist is not an input
    if (std::filesystem::equivalent(output, path, failed) && !failed)
      throw_error(ErrorKind::usage, "the output ", quote(output), " is ", path == model ? "the model" : "an input",
                  ", which would be overwritten. Give another file");
  }
}

}  // namespace lissome
