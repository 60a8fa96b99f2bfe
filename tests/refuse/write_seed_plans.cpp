// Writes small finished models that run, from which the tests of refusals make broken ones: a plan for each program
// text of a folder, in which lines "# force PATTERN KERNEL" choose kernels, and plans of transfers, which no text
// gives. Together they hold every kind of step.
//
//   write_seed_plans TEXTS FOLDER      FOLDER/<name>.lissome and its inputs, FOLDER/<name>.npz, for each text
//   write_seed_plans --kinds           every kind of step, one a line
#include <ATen/Context.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "lissome/lower.h"
#include "lissome/lower/tensors.h"
#include "lissome/runtime/step/step_binder.h"

namespace {

using namespace lissome;

struct Declared {
  std::string name, dtype;
  std::vector<int64_t> sizes;
};

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What the text declares with these words; named sizes are at their smallest.
std::vector<Declared> list_declared(const std::string& text, const std::string& words) {
  std::map<std::string, int64_t> dimensions;
  const std::regex dimension(R"(dim ([a-z]+) in ([0-9]+)\.\.)"),
      line("(?:" + words + R"()([a-z0-9]+): ([a-z0-9]+)\[([^\]]*)\])"), size("[a-z0-9]+");
  for (std::sregex_iterator found(text.begin(), text.end(), dimension), end; found != end; ++found)
    dimensions[(*found)[1].str()] = std::stoll((*found)[2].str());
  std::vector<Declared> all;
  for (std::sregex_iterator found(text.begin(), text.end(), line), end; found != end; ++found) {
    Declared declared{(*found)[1].str(), (*found)[2].str(), {}};
    const std::string sizes = (*found)[3].str();
    for (std::sregex_iterator part(sizes.begin(), sizes.end(), size); part != end; ++part) {
      const auto named = dimensions.find(part->str());
      declared.sizes.push_back(named != dimensions.end() ? named->second : std::stoll(part->str()));
    }
    all.push_back(std::move(declared));
  }
  return all;
}

// Integers are small enough for an index into anything that is indexed, floats are positive.
at::Tensor draw(const Declared& declared) {
  if (declared.dtype == "i64") return at::randint(0, 4, declared.sizes, at::kLong);
  if (declared.dtype == "i8") return at::randint(-127, 128, declared.sizes, at::kChar);
  if (declared.dtype == "u8") return at::randint(0, 256, declared.sizes, at::kByte);
  const at::Tensor plain = at::rand(declared.sizes).add(0.1);
  if (declared.dtype == "bf16") return plain.to(at::kBFloat16);
  if (declared.dtype == "f32") return plain;
  throw_error(ErrorKind::usage, "a seed declares ", declared.dtype);
}

LowerOptions read_options(const std::string& text) {
  LowerOptions options;
  options.effort = Effort::fast;
  options.threads = 1;
  const std::regex force("# force (\\S+) (\\S+)");
  for (std::sregex_iterator found(text.begin(), text.end(), force), end; found != end; ++found)
    options.forced.push_back({(*found)[1].str(), (*found)[2].str()});
  return options;
}

void write_text_seed(const std::string& text, const std::filesystem::path& to) {
  std::vector<std::pair<std::string, at::Tensor>> weights;
  for (const Declared& declared : list_declared(text, "parameter @|buffer @"))
    weights.emplace_back(declared.name, draw(declared));
  const Program program = parse_program(text, weights);
  save_prepared(program, lower_program(program, read_options(text)), to.string() + ".lissome");
  std::vector<NamedArray> inputs;
  for (const Declared& declared : list_declared(text, "input %"))
    inputs.push_back({declared.name, share_tensor(draw(declared))});
  save_arrays(to.string() + ".npz", inputs);
}

PlanStep make_step(std::string kernel, int operand, int result) {
  PlanStep step;
  if (kernel == "elementwise")
    step.attributes.set("program", std::vector<std::string>{"load 0 0 0 0 0 0", "multiply 1 0 0 0 0 0"});
  step.kernel = std::move(kernel);
  step.operands = {operand}, step.results = {result};
  return step;
}

// y = x^2 that waits in the session's file, z = x^2 again. Runs in a session with a folder alone.
void write_transfer_seed(const std::filesystem::path& to) {
  Plan plan;
  plan.dimensions = {{"n", 2, 8}};
  const auto add_value = [&](std::string name, Storage storage) {
    plan.values.push_back({std::move(name),
                           storage,
                           PlanKind::tensor,
                           Dtype::f32,
                           true,
                           {SizeExpression::parse("n", plan.dimensions), 16},
                           Format::row_major,
                           -1});
    return static_cast<int>(plan.values.size()) - 1;
  };
  const int x = add_value("x", Storage::input), y = add_value("y", Storage::arena), z = add_value("z", Storage::arena),
            back = add_value("y.restored", Storage::arena), ticket = add_value("y.ticket", Storage::arena);
  plan.values.back().dtype = Dtype::i64, plan.values.back().sizes = {};
  plan.inputs = {{"x", x}};
  plan.outputs = {{"y", back, {}}, {"z", z, {}}};
  plan.steps = {make_step("elementwise", x, y), make_step("offload", y, ticket), make_step("elementwise", x, z),
                make_step("reload", ticket, back)};
  ModelFile file;
  file.metadata = "{}";
  file.program = "input %x: f32[n, 16]\nreturn %x\n";
  put_plan(file, plan);
  save_model_file(to.string() + ".lissome", file);
  save_arrays(to.string() + ".npz", {{"x", share_tensor(at::rand({2, 16}))}});
}

void write_all(const std::filesystem::path& texts, const std::filesystem::path& folder) {
  register_ops();
  set_cache_folder("none");
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(texts)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    at::manual_seed(0);
    try {
      write_text_seed(read_text(path), folder / path.stem());
    } catch (const Error& error) {
      throw_error(error.kind(), path.string(), ": ", error.what());
    }
  }
  write_transfer_seed(folder / "transfers");
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count == 2 && std::string(words[1]) == "--kinds") {
      for (const StepRow& row : step_rows()) std::printf("%s\n", std::string(row.kernel).c_str());
      return 0;
    }
    if (count != 3) throw_error(ErrorKind::usage, "write_seed_plans TEXTS FOLDER");
    write_all(words[1], words[2]);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return exit_code(error.kind());
  }
  return 0;
}
