// See collate.h.
#include "lissome/data/collate.h"

#include <algorithm>
#include <cstring>

namespace lissome {
namespace {

constexpr std::string_view kLabels = "labels";

std::string describe(const Array& array) { return std::string(dtype_name(array.dtype)) + format_sizes(array.sizes); }

// Where in a sample something lies: "'tokens'[0]", and nothing at its root.
std::string describe_place(size_t sample, const std::string& place) {
  return "sample " + std::to_string(sample) + " of the batch" + (place.empty() ? "" : ", " + place);
}

Array stack(std::span<const Array> arrays, const std::string& place) {
  const Array& first = arrays[0];
  Sizes sizes = first.sizes;
  sizes.insert(sizes.begin(), static_cast<int64_t>(arrays.size()));
  Array stacked = make_array(first.dtype, std::move(sizes));
  const auto each = static_cast<size_t>(first.bytes());
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].dtype != first.dtype || arrays[i].sizes != first.sizes)
      throw_error(ErrorKind::invalid_input, describe_place(i, place), ": the array is ", describe(arrays[i]),
                  " and the first is ", describe(first),
                  "; only arrays of one type and size can be stacked. Pad arrays of different lengths.");
    if (each > 0) std::memcpy(stacked.data<char>() + i * each, arrays[i].storage.get(), each);
  }
  return stacked;
}

void check_lengths(std::span<const Array> arrays, const std::string& place) {
  const auto inner = [](const Array& array) { return std::span(array.sizes).subspan(1); };
  for (size_t i = 0; i < arrays.size(); ++i) {
    const bool fits = !arrays[i].sizes.empty() && arrays[i].dtype == arrays[0].dtype &&
                      std::ranges::equal(inner(arrays[i]), inner(arrays[0]));
    if (!fits)
      throw_error(ErrorKind::invalid_input, describe_place(i, place), ": the array is ", describe(arrays[i]),
                  " and the first is ", describe(arrays[0]), "; only the first size may differ.");
  }
}

void fill(Array& array, double value) {
  if (value == 0) return;  // as made
  if (!is_floating(array.dtype) && !is_integral(array.dtype))
    throw_error(ErrorKind::usage, "a padding of ", value, " was given for ", dtype_name(array.dtype),
                "; 0 is allowed.");
  dispatch(array.dtype, [&]<typename T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const auto narrow = static_cast<int64_t>(value);
      if (static_cast<double>(narrow) != value || !std::in_range<T>(narrow))
        throw_error(ErrorKind::usage, "a padding of ", value, " was given for ", dtype_name(array.dtype),
                    "; a number that this type holds is needed.");
      std::fill_n(array.data<T>(), array.elements(), static_cast<T>(narrow));
    } else if constexpr (std::is_constructible_v<T, float> && !std::is_same_v<T, bool>) {
      std::fill_n(array.data<T>(), array.elements(), static_cast<T>(static_cast<float>(value)));
    }
  });
}

Padded pad(std::span<const Array> arrays, const PadOptions& options, const std::string& place) {
  if (arrays.empty()) throw_error(ErrorKind::invalid_input, "there is nothing to stack; at least one array is needed.");
  if (options.multiple_of < 1)
    throw_error(ErrorKind::usage, "lengths of a multiple of ", options.multiple_of,
                " were asked for; at least 1 is needed.");
  check_lengths(arrays, place);
  const auto count = static_cast<int64_t>(arrays.size());
  int64_t longest = 0;
  for (const Array& array : arrays) longest = std::max(longest, array.sizes[0]);
  longest = (longest + options.multiple_of - 1) / options.multiple_of * options.multiple_of;
  Sizes sizes = arrays[0].sizes;
  sizes[0] = longest;
  const auto row = static_cast<size_t>(count_elements(sizes) * item_size(arrays[0].dtype));
  sizes.insert(sizes.begin(), count);
  Padded padded{make_array(arrays[0].dtype, std::move(sizes)), make_array(Dtype::boolean, {count, longest}),
                make_array(Dtype::i64, {count})};
  fill(padded.values, options.value);
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto bytes = static_cast<size_t>(arrays[i].bytes());
    if (bytes > 0) std::memcpy(padded.values.data<char>() + i * row, arrays[i].storage.get(), bytes);
    std::fill_n(padded.mask.data<bool>() + i * static_cast<size_t>(longest), arrays[i].sizes[0], true);
    padded.lengths.data<int64_t>()[i] = arrays[i].sizes[0];
  }
  return padded;
}

template <typename From, typename To>
Array stack_numbers(std::span<const SampleValue* const> samples, Dtype dtype) {
  Array numbers = make_array(dtype, {static_cast<int64_t>(samples.size())});
  for (size_t i = 0; i < samples.size(); ++i) numbers.data<To>()[i] = static_cast<To>(std::get<From>(samples[i]->kind));
  return numbers;
}

// Takes apart what samples have in common; `place` is where it was found.
class Collator {
 public:
  explicit Collator(const std::optional<PadOptions>& padding) : padding_(padding) {}

  SampleValue collate(std::span<const SampleValue* const> samples, const std::string& place) const {
    check_forms(samples, place);
    return std::visit(
        [&]<typename T>(const T&) -> SampleValue {
          if constexpr (std::is_same_v<T, Array>) {
            const std::vector<Array> arrays = list_arrays(samples);
            return {padding_ ? pad(arrays, *padding_, place).values : stack(arrays, place)};
          } else if constexpr (std::is_same_v<T, bool>) {
            return {stack_numbers<bool, bool>(samples, Dtype::boolean)};
          } else if constexpr (std::is_same_v<T, int64_t>) {
            return {stack_numbers<int64_t, int64_t>(samples, Dtype::i64)};
          } else if constexpr (std::is_same_v<T, double>) {
            return {stack_numbers<double, float>(samples, Dtype::f32)};
          } else if constexpr (std::is_same_v<T, std::string>) {
            SampleSequence texts;
            for (const SampleValue* sample : samples) texts.push_back(*sample);
            return {std::move(texts)};
          } else if constexpr (std::is_same_v<T, SampleSequence>) {
            return {collate_sequences(samples, place)};
          } else {
            return {collate_dictionaries(samples, place)};
          }
        },
        samples[0]->kind);
  }

 private:
  static constexpr const char* kForms[] = {"an array", "a bool",     "a whole number", "a number",
                                           "a text",   "a sequence", "a dictionary"};

  static void check_forms(std::span<const SampleValue* const> samples, const std::string& place) {
    for (size_t i = 0; i < samples.size(); ++i)
      if (samples[i]->kind.index() != samples[0]->kind.index())
        throw_error(ErrorKind::invalid_input, describe_place(i, place), ": the sample is ",
                    kForms[samples[i]->kind.index()], " and the first is ", kForms[samples[0]->kind.index()],
                    "; all samples need one form.");
  }

  static std::vector<Array> list_arrays(std::span<const SampleValue* const> samples) {
    std::vector<Array> arrays;
    for (const SampleValue* sample : samples) arrays.push_back(std::get<Array>(sample->kind));
    return arrays;
  }

  SampleSequence collate_sequences(std::span<const SampleValue* const> samples, const std::string& place) const {
    const size_t length = std::get<SampleSequence>(samples[0]->kind).size();
    SampleSequence collated;
    for (size_t element = 0; element < length; ++element) {
      std::vector<const SampleValue*> column;
      for (size_t i = 0; i < samples.size(); ++i) {
        const auto& sequence = std::get<SampleSequence>(samples[i]->kind);
        if (sequence.size() != length)
          throw_error(ErrorKind::invalid_input, describe_place(i, place), ": the sequence has ", sequence.size(),
                      " elements and the first has ", length,
                      "; all need one length. Make it an array to have it padded.");
        column.push_back(&sequence[element]);
      }
      collated.push_back(collate(column, place + "[" + std::to_string(element) + "]"));
    }
    return collated;
  }

  SampleDictionary collate_dictionaries(std::span<const SampleValue* const> samples, const std::string& place) const {
    SampleDictionary collated;
    for (const auto& [key, first] : std::get<SampleDictionary>(samples[0]->kind)) {
      const std::string inner = place + quote(key);
      std::vector<const SampleValue*> column;
      for (size_t i = 0; i < samples.size(); ++i) column.push_back(find_key(samples, i, key, place));
      if (padding_ && std::holds_alternative<Array>(first.kind)) {
        check_forms(column, inner);
        Padded padded = pad(list_arrays(column), *padding_, inner);
        collated.emplace_back(key, SampleValue{std::move(padded.values)});
        collated.emplace_back(key + "_mask", SampleValue{std::move(padded.mask)});
      } else {
        collated.emplace_back(key, collate(column, inner));
      }
    }
    return collated;
  }

  static const SampleValue* find_key(std::span<const SampleValue* const> samples, size_t i, const std::string& key,
                                     const std::string& place) {
    const auto& dictionary = std::get<SampleDictionary>(samples[i]->kind);
    const auto at = std::ranges::find(dictionary, key, [](const auto& entry) { return entry.first; });
    const size_t keys = std::get<SampleDictionary>(samples[0]->kind).size();
    if (at == dictionary.end() || dictionary.size() != keys)
      throw_error(ErrorKind::invalid_input, describe_place(i, place), ": the dictionary has ", dictionary.size(),
                  " keys", at == dictionary.end() ? " without " + quote(key) : std::string(), " and the first has ",
                  keys, "; all need the same keys.");
    return &at->second;
  }

  const std::optional<PadOptions>& padding_;
};

void put_into(const std::string& name, const SampleValue& value, Batch& batch) {
  if (const auto* array = std::get_if<Array>(&value.kind)) {
    if (name == kLabels)
      batch.labels = *array;
    else
      batch.inputs.push_back({name, *array});
  } else if (const auto* sequence = std::get_if<SampleSequence>(&value.kind)) {
    for (size_t i = 0; i < sequence->size(); ++i) put_into(name + "." + std::to_string(i), (*sequence)[i], batch);
  } else if (const auto* dictionary = std::get_if<SampleDictionary>(&value.kind)) {
    for (const auto& [key, inner] : *dictionary) put_into(name.empty() ? key : name + "." + key, inner, batch);
  } else {
    throw_error(ErrorKind::invalid_input, quote(name), " is text, which no model takes; leave it out of the samples.");
  }
}

}  // namespace

Padded pad_and_stack(std::span<const Array> arrays, const PadOptions& options) { return pad(arrays, options, ""); }

SampleValue collate(std::span<const SampleValue> samples, const std::optional<PadOptions>& padding) {
  if (samples.empty()) throw_error(ErrorKind::invalid_input, "no samples to collate; at least one is needed.");
  std::vector<const SampleValue*> pointers;
  for (const SampleValue& sample : samples) pointers.push_back(&sample);
  return Collator(padding).collate(pointers, "");
}

void SampleSource::take(std::span<const int64_t> samples, Batch& batch) const {
  SampleSequence values;
  for (const int64_t index : samples) {
    values.push_back(sample(index));
    if (!std::holds_alternative<SampleDictionary>(values.back().kind))
      throw_error(ErrorKind::invalid_input, describe(index),
                  ": a dictionary is needed, with a name for each input and \"labels\" for the label.");
  }
  batch.inputs.clear();
  batch.labels.reset();
  put_into("", collate(values, padding()), batch);
}

}  // namespace lissome
