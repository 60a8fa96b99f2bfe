// A property of every pass: whatever ran before it, the program verifies afterwards and gives the same numbers. For
// each parity case some random subsets of the passes, in any order, are run one by one; whatever a pass changed is
// interpreted on all inputs of the case and compared with the program before it. The subsets depend on the seed, the
// case's name and the number of the trial alone. Exit status 1 when any trial fails; what it did is printed.
//
//   run_passes [--seed N] [--trials N] FOLDER [NAME...]
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "case_runs.h"
#include "lissome/base.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int kTrials = 8;
constexpr int kNetworkTrials = 4;  // whole networks take longer

struct Settings {
  uint64_t seed = kSeed;
  int trials = 0;  // 0: by the case's size
};

struct Totals {
  int trials = 0, failed = 0;
  std::map<std::string, std::pair<int, int>>
      fired;  // by pass: in how many trials it ran, in how many it changed anything
};

// What a program computes from the inputs of every run, from the same state each time: outputs, then written state.
struct Numbers {
  std::vector<std::vector<c10::IValue>> outputs;
  std::vector<std::vector<at::Tensor>> written;
};

Numbers compute_numbers(const Program& program, const ParityCase& parity) {
  Numbers numbers;
  for (const ParityRun& run : parity.runs) {
    InterpretOptions options;
    options.written = &numbers.written.emplace_back();
    numbers.outputs.push_back(run_program(copy_state(program), parity, copy_values(run.inputs), options));
  }
  return numbers;
}

// Throws, naming the first output or write that differs by more than 1e-5 of its largest element.
void compare_numbers(const Numbers& after, const Numbers& before) {
  for (size_t k = 0; k < before.outputs.size(); ++k) {
    const std::string run = " of run " + std::to_string(k);
    for (size_t i = 0; i < before.outputs[k].size(); ++i) {
      require_agreement("output " + std::to_string(i) + run,
                        compare_values(after.outputs[k].at(i), before.outputs[k][i], {}));
    }
    LISSOME_CHECK(after.written[k].size() == before.written[k].size(), "another number of state writes");
    for (size_t i = 0; i < before.written[k].size(); ++i) {
      require_agreement("write " + std::to_string(i) + run,
                        compare_values(after.written[k][i], before.written[k][i], {}));
    }
  }
}

// The runs in order, each with the state that the one before left behind, against PyTorch's answers: up to 1e-5, or no
// further from float64 than twice PyTorch's distance. Where numbers are rounding alone (the mean of what has none),
// only this can tell.
void compare_with_python(Program program, const ParityCase& parity) {
  program = copy_state(program);
  for (size_t k = 0; k < parity.runs.size(); ++k) {
    const ParityRun& run = parity.runs[k];
    InterpretOptions options;
    options.write_state = true;
    const auto outputs = run_program(program, parity, copy_values(run.inputs), options);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const c10::IValue f64 = run.f64.empty() ? c10::IValue() : run.f64[i];
      require_agreement("output " + std::to_string(i) + " of run " + std::to_string(k),
                        compare_values(outputs[i], run.expected.at(i), f64));
    }
  }
  if (!parity.state) return;
  for (const auto& [name, tensor] : parity.state->after) {
    const Weight* weight = program.find_weight(name);
    c10::IValue f64;
    for (const auto& [other, wide] : parity.state->f64) {
      if (other == name) f64 = wide;
    }
    if (weight != nullptr) require_agreement("state " + name, compare_values(weight->tensor, tensor, f64));
  }
}

class Trial {
 public:
  Trial(const ParityCase& parity, const Program& program, const Numbers& numbers, uint64_t seed)
      : parity_(parity), program_(program), numbers_(numbers), random_(seed) {}

  // Empty, or what went wrong.
  std::string run(bool ordered, Totals& totals) {
    choose_passes(ordered);
    for (const Pass* pass : passes_) {
      done_.emplace_back(pass->name);
      try {
        run_pass(*pass, totals);
      } catch (const std::exception& error) {
        return "after " + join(done_, ", ") + ":\n    " + describe_failure(error);
      }
    }
    return {};
  }

 private:
  // Two of three; every other trial in the table's order, in which more of them find something, the others in any order
  // and some passes twice.
  void choose_passes(bool ordered) {
    for (const Pass& pass : list_passes()) {
      const uint64_t chance = random_() % 6;
      if (chance < 4) passes_.push_back(&pass);
      if (chance < 2 && !ordered) passes_.push_back(&pass);
    }
    if (!ordered) std::shuffle(passes_.begin(), passes_.end(), random_);
  }

  void run_pass(const Pass& pass, Totals& totals) {
    auto& fired = totals.fired[std::string(pass.name)];
    ++fired.first;
    if (run_passes({&pass, 1}, program_, {}).front().rewrites == 0) return;
    ++fired.second;
    Numbers numbers = compute_numbers(program_, parity_);
    try {
      compare_numbers(numbers, numbers_);
    } catch (const Error& difference) {
      try {
        compare_with_python(program_, parity_);
      } catch (const Error& distance) {
        throw_error(ErrorKind::internal, difference.message(), "\n    against PyTorch: ", distance.message());
      }
    }
    numbers_ = std::move(numbers);
  }

  const ParityCase& parity_;
  Program program_;
  Numbers numbers_;
  std::mt19937_64 random_;
  std::vector<const Pass*> passes_;
  std::vector<std::string> done_;
};

uint64_t make_seed(const Settings& settings, const std::string& name, int trial) {
  uint64_t seed = settings.seed * 1000003 + static_cast<uint64_t>(trial);
  for (const char letter : name) seed = seed * 31 + static_cast<unsigned char>(letter);
  return seed;
}

void run_case(const std::string& folder, const Settings& settings, Totals& totals) {
  const std::string name = std::filesystem::path(folder).filename().string();
  std::vector<std::string> failures;
  try {
    const ParityCase parity = read_parity_case(folder);
    const Program program = import_pt2(parity.model());
    const Numbers numbers = compute_numbers(program, parity);
    const int usual = parity.family.starts_with("networks") ? kNetworkTrials : kTrials;
    const int trials = settings.trials > 0 ? settings.trials : usual;
    for (int trial = 0; trial < trials; ++trial) {
      ++totals.trials;
      const std::string failure =
          Trial(parity, program, numbers, make_seed(settings, name, trial)).run(trial % 2 == 0, totals);
      if (failure.empty()) continue;
      ++totals.failed;
      failures.push_back("trial " + std::to_string(trial) + " " + failure);
    }
  } catch (const std::exception& error) {
    ++totals.failed;
    failures.push_back(describe_failure(error));
  }
  std::printf("%-42s %s\n", name.c_str(), failures.empty() ? "ok" : "FAILED");
  for (const std::string& failure : failures) std::printf("    %s\n", failure.c_str());
  std::fflush(stdout);
}

int run_all(const std::vector<std::string>& folders, const Settings& settings) {
  Totals totals;
  std::printf("seed %llu\n", static_cast<unsigned long long>(settings.seed));
  for (const std::string& folder : folders) run_case(folder, settings, totals);
  std::printf("\n");
  for (const auto& [pass, counts] : totals.fired) {
    std::printf("%-32s ran in %5d, changed something in %4d\n", pass.c_str(), counts.first, counts.second);
  }
  std::printf("%d of %d trials on %zu cases hold\n", totals.trials - totals.failed, totals.trials, folders.size());
  return totals.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lissome

int main(int count, char** words) {
  using namespace lissome;
  Settings settings;
  int first = 1;
  for (; first + 1 < count && words[first][0] == '-'; first += 2) {
    const bool seed = std::strcmp(words[first], "--seed") == 0;
    if (!seed && std::strcmp(words[first], "--trials") != 0) break;
    if (seed) {
      settings.seed = std::strtoull(words[first + 1], nullptr, 10);
    } else {
      settings.trials = std::atoi(words[first + 1]);
    }
  }
  if (first >= count || words[first][0] == '-') {
    std::fprintf(stderr, "usage: run_passes [--seed N] [--trials N] FOLDER [NAME...]\n");
    return 2;
  }
  at::set_num_threads(kExporterThreads);
  const auto folders = list_case_folders(words[first], std::set<std::string>(words + first + 1, words + count));
  if (folders.empty()) {
    std::fprintf(stderr, "no cases in %s\n", words[first]);
    return 1;
  }
  return run_all(folders, settings);
}
