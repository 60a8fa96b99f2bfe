// The functions by which libFuzzer and a target know each other; replay_inputs calls them by other names.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t limit, unsigned seed);
// libFuzzer's own changes of bytes, for mutators.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t limit);
}
