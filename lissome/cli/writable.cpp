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

namespace {

namespace fs = std::filesystem;

// Errors are ignored: what cannot be found out about is not there yet, and its name decides.
bool is_one_file(const std::string& path, const std::string& other) {
  std::error_code failed;
  const fs::file_type type = fs::status(path, failed).type();
  if (type != fs::file_type::not_found && type != fs::file_type::none && type != fs::file_type::regular) return false;
  if (fs::equivalent(path, other, failed) && !failed) return true;
  const auto find_place = [&](const std::string& name) {
    return fs::weakly_canonical(fs::absolute(name, failed), failed);
  };
  const fs::path place = find_place(path);
  return !place.empty() && place == find_place(other);
}

}  // namespace

void refuse_overwriting(const std::vector<std::string>& outputs, const std::string& model,
                        const std::vector<std::string>& data) {
  std::vector<std::string> read = data;
  read.push_back(model);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].empty()) continue;
    for (const std::string& path : read) {
      if (!path.empty() && is_one_file(outputs[i], path))
        throw_error(ErrorKind::usage, "the output ", quote(outputs[i]), " is ",
                    path == model ? "the model" : "an input", ", which would be overwritten. Give another file");
    }
    for (size_t k = 0; k < i; ++k) {
      if (!outputs[k].empty() && is_one_file(outputs[i], outputs[k]))
        throw_error(ErrorKind::usage, "the outputs ", quote(outputs[k]), " and ", quote(outputs[i]),
                    " are one file, and the later would overwrite the earlier. Give another file");
    }
  }
}

}  // namespace lissome
