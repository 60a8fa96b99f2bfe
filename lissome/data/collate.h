// Samples of any form made into one batch: what belongs together is stacked, and lengths that differ are padded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lissome/base.h"
#include "lissome/data/batch_source.h"

namespace lissome {

struct SampleValue;
using SampleSequence = std::vector<SampleValue>;
using SampleDictionary = std::vector<std::pair<std::string, SampleValue>>;
// What a sample is made of.
struct SampleValue {
  std::variant<Array, bool, int64_t, double, std::string, SampleSequence, SampleDictionary> kind;
};

struct PadOptions {
  double value = 0;         // of what is filled up; must fit the arrays' type
  int64_t multiple_of = 1;  // the common length is a multiple of it
};

struct Padded {
  Array values;   // [count, longest, ...]
  Array mask;     // bool [count, longest]: where an array had elements
  Array lengths;  // i64 [count]
};

// Arrays [length, ...] that differ in their length alone. Throws invalid_input: none, a scalar, another type or other
// inner sizes, naming the first array that differs; usage: a padding value that does not fit.
Padded pad_and_stack(std::span<const Array> arrays, const PadOptions& options = {});

// One value from one of each sample: arrays are stacked, [count, ...]; numbers become f32, i64 or bool [count]; text
// becomes a sequence of texts; sequences and dictionaries are gone through element by element. With `padding`, arrays
// may differ in length, and a dictionary gets "NAME_mask" behind NAME. Throws invalid_input with the place of what
// differs: "sample 3, 'tokens'[0]".
SampleValue collate(std::span<const SampleValue> samples, const std::optional<PadOptions>& padding = std::nullopt);

// A source for a class that has its samples one by one, as dictionaries: the array "labels" becomes the labels, all
// others the inputs of their names, with dots for what lies deeper ("image.left", "scales.0").
class SampleSource : public BatchSource {
 public:
  virtual SampleValue sample(int64_t index) const = 0;  // thread-safe, as take() is
  virtual std::optional<PadOptions> padding() const { return std::nullopt; }
  void take(std::span<const int64_t> samples, Batch& batch) const final;
};

}  // namespace lissome
