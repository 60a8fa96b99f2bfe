#include "lissome/compress/input_products.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/matmul.h>

#include <algorithm>

namespace lissome {
namespace {

// Of each value: a few for each input of wide layers.
constexpr int64_t kMostRows = 16384;
// Squares of larger numbers are infinite in f32.
constexpr double kLargest = 1e15;

void add_products(at::Tensor& sum, const at::Tensor& rows) {
  const at::Tensor products = at::matmul(rows.t(), rows);
  sum = sum.defined() ? sum.add_(products) : products;
}

}  // namespace

std::map<ValueId, InputProducts> measure_products(const Program& program, const std::vector<Layer*>& layers,
                                                  const CalibrationBatches& batches, const WorkControl& control) {
  std::map<ValueId, std::vector<Layer*>> first_reader;
  for (Layer* layer : layers) first_reader.try_emplace(layer->input, std::vector<Layer*>{layer});
  std::map<ValueId, InputProducts> products;
  const auto count = std::ssize(batches);
  for (int64_t i = 0; i < count && !control.stopped(); ++i) {
    control.report({"computation", "weights: reading data", static_cast<double>(i) / static_cast<double>(count), -1});
    visit_layer_inputs(program, first_reader, batches[static_cast<size_t>(i)],
                       [&](Layer& layer, const at::Tensor& input) {
                         at::Tensor rows = input.to(at::kFloat).reshape({-1, input.size(-1)});
                         const int64_t step = std::max<int64_t>(1, rows.size(0) * count / kMostRows);
                         rows = rows.slice(0, i % step, rows.size(0), step).nan_to_num(0, 0, 0);
                         rows = rows.clamp(-kLargest, kLargest);
                         InputProducts& of_value = products[layer.input];
                         // Every other batch judges; of a single one every other row.
                         if (count > 1) return add_products(i % 2 == 0 ? of_value.fitted : of_value.judged, rows);
                         add_products(of_value.fitted, rows.slice(0, 0, rows.size(0), 2));
                         add_products(of_value.judged, rows.slice(0, 1, rows.size(0), 2));
                       });
  }
  return products;
}

}  // namespace lissome
