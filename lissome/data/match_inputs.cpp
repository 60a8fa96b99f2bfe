#include "lissome/data/match_inputs.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace lissome {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// Whether both names are equal or one is the other's end, cut at a dot.
bool ends_alike(const std::string& a, const std::string& b) {
  const std::string& shorter = a.size() < b.size() ? a : b;
  const std::string& longer = a.size() < b.size() ? b : a;
  return longer.ends_with(shorter) &&
         (longer.size() == shorter.size() || longer[longer.size() - shorter.size() - 1] == '.');
}

// Whether both names are equal once their dots are underscores, as keywords of numpy.savez have to be written.
bool equal_as_keywords(std::string a, std::string b) {
  std::replace(a.begin(), a.end(), '.', '_');
  std::replace(b.begin(), b.end(), '.', '_');
  return a == b;
}

using SimilarNames = std::function<bool(const std::string& array, const std::string& input)>;

// 7 for arr_7.
std::optional<size_t> read_place(const std::string& name) {
  constexpr std::string_view kPrefix = "arr_";
  size_t place = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, place);
  if (error != std::errc() || stop != end) return std::nullopt;
  return place;
}

class Matching {
 public:
  Matching(std::span<const NamedSizes> arrays, std::span<const DataSignature> inputs)
      : arrays_(arrays), inputs_(inputs), chosen_(inputs.size(), kNone), used_(arrays.size(), false) {}

  void match_equal_names() {
    for (size_t input = 0; input < inputs_.size(); ++input)
      for (size_t array = 0; array < arrays_.size(); ++array)
        if (chosen_[input] == kNone && arrays_[array].name == inputs_[input].name) choose(array, input);
  }

  // Pairs what has one partner among what is left; false where a partner could be chosen in several ways.
  bool match_similar_names(const SimilarNames& are_similar) {
    const auto alike = [&](size_t array, size_t input) {
      return are_similar(arrays_[array].name, inputs_[input].name);
    };
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const size_t input : open_inputs()) {
      const std::vector<size_t> partners = list_arrays(input, alike);
      if (partners.size() > 1) return false;
      if (partners.empty()) continue;
      if (std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == partners[0]; }))
        return false;
      pairs.emplace_back(partners[0], input);
    }
    for (const auto& [array, input] : pairs) choose(array, input);
    return true;
  }

  // arr_0, arr_1, ... carry an order of their own, whatever that of the file.
  void match_indices() {
    std::vector<std::pair<size_t, size_t>> indices;
    for (size_t array = 0; array < arrays_.size(); ++array)
      if (const std::optional<size_t> place = read_place(arrays_[array].name)) indices.emplace_back(*place, array);
    if (indices.size() != arrays_.size() || indices.size() != inputs_.size()) return;
    if (open_inputs().size() != inputs_.size()) return;
    std::sort(indices.begin(), indices.end());
    for (size_t input = 0; input < inputs_.size(); ++input) choose(indices[input].second, input);
  }

  // A graph whose perfect matching is unique has an input with a single partner, and what is left after pairing these
  // two again has one: where none is found, there are several ways or none.
  // Only where no name led to an array: with input_ids there, token_type_ids is no attention_mask that fits it.
  void match_fits(const FitsInput& fits) {
    if (open_inputs().size() != inputs_.size() || inputs_.size() != arrays_.size()) return;
    if (inputs_.size() == 1 && arrays_.size() == 1) return choose(0, 0);  // what does not suit is refused by its reason
    for (bool found = true; found;) {
      found = false;
      for (const size_t input : open_inputs()) {
        const std::vector<size_t> partners = list_arrays(input, fits);
        if (partners.size() != 1) continue;
        choose(partners[0], input);
        found = true;
      }
    }
  }

  bool complete() const { return open_inputs().empty(); }
  const std::vector<size_t>& chosen() const { return chosen_; }
  bool is_used(size_t array) const { return used_[array]; }

 private:
  void choose(size_t array, size_t input) {
    chosen_[input] = array;
    used_[array] = true;
  }

  std::vector<size_t> open_inputs() const {
    std::vector<size_t> open;
    for (size_t input = 0; input < chosen_.size(); ++input)
      if (chosen_[input] == kNone) open.push_back(input);
    return open;
  }

  template <typename Suits>
  std::vector<size_t> list_arrays(size_t input, const Suits& suits) const {
    std::vector<size_t> found;
    for (size_t array = 0; array < arrays_.size(); ++array)
      if (!used_[array] && suits(array, input)) found.push_back(array);
    return found;
  }

  std::span<const NamedSizes> arrays_;
  std::span<const DataSignature> inputs_;
  std::vector<size_t> chosen_;  // kNone until an array is found
  std::vector<bool> used_;
};

template <typename Items>
std::string list_items(const Items& items) {
  std::vector<std::string> words;
  for (const auto& item : items) {
    std::string sizes;
    for (const int64_t size : item.sizes)
      sizes += (sizes.empty() ? "" : ", ") + (size < 0 ? "any" : std::to_string(size));
    words.push_back(item.name + " " + std::string(dtype_name(item.dtype)) + "[" + sizes + "]");
  }
  return join(words, ", ");
}

std::string count_items(size_t count, const char* one, const std::string& items) {
  return std::to_string(count) + " " + one + (count == 1 ? " (" : "s (") + items + ")";
}

[[noreturn]] void refuse_inputs(std::span<const NamedSizes> arrays, std::span<const DataSignature> inputs,
                                const std::string& source) {
  const std::string given = count_items(arrays.size(), "array", list_items(arrays));
  const std::string taken = count_items(inputs.size(), "input", list_items(inputs));
  if (arrays.size() < inputs.size())
    throw_error(ErrorKind::invalid_input, quote(source), ": there are fewer arrays than inputs: ", given, " for ",
                taken, ".\nGive one array for each input, named after it.");
  throw_error(ErrorKind::invalid_input, quote(source), ": names, types and sizes do not determine which of ", given,
              " feeds which of ", taken,
              ".\nName the arrays after the inputs, "
              "and leave the others out, or say which one holds labels where a command takes --labels.");
}

}  // namespace

std::vector<size_t> match_inputs(std::span<const NamedSizes> arrays, std::span<const DataSignature> inputs,
                                 const FitsInput& fits, const std::string& source, std::vector<std::string>* notes) {
  Matching matching(arrays, inputs);
  matching.match_equal_names();
  if (!matching.match_similar_names(equal_as_keywords) || !matching.match_similar_names(ends_alike))
    refuse_inputs(arrays, inputs, source);
  matching.match_indices();
  matching.match_fits(fits);
  if (!matching.complete()) refuse_inputs(arrays, inputs, source);
  std::vector<std::string> pairs;
  for (size_t input = 0; input < inputs.size(); ++input) {
    const std::string& name = arrays[matching.chosen()[input]].name;
    if (name != inputs[input].name) pairs.push_back(quote(name) + " feeds input " + quote(inputs[input].name));
  }
  if (!pairs.empty()) notes->push_back(quote(source) + ": " + join(pairs, ", ") + ".");
  for (size_t array = 0; array < arrays.size(); ++array)
    if (!matching.is_used(array))
      notes->push_back(quote(source) + ", entry " + quote(arrays[array].name) +
                       " is no input of the model and was left out.");
  return matching.chosen();
}

}  // namespace lissome
