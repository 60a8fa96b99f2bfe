// run_data transform IN.npy TRANSFORMS SEED EPOCH OUT.npz: the images of a file, transformed.
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "lissome/loader.h"

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
  throw_error(ErrorKind::usage, "run_data transform IN.npy TRANSFORMS SEED EPOCH OUT.npz");
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
