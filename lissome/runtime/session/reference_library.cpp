// Finds and loads liblissome_reference.so, and libraries with ops of the user's own.
#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "lissome/op_library.h"
#include "lissome/own_folder.h"
#include "lissome/runtime/memory/address_space.h"
#include "lissome/runtime/session/reference.h"

namespace lissome {
namespace {

// "aten::softmax.int (%4, encoder.py:88), ..." of the first few nodes.
std::string name_nodes(const Plan& plan) {
  std::vector<std::string> nodes;
  for (const PlanStep& step : plan.steps) {
    if (step.kernel != kReferenceStep) continue;
    for (const PlanOrigin& origin : step.origins)
      nodes.push_back(origin.op + " (%" + origin.node + (origin.source.empty() ? "" : ", " + origin.source) + ")");
  }
  return join_few(std::move(nodes), 5);
}

}  // namespace

std::unique_ptr<Reference> open_reference(const ReferenceSetup& setup) {
  require_space_for_libtorch();
  const std::string path = find_own_folder() + "liblissome_reference.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, "lissome_open_reference") : nullptr;
  if (!symbol) {
    const char* reason = dlerror();
    throw_error(ErrorKind::unsupported,
                "these nodes need libtorch, which is not at hand here: ", name_nodes(*setup.plan),
                ". Seen: ", reason ? reason : "no reason given",
                "\n      Install lissome with torch, or make a model whose nodes all have kernels of their own.");
  }
  return std::unique_ptr<Reference>(reinterpret_cast<OpenReference>(symbol)(setup));
}

void load_op_library(const std::string& path) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    throw_error(ErrorKind::usage, "there is no library ", quote(path));
  }
  // Ops register themselves with libtorch, which the library need not know where to find.
  const std::string torch = find_own_folder() + "liblissome_reference.so";
  const auto load = [](const std::string& file, const std::string& what) {
    if (dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
    const char* const reason = dlerror();
    throw_error(ErrorKind::unsupported, what, " could not be loaded: ", reason ? reason : "no reason given");
  };
  load(torch, "ops of your own need libtorch, which");
  char* const full = realpath(path.c_str(), nullptr);  // a name without a slash would be searched for
  const std::string found = full != nullptr ? full : path;
  std::free(full);
  load(found, "the library " + quote(path));
}

}  // namespace lissome
