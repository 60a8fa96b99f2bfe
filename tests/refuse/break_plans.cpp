// Writes broken plans, each the twin of a seed and one rule away from it, with valid checksums.
//
//   break_plans SEEDS FOLDER      FOLDER/<number>.lissome and FOLDER/index.jsonl: file, seed, rule, words, runs
//
// The same seeds give the same files.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "lissome/runtime/step/step_schema.h"
#include "tests/refuse/twins.h"

namespace lissome {

Sizes Seed::sizes_of(PlanValueId value) const {
  DimensionValues smallest;
  for (const PlanDimension& dimension : plan.dimensions) smallest.push_back(dimension.minimum);
  Sizes sizes;
  for (const SizeExpression& size : plan.value(value).sizes) sizes.push_back(size.evaluate(smallest).value());
  return sizes;
}

void Twins::add(const Seed& seed, Twin twin) {
  if (rules_.insert(twin.rule).second) rows_.push_back({seed.name, std::move(twin)});
}

PlanValueId add_value(Twin& twin, Json value) {
  twin.plan["values"].push_back(std::move(value));
  return static_cast<PlanValueId>(twin.plan["values"].size() - 1);
}

PlanValueId add_constant(Twin& twin, Dtype dtype, const Sizes& sizes) {
  const std::string name = "twin." + std::to_string(twin.arrays.size());
  twin.arrays.push_back({name, make_array(dtype, sizes)});
  twin.plan["arrays"].push_back({{"name", name}, {"packed", true}});
  return add_value(twin, {{"name", name},
                          {"storage", "constant"},
                          {"dtype", dtype_name(dtype)},
                          {"sizes", sizes},
                          {"array", twin.plan["arrays"].size() - 1}});
}

namespace {

Seed read_seed(const std::filesystem::path& path) {
  Seed seed{path.stem().string(), load_model_file(path.string()), {}, {}};
  seed.plan = read_plan(seed.file);
  seed.json = parse_json(seed.file.plan, "plan");
  // What only `profile --explain` reads is left out: the choices, and the position of one behind the texts of an
  // origin.
  seed.json.erase("choices");
  for (Json& step : seed.json["steps"]) {
    if (!step.contains("origins")) continue;
    for (Json& origin : step["origins"]) {
      if (origin.size() > 6) origin.erase(6);
    }
  }
  return seed;
}

// Those of few steps first: what is broken there hides behind nothing else.
std::vector<Seed> read_seeds(const std::filesystem::path& folder) {
  std::vector<Seed> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".lissome") seeds.push_back(read_seed(entry.path()));
  }
  std::sort(seeds.begin(), seeds.end(), [](const Seed& a, const Seed& b) {
    return std::pair(a.plan.steps.size(), a.name) < std::pair(b.plan.steps.size(), b.name);
  });
  return seeds;
}

void write_twin(const Seed& seed, const Twin& twin, const std::filesystem::path& path) {
  ModelFile file = seed.file;
  file.plan = print_json(twin.plan);
  for (const NamedArray& array : twin.arrays) file.plan_arrays.push_back(array);
  save_model_file(path.string(), file);
}

void write_all(const std::filesystem::path& seeds, const std::filesystem::path& folder) {
  std::ofstream index(folder / "index.jsonl");
  Twins twins;
  int number = 0;
  for (const Seed& seed : read_seeds(seeds)) {
    break_steps(seed, twins);
    break_tables(seed, twins);
    break_references(seed, twins);
    for (const auto& [name, twin] : twins.take()) {
      const std::string file = std::to_string(number++) + ".lissome";
      write_twin(seed, twin, folder / file);
      index << Json{{"file", file}, {"seed", name}, {"rule", twin.rule}, {"words", twin.words}, {"runs", twin.runs}}
            << "\n";
    }
  }
}

}  // namespace
}  // namespace lissome

int main(int count, char** words) {
  using namespace lissome;
  try {
    if (count != 3) throw_error(ErrorKind::usage, "break_plans SEEDS FOLDER");
    write_all(words[1], words[2]);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return exit_code(error.kind());
  }
  return 0;
}
