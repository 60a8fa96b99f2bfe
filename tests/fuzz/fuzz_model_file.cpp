// model.lissome: the container of a finished model.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = lissome::write_input(data, size, ".lissome");
  return lissome::expect_refusal_or_result([&] { lissome::load_model_file(path); });
}
