// Program text up to its untyped tree.
#include "lissome/program/syntax/program_text.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lissome::expect_refusal_or_result([&] { lissome::read_program_text(lissome::as_text(data, size)); });
}
