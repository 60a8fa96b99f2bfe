// Tables as text, with and without a label column.
#include "lissome/data.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lissome;
  const std::string path = write_input(data, size, ".csv");
  for (const char* labels : {"", "y"})
    expect_refusal_or_result([&] {
      const Dataset dataset = load_dataset(path, {.labels = labels});
      for (const DataColumn& column : dataset.columns) read_all(column.array);
      if (dataset.labels) read_all(*dataset.labels);
    });
  return 0;
}
