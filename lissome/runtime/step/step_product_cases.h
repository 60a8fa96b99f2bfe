// Plans of one step made by hand, for tests of what steps refuse: a table of steps that bind and run, and what a
// changed one is refused with.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lissome/runtime/plan/plan.h"

namespace lissome {

struct TestTensor {
  Dtype dtype;
  Sizes sizes;
  Format format = Format::row_major;
  bool is_expanded = false;  // every element is the same one in memory
};

using TestAttributes = std::vector<std::pair<std::string, Attribute>>;

struct StepCase {
  std::string kernel;
  TestAttributes attributes;
  std::vector<std::optional<TestTensor>> operands;
  std::vector<TestTensor> results;

  void set(const std::string& name, Attribute value);
};

TestTensor make_f32(Sizes sizes);
TestTensor make_image(Dtype dtype, Sizes sizes);  // channels last
// A square window.
TestAttributes make_window(int64_t kernel, int64_t stride, int64_t padding, size_t rank = 2);

// Operands are constants of zeros, seen through a view where they are expanded; results are outputs.
Plan make_plan(const StepCase& from);
// Empty when the step binds and runs; else what it is refused with. Checks that that is invalid_input.
std::string refuse(const StepCase& from);

// Those of convolutions, pools, products, bytes and recurrent layers.
std::vector<StepCase> list_product_cases();

}  // namespace lissome
