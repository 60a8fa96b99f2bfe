// model.lissome: the container of a finished model. The CRC32 would stop nearly every change of a whole archive, so
// unless the input is one, it is a list of members instead: for each a length of two bytes, then its contents.
#include "tests/fuzz/fuzz.h"

namespace {

void write_members(const std::string& path, const uint8_t* data, size_t size) {
  lissome::ZipWriter zip(path);
  size_t at = 0;
  for (const char* name :
       {"lissome.json", "program.txt", "metadata.json", "plan.json", "arrays.json", "array/0", "array/1"}) {
    if (at + 2 > size) break;
    const size_t length = std::min<size_t>(data[at] | data[at + 1] << 8, size - at - 2);
    zip.add(name, std::string(lissome::as_text(data + at + 2, length)));
    at += 2 + length;
  }
  zip.commit();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = lissome::write_input(data, size, ".lissome");
  if (size < 2 || data[0] != 'P' || data[1] != 'K') write_members(path, data, size);
  return lissome::expect_refusal_or_result([&] {
    const lissome::ModelFile model = lissome::load_model_file(path);
    for (const auto* arrays : {&model.weights, &model.plan_arrays})
      for (const lissome::NamedArray& named : *arrays) lissome::read_all(named.array);
  });
}
