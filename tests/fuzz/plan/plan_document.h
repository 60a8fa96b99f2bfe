// A case of fuzz_plan as an editable document: the head and the plan, both JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lissome/base.h"
#include "tests/fuzz/json_edits.h"
#include "tests/fuzz/random.h"

namespace lissome {

class PlanDocument {
 public:
  Json head, plan;

  // Nothing when the text has not the form of a case, or the plan has no values or steps.
  static std::optional<PlanDocument> parse(std::string_view text);
  // Whether the lists are there that edits go through: one edit may leave them out.
  bool is_editable() const;
  std::string print() const;

  Json& values() { return plan["values"]; }
  Json& steps() { return plan["steps"]; }
  Json& value(int id) { return values().at(static_cast<size_t>(id)); }
  // In numbers, named dimensions at their extents; nothing where an expression says more than a name.
  std::optional<Sizes> sizes_of(int id) const;
  std::string dtype_of(int id) const;
  int add_value(std::string_view storage, std::string_view dtype, const Json& sizes);
  // With an array of its own, filled by `fill`.
  int add_constant(std::string_view dtype, const Sizes& sizes, uint64_t fill);
  void add_output(int value);
  // Values that exist before step `position`.
  std::vector<int> list_defined(size_t position) const;
  // An operand of this step or of one behind it becomes another value.
  void replace_operand(size_t first_step, int before, int after, FuzzRandom& random);

 private:
  int64_t find_extent(const std::string& name) const;
};

}  // namespace lissome
