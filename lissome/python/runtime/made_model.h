// A finished model on its way from the binding that makes models (_lissome) to the one that runs them (_runtime). The
// two are separate modules, perhaps built with different versions of pybind11, so it travels in a capsule.
#pragma once

#include <memory>

#include "lissome/base.h"
#include "lissome/runtime.h"

namespace lissome {

// The name of the capsule. Both modules link one liblissome_runtime.so and come from one version of lissome.
inline constexpr const char* kMadeModel = "lissome.made_model";

struct MadeModel {
  ModelFile file;
  std::shared_ptr<const Plan> plan;
  SessionOptions options;
};

}  // namespace lissome
