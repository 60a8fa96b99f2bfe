// Class words and columns of a table have the numbers and the order of the data that a model was trained on.
#include <algorithm>

#include "lissome/data.h"

namespace lissome {
namespace {

// For each of `names` its index in `known`; `what` names one in errors.
std::vector<int64_t> find_indices(const std::vector<std::string>& names, const std::vector<std::string>& known,
                                  const Dataset& data, const Dataset& first, const char* what) {
  std::vector<int64_t> indices;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end())
      throw_error(ErrorKind::invalid_input, quote(data.source), " has the ", what, " ", quote(name), ", which ",
                  quote(first.source), " does not have: ", known.empty() ? "it has none" : join_few(known, 12));
    indices.push_back(found - known.begin());
  }
  return indices;
}

// Words that happen to be whole numbers in all rows of these data are words where others are.
void name_numbers(Dataset& data) {
  Array numbered = cast_array(data.labels->view(), Dtype::i64);
  auto* labels = numbered.data<int64_t>();
  for (int64_t i = 0; i < numbered.elements(); ++i) {
    const std::string word = std::to_string(labels[i]);
    const auto found = std::find(data.classes.begin(), data.classes.end(), word);
    labels[i] = found - data.classes.begin();
    if (found == data.classes.end()) data.classes.push_back(word);
  }
  data.labels = std::move(numbered);
}

void number_classes(Dataset& data, const Dataset& first) {
  if (data.classes == first.classes || !data.labels) return;
  if (data.classes.empty() && data.labels->dtype == Dtype::i64) name_numbers(data);
  if (data.classes.empty())
    throw_error(ErrorKind::invalid_input, quote(data.source), ": its labels are numbers, those of ",
                quote(first.source), " are words");
  const std::vector<int64_t> indices = find_indices(data.classes, first.classes, data, first, "class");
  Array numbered = cast_array(data.labels->view(), Dtype::i64);
  auto* labels = numbered.data<int64_t>();
  for (int64_t i = 0; i < numbered.elements(); ++i) labels[i] = indices[static_cast<size_t>(labels[i])];
  data.labels = std::move(numbered);
  data.classes = first.classes;
}

// Targets that are all whole numbers here, or of another width, are what they are there.
void convert_labels(Dataset& data, const Dataset& first) {
  if (!data.labels || !first.labels || data.labels->dtype == first.labels->dtype) return;
  if (!is_floating(first.labels->dtype))
    throw_error(ErrorKind::invalid_input, quote(data.source), ": its labels hold ", dtype_name(data.labels->dtype),
                ", those of ", quote(first.source), " ", dtype_name(first.labels->dtype));
  data.labels = cast_array(data.labels->view(), first.labels->dtype);
}

void order_fields(Dataset& data, const Dataset& first) {
  if (data.fields == first.fields || data.fields.empty() || first.fields.empty()) return;
  const std::vector<int64_t> indices = find_indices(first.fields, data.fields, first, data, "column");
  Array& table = data.columns.at(0).array;
  const auto rows = table.sizes.at(0), columns = table.sizes.at(1);
  const auto wanted = static_cast<int64_t>(indices.size());
  Array ordered = make_array(Dtype::f32, {rows, wanted});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < wanted; ++i)
      ordered.data<float>()[row * wanted + i] = table.data<float>()[row * columns + indices[static_cast<size_t>(i)]];
  }
  if (wanted < columns)
    data.notes.push_back(quote(data.source) + ": " + std::to_string(columns - wanted) + " columns that " +
                         quote(first.source) + " does not have are left out");
  table = std::move(ordered);
  data.columns[0].sample_sizes = {wanted};
  data.fields = first.fields;
}

}  // namespace

Dataset match_dataset(Dataset data, const Dataset& first) {
  number_classes(data, first);
  convert_labels(data, first);
  order_fields(data, first);
  return data;
}

}  // namespace lissome
