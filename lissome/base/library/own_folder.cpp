#include "lissome/own_folder.h"

#include <dlfcn.h>

namespace lissome {

std::string find_own_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&find_own_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

}  // namespace lissome
