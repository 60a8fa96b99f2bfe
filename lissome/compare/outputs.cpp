// Running a model over data: batches in, rows out.
#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>

#include "lissome/compare.h"

namespace lissome {
namespace {

float read_element(const Array& array, int64_t index) {
  switch (array.dtype) {
    case Dtype::f32: return array.data<float>()[index];
    case Dtype::f64: return static_cast<float>(array.data<double>()[index]);
    case Dtype::bf16: return c10::BFloat16(array.data<uint16_t>()[index], c10::BFloat16::from_bits());
    case Dtype::f16: return c10::Half(array.data<uint16_t>()[index], c10::Half::from_bits());
    default: break;
  }
  throw_error(ErrorKind::unsupported, "quality is judged on outputs of f32, f64, bf16 or f16; this one is ",
              dtype_name(array.dtype));
}

const Array& find_primary(const std::vector<Array>& outputs) {
  for (const Array& output : outputs) {
    if (output.storage != nullptr && is_floating(output.dtype)) return output;
  }
  throw_error(ErrorKind::unsupported, "quality cannot be judged: none of the ", outputs.size(),
              " outputs is a floating tensor");
}

// A last batch that is smaller than what the model takes is filled up with the dataset's first sample.
std::vector<NamedArray> take_full_batch(const Dataset& dataset, int64_t first, int64_t count, int64_t wanted) {
  if (count == wanted) return take_batch(dataset, first, count);
  Dataset padded = dataset;
  padded.rows.assign(dataset.rows.begin() + first, dataset.rows.begin() + first + count);
  while (static_cast<int64_t>(padded.rows.size()) < wanted) padded.rows.push_back(dataset.rows.front());
  return take_batch(padded, 0, wanted);
}

}  // namespace

OutputRows collect_outputs(Session& session, const Dataset& dataset, int64_t batch, const BatchRange& range,
                           const WorkControl& control) {
  const int64_t step = range.nearest(batch);
  OutputRows rows;
  for (int64_t first = 0; first < dataset.samples(); first += step) {
    if (control.stopped()) break;
    const int64_t count = std::min(step, dataset.samples() - first);
    const std::vector<NamedArray> inputs = take_full_batch(dataset, first, count, std::max(count, range.least));
    std::vector<TensorView> views;
    for (const NamedArray& input : inputs) views.push_back(input.array.view());
    const std::vector<Array> outputs = session.run(views);
    const Array& primary = find_primary(outputs);
    const int64_t got = primary.sizes.empty() ? 0 : primary.sizes.front();
    if (got < count) {
      throw_error(ErrorKind::invalid_input, "quality is judged sample by sample, but the output of ", count,
                  " samples has sizes ", format_sizes(primary.sizes));
    }
    rows.width = primary.elements() / got;
    rows.sizes.assign(primary.sizes.begin() + 1, primary.sizes.end());
    for (int64_t i = 0; i < count * rows.width; ++i) rows.values.push_back(read_element(primary, i));
    rows.samples += count;
  }
  return rows;
}

std::vector<c10::IValue> to_ivalues(const std::vector<NamedArray>& arrays) {
  std::vector<c10::IValue> values;
  for (const NamedArray& named : arrays) {
    const Array& array = named.array;
    values.emplace_back(
        at::from_blob(array.storage.get(), array.sizes, at::TensorOptions(scalar_type_of(array.dtype))));
  }
  return values;
}

}  // namespace lissome
