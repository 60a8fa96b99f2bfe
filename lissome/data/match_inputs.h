// match_inputs: which array feeds which input. The one rule for every file, every command and Python; fit.cpp, which
// then converts, is its only caller.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lissome/data.h"

namespace lissome {

struct NamedSizes {
  std::string name;
  Dtype dtype = Dtype::f32;
  Sizes sizes;
};

// Whether the type and the sizes of an array suit an input.
using FitsInput = std::function<bool(size_t array, size_t input)>;

// For each input the position of its array. In this order: equal names; names that are equal with underscores for
// dots ("caches_0", "caches.0"), then names of which one is the end of the other after a dot ("ids", "batch.ids"),
// both where only one pairing is possible; arr_0, arr_1, ... (what numpy.savez calls arrays without names) in the
// order of the inputs; and, where no name led to an array and there are as many arrays as inputs, `fits` when it
// leaves one way. A pairing of unequal names and arrays that are left out are added to `notes`. Throws invalid_input
// with both lists for everything else.
std::vector<size_t> match_inputs(std::span<const NamedSizes> arrays, std::span<const DataSignature> inputs,
                                 const FitsInput& fits, const std::string& source, std::vector<std::string>* notes);

}  // namespace lissome
