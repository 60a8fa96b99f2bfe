// Runs the fuzz targets without libFuzzer: over the inputs of FOLDER/<target>, and over mutations of each, the same
// ones every time. What a target finds ends the process; the name of the input that was running stands in the last
// line.
//
//   replay_inputs MUTATIONS FOLDER...                 as many mutations of each input
//   replay_inputs --only TARGET MUTATIONS FOLDER...   those of one target
//   replay_inputs --targets                           their names
//   replay_inputs --input TARGET FILE                 one input
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_hooks.h"
#include "tests/fuzz/random.h"

#define ROW(name)                                                             \
  extern "C" int name##_TestOneInput(const uint8_t* data, size_t size);       \
  extern "C" size_t name##_CustomMutator(uint8_t*, size_t, size_t, unsigned); \
  extern "C" __attribute__((weak)) int name##_Initialize(int*, char***);
#include "replay_rows.inc"
#undef ROW

namespace {

namespace fs = std::filesystem;

struct Target {
  const char* name;
  int (*test)(const uint8_t*, size_t);
  size_t (*mutate)(uint8_t*, size_t, size_t, unsigned);
  int (*initialize)(int*, char***);
};

constexpr size_t kLongest = 1 << 16;

#define ROW(name) {#name, name##_TestOneInput, name##_CustomMutator, name##_Initialize},
const Target kTargets[] = {
#include "replay_rows.inc"
};
#undef ROW

lissome::FuzzRandom bytes_random(1);

std::vector<uint8_t> read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> list_files(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

void show(const Target& target, const fs::path& path, int mutation) {
  std::printf("\r%s %s mutation %d        ", target.name, path.filename().c_str(), mutation);
  std::fflush(stdout);
}

// A chain of `count` mutations that begins anew from the seed now and then; a number, not the clock, says which.
void run_mutations(const Target& target, const fs::path& path, int count) {
  const std::vector<uint8_t> seed = read_bytes(path);
  std::vector<uint8_t> data(kLongest);
  size_t size = 0;
  for (int i = 0; i < count; ++i) {
    if (i % 5 == 0) {
      if (seed.size() > kLongest) return;
      std::copy(seed.begin(), seed.end(), data.begin());
      size = seed.size();
    }
    size = target.mutate(data.data(), size, kLongest, static_cast<unsigned>(i) * 7919U + 1U);
    show(target, path, i);
    // An exact copy, so that a read beyond its end is seen.
    const std::vector<uint8_t> input(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size));
    target.test(input.data(), input.size());
  }
}

int run_target(const Target& target, const std::vector<fs::path>& folders, int mutations) {
  if (target.initialize != nullptr) target.initialize(nullptr, nullptr);
  int inputs = 0;
  for (const fs::path& folder : folders) {
    for (const fs::path& path : list_files(folder / target.name)) {
      show(target, path, -1);
      const std::vector<uint8_t> input = read_bytes(path);
      target.test(input.data(), input.size());
      run_mutations(target, path, mutations);
      ++inputs;
    }
  }
  std::printf("\r%s: %d inputs, %d mutations of each          \n", target.name, inputs, mutations);
  return inputs;
}

int run_input(const std::string& name, const char* path) {
  for (const Target& target : kTargets) {
    if (name != target.name) continue;
    if (target.initialize != nullptr) target.initialize(nullptr, nullptr);
    const std::vector<uint8_t> input = read_bytes(path);
    return target.test(input.data(), input.size());
  }
  std::fprintf(stderr, "there is no target %s\n", name.c_str());
  return 2;
}

}  // namespace

// Mutators ask libFuzzer for changes of bytes; here they get simple ones.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t limit) {
  if (size == 0 || (size < limit && bytes_random.once_in(8))) {
    if (limit == 0) return 0;
    data[size < limit ? size++ : limit - 1] = static_cast<uint8_t>(bytes_random.next());
    return size;
  }
  for (size_t changes = 1 + bytes_random.below(4); changes-- > 0;)
    data[bytes_random.below(size)] = static_cast<uint8_t>(bytes_random.next());
  return bytes_random.once_in(10) ? bytes_random.below(size) + 1 : size;
}

int main(int count, char** words) {
  if (count == 4 && std::strcmp(words[1], "--input") == 0) return run_input(words[2], words[3]);
  if (count == 2 && std::strcmp(words[1], "--targets") == 0) {
    for (const Target& target : kTargets) std::puts(target.name);
    return 0;
  }
  std::string only;
  if (count > 3 && std::strcmp(words[1], "--only") == 0) only = words[2], words += 2, count -= 2;
  if (count < 3) {
    std::fprintf(stderr,
                 "usage: replay_inputs [--only TARGET] MUTATIONS FOLDER...\n"
                 "       replay_inputs --targets | --input TARGET FILE\n");
    return 2;
  }
  const std::vector<fs::path> folders(words + 2, words + count);
  int inputs = 0;
  for (const Target& target : kTargets) {
    if (only.empty() || only == target.name) inputs += run_target(target, folders, std::atoi(words[1]));
  }
  // A folder that is not there would pass for one without findings.
  return inputs > 0 ? 0 : 1;
}
