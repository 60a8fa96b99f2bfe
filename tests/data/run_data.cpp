// run_data transform IN.npy TRANSFORMS SEED EPOCH OUT.npz: the images of a file, transformed.
// run_data tune storage|transform: automatic settings of the loader against a grid of fixed ones.
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "lissome/loader.h"
#include "tests/data/tune_grid.h"

namespace lissome {
namespace {

int run_transform(const std::vector<std::string>& words) {
  const Array images = load_arrays(words.at(0)).at(0).array;
  const TransformPipeline pipeline(parse_transforms(words.at(1)), std::stoull(words.at(2)));
  std::vector<int64_t> samples(static_cast<size_t>(images.sizes.at(0)));
  std::iota(samples.begin(), samples.end(), int64_t{0});
  Array out;
  pipeline.apply(images, samples, std::stoll(words.at(3)), out);
  save_arrays(words.at(4), {{"images", out}});
  return 0;
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 6 && words[0] == "transform") return run_transform({words.begin() + 1, words.end()});
  if (words.size() == 2 && words[0] == "tune") return run_tune_grid(words[1]) ? 0 : 1;
  throw_error(ErrorKind::usage, "run_data transform IN.npy TRANSFORMS SEED EPOCH OUT.npz | tune storage|transform");
}

}  // namespace
}  // namespace lissome

int main(int count, char** words) {
  try {
    return lissome::run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
