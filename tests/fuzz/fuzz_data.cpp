// Data files of every kind, as `--data` reads them: loaded, fitted to a small model, split, handed out as a batch.
#include "lissome/data.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lissome;
  const std::string path = write_input(data, size, ".data");
  DataSignature image, tokens;
  image.name = tokens.name = "x";
  image.sizes = {-1, 1, 2, 2};
  tokens.dtype = Dtype::i64;
  tokens.sizes = {-1, -1};
  tokens.range = {0, 99};
  for (const DataSignature& input : {image, tokens})
    expect_refusal_or_result([&] {
      const Dataset dataset = fit_dataset(load_dataset(path), {&input, 1});
      if (dataset.samples() > 1000) return;
      const DataSplit split = split_dataset(dataset);
      for (const NamedArray& named : take_batch(split.validation, 0, split.validation.samples())) read_all(named.array);
    });
  return 0;
}
