// Broken plans, each the twin of a seed that runs and one rule away from it. break_plans writes them; break_steps,
// break_tables and break_references find the rules.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lissome/base.h"
#include "lissome/runtime.h"

namespace lissome {

struct Twin {
  std::string rule;                // "linear_f32: operand 'x': dtype"; the class is what stands last
  std::vector<std::string> words;  // of the refusal
  Json plan;
  std::vector<NamedArray> arrays;  // that the plan names beside those of the seed
  bool runs = false;               // a control: the same change without the fault runs
};

struct Seed {
  std::string name;
  ModelFile file;
  Plan plan;
  Json json;  // of the plan

  // Of a value when named dimensions take their smallest sizes, as the inputs of the seed do.
  Sizes sizes_of(PlanValueId value) const;
};

// Keeps the first twin of each rule.
class Twins {
 public:
  void add(const Seed& seed, Twin twin);
  // Whether a seed before this one has broken the rule.
  bool has(const std::string& rule) const { return rules_.contains(rule); }

  struct Row {
    std::string seed;
    Twin twin;
  };
  // Of the last seed alone.
  std::vector<Row> take() { return std::exchange(rows_, {}); }

 private:
  std::vector<Row> rows_;
  std::set<std::string> rules_;
};

// A dense constant of zeros that no seed has; its position among the values.
PlanValueId add_constant(Twin& twin, Dtype dtype, const Sizes& sizes);
// Any value; its position.
PlanValueId add_value(Twin& twin, Json value);

void break_steps(const Seed& seed, Twins& twins);
void break_tables(const Seed& seed, Twins& twins);
void break_references(const Seed& seed, Twins& twins);

}  // namespace lissome
