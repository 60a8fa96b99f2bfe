#include "lissome/base/processor_topology.h"

#include <fstream>
#include <set>

namespace lissome {

int count_cores(const std::string& root, const std::vector<int>& processors) {
  int cores = 0;
  std::set<std::string> seen;  // the lists of siblings, one for each core
  for (const int processor : processors) {
    std::ifstream file(root + "/sys/devices/system/cpu/cpu" + std::to_string(processor) +
                       "/topology/thread_siblings_list");
    std::string siblings;
    if (!std::getline(file, siblings) || seen.insert(siblings).second) ++cores;
  }
  return cores;
}

}  // namespace lissome
