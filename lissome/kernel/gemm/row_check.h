// Runs every row of a kernel on the same call and compares with the portable row; for kernel tests.
#pragma once

#include <doctest/doctest.h>

#include <initializer_list>
#include <string_view>
#include <vector>

#include "lissome/kernel/kernel_table.h"
#include "lissome/kernel/test_arrays.h"

namespace lissome {

// The kernel on one instruction set.
inline KernelFunction find_level(std::string_view name, Isa isa) {
  for (const KernelRow& row : kernel_rows(name)) {
    if (row.isa == isa) return row.function;
  }
  FAIL("no such level");
  return nullptr;
}

// `set_y(call, memory)` lets the call write `count` floats.
template <typename Call, typename SetY>
void check_rows(std::string_view name, Call call, int64_t count, float tolerance, const SetY& set_y) {
  const auto run = [&](const KernelRow& row, int parts) {
    std::vector<float> y(static_cast<size_t>(count), 777.0f);
    set_y(call, y.data());
    for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
    return y;
  };
  const auto rows = kernel_rows(name);
  const auto wanted = run(rows.back(), 1);
  for (const KernelRow& row : rows) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 2, 5}) {
      CAPTURE(isa_name(row.isa));
      CAPTURE(parts);
      CHECK(count_differences(run(row, parts), wanted, tolerance) == 0);
    }
  }
}

}  // namespace lissome
