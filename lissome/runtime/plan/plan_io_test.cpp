// Files of plan format 2, which has other names for some kernels, are read.
#include "lissome/runtime/plan/plan_io.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>

#include "lissome/runtime/step/step_product_cases.h"
#include "lissome/runtime/step/step_test_cases.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

// As format 2 would write it; `before` is the name of the kernel there.
ModelFile write_as_format(const Plan& plan, const std::string& format, const std::string& before) {
  ModelFile file;
  put_plan(file, plan);
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = file.plan.find(from);
    REQUIRE(at != std::string::npos);
    file.plan.replace(at, from.size(), to);
  };
  replace("\"format\":3", "\"format\":" + format);
  replace("\"kernel\":\"" + plan.steps.at(0).kernel + "\"", "\"kernel\":\"" + before + "\"");
  return file;
}

Plan make_plan_of(std::string_view kernel) {
  for (const StepCase& one : list_product_cases()) {
    if (one.kernel == kernel) return make_plan(one);
  }
  return step_cases::find_case(kernel).plan;
}

}  // namespace

TEST_CASE("kernels of a plan of format 2 go by their new names") {
  const std::pair<const char*, const char*> renamed[] = {
      {"nll_loss", "class_loss"}, {"cross_entropy_gradient", "class_loss_gradient"},
      {"col2im", "fold_columns"}, {"gather_rows", "gather"},
      {"lut_u8", "table_u8"},     {"max_pool_indices", "max_pool_places"},
      {"gather", "take"},
  };
  for (const auto& [now, before] : renamed) {
    CAPTURE(now);
    const Plan plan = make_plan_of(now);
    CHECK(read_plan(write_as_format(plan, "2", before)).steps.at(0).kernel == now);
    CHECK(read_plan(write_as_format(plan, "3", now)).steps.at(0).kernel == now);
  }
}

TEST_CASE("an old name is unknown in the new format, and an older format is refused") {
  const Plan plan = make_plan_of("lut_u8");
  EXPECT_ERROR(invalid_input, read_plan(write_as_format(plan, "3", "table_u8")), "table_u8");
  EXPECT_ERROR(invalid_input, read_plan(write_as_format(plan, "1", "lut_u8")), "lissome prepare");
}
