#include "lissome/runtime/memory/address_space.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "lissome/base.h"

namespace lissome {
namespace {

// Of this process, in use now. 0 where the system does not tell.
int64_t read_address_space() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

bool is_libtorch_loaded() {
  void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

}  // namespace

void require_space_for_libtorch() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || is_libtorch_loaded()) return;
  const int64_t used = read_address_space(), needed = used + kLibtorchAddressSpace;
  if (static_cast<rlim_t>(needed) <= limit.rlim_cur) return;
  throw_error(ErrorKind::over_budget, "libtorch needs ", format_bytes(kLibtorchAddressSpace),
              " of address space to be loaded, and the limit of ", format_bytes(static_cast<int64_t>(limit.rlim_cur)),
              " (ulimit -v) leaves ", format_bytes(static_cast<int64_t>(limit.rlim_cur) - used),
              ".\n      Raise the limit to ", format_bytes(needed),
              " or more, or run a finished .lissome, whose nodes need no libtorch");
}

}  // namespace lissome
