// Changes of files whose checksums would stop blind ones: the contents change, the checksums follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lissome {

// By what the bytes are: members of a zip archive, chunks of a PNG, what a gzip file holds, the JSON head of a
// safetensors file, JSON, or any bytes. Now and then the bytes themselves, so that broken checksums and directories
// come too.
std::string change_container(const std::string& bytes, unsigned seed);
// libFuzzer's change of bytes; at most `room` longer.
std::string change_bytes(std::string bytes, size_t room = 64);
// The same for a text that is JSON: half of the time one of its values.
std::string change_json_text(const std::string& text, unsigned seed);

}  // namespace lissome
