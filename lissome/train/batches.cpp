#include "lissome/train/batches.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <random>

namespace lissome {
namespace {

at::Tensor to_tensor(const Array& array) {
  return at::from_blob(array.storage.get(), array.sizes, [kept = array.storage](void*) {}, scalar_type_of(array.dtype));
}

void shuffle_rows(std::vector<int64_t>& rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random() % i]);
}

}  // namespace

std::optional<int64_t> find_fixed_batch(const Program& model) {
  const ValueType& type = model.value(model.inputs.at(0).value).type;
  return type.sizes.empty() ? std::nullopt : type.sizes[0].constant();
}

int64_t choose_batch(const Program& model, const Dataset& data, int64_t asked) {
  if (data.samples() == 0) throw_error(ErrorKind::invalid_input, data.source, ": there are no samples");
  const std::optional<int64_t> fixed = find_fixed_batch(model);
  if (fixed && *fixed > data.samples())
    throw_error(ErrorKind::invalid_input, data.source, ": ", data.samples(), " samples fill no batch; the model takes ",
                *fixed, " at once");
  return fixed.value_or(std::min(asked, data.samples()));
}

std::vector<at::Tensor> take_inputs(const Dataset& data, int64_t first, int64_t count, size_t inputs) {
  std::vector<at::Tensor> tensors;
  for (const NamedArray& column : take_batch(data, first, count)) tensors.push_back(to_tensor(column.array));
  if (tensors.size() < inputs) tensors.push_back(to_tensor(take_labels(data, first, count)));
  return tensors;
}

Batches::Batches(const Dataset& data, int64_t batch, bool fixed, size_t inputs, uint64_t seed)
    : shuffled_(data), rows_(data.rows), batch_(batch), fixed_(fixed), inputs_(inputs), seed_(seed) {}

int64_t Batches::per_epoch() const {
  return fixed_ ? shuffled_.samples() / batch_ : (shuffled_.samples() + batch_ - 1) / batch_;
}

void Batches::begin_epoch(int64_t epoch) {
  shuffled_.rows = rows_;
  shuffle_rows(shuffled_.rows, seed_ + static_cast<uint64_t>(epoch));
}

int64_t Batches::count_samples(int64_t index) const { return std::min(batch_, shuffled_.samples() - index * batch_); }

std::vector<at::Tensor> Batches::take(int64_t index) const {
  return take_inputs(shuffled_, index * batch_, count_samples(index), inputs_);
}

}  // namespace lissome
