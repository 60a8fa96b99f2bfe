// What fuzz_graph runs: an exported program as three lines of JSON, from which the archive is made, so that neither a
// CRC32 nor the directory of a zip stands between a mutation and the graph.
//   {"data": 7, "weights": {...}, "constants": {...}, "bytes": {"weight_0": ["f32", 24, 0]}, "constant_bytes": {...}}
//   models/model.json
// weights and constants are the two configurations; bytes says for each raw member the dtype, the number of elements
// and what they are filled with.
#pragma once

#include <string>
#include <string_view>

namespace lissome {

// The archive in memory, members stored; empty when the text has not that form.
std::string make_graph_archive(std::string_view text);
uint64_t read_graph_data(std::string_view text);

}  // namespace lissome
