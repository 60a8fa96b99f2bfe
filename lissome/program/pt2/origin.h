// Where a node comes from in the user's own code, out of the metadata that torch.export keeps with it. Torch-free but
// for the type that it fills.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "lissome/program/program.h"
#include "lissome/program/pt2/fields.h"

namespace lissome {

// Nodes of one call share one Origin.
class OriginTable {
 public:
  // `metadata` of a serialized node; null when it says nothing.
  std::shared_ptr<const Origin> find(const Json* metadata);

 private:
  std::unordered_map<std::string, std::shared_ptr<const Origin>> known_;
};

}  // namespace lissome
