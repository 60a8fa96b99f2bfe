#include "lissome/train/step/fit_model.h"

#include <ATen/core/ivalue.h>
#include <doctest/doctest.h>

namespace lissome {
namespace {

Program make_sized_model(const char* batch) {
  return parse_program("dim b in " + std::string(batch) +
                       "\ndim n in 2..64\ninput %x: f32[b, 3, 2*n]\nparameter @w: f32[1]\n"
                       "%y: f32[b, 3, 2*n] = aten::mul.Tensor(%x, @w)\nreturn %y\n");
}

Dataset make_sized_data(Sizes sample_sizes) {
  Dataset data;
  Sizes sizes = {4};
  sizes.insert(sizes.end(), sample_sizes.begin(), sample_sizes.end());
  data.columns.push_back({"x", make_array(Dtype::f32, sizes), Dtype::f32, std::move(sample_sizes)});
  data.rows = {0, 1, 2, 3};
  return data;
}

std::vector<std::string> print_sizes(const Program& program, ValueId id) {
  std::vector<std::string> sizes;
  for (const Dimension& size : program.value(id).type.sizes) sizes.push_back(size.print());
  return sizes;
}

using Texts = std::vector<std::string>;

TEST_CASE("sizes that the samples fix are fixed, the batch stays") {
  const Program model = make_sized_model("1..8");
  const Dataset data = make_sized_data({3, 12});
  const Program fitted = fit_model(model, data, nullptr, BatchFit::any, 4).value();
  CHECK(print_sizes(fitted, fitted.inputs[0].value) == Texts{"b", "3", "12"});
  CHECK(print_sizes(fitted, fitted.outputs[0].value.value()) == Texts{"b", "3", "12"});
  CHECK(fitted.dimensions.size() == 1);
  CHECK(print_sizes(model, model.inputs[0].value) == Texts{"b", "3", "2*n"});
  CHECK(fitted.weights[0].tensor.is_same(model.weights[0].tensor));
}

TEST_CASE("validation data of another size keep it open") {
  const Dataset data = make_sized_data({3, 12}), validation = make_sized_data({3, 16});
  const Program fitted = fit_model(make_sized_model("1..8"), data, &validation, BatchFit::any, 4).value();
  CHECK(print_sizes(fitted, fitted.inputs[0].value) == Texts{"b", "3", "2*n"});
}

TEST_CASE("batches from 2 on, then of one size, where that is narrower") {
  const Dataset data = make_sized_data({3, 12});
  const Program two = fit_model(make_sized_model("1..8"), data, nullptr, BatchFit::two_or_more, 4).value();
  CHECK(two.dimensions[0].minimum == 2);
  CHECK_FALSE(fit_model(make_sized_model("2..8"), data, nullptr, BatchFit::two_or_more, 4));
  const Program one = fit_model(make_sized_model("2..8"), data, nullptr, BatchFit::one_size, 4).value();
  CHECK(print_sizes(one, one.inputs[0].value) == Texts{"4", "3", "12"});
  const Program fixed =
      parse_program("input %x: f32[4, 3]\nparameter @w: f32[3]\n%y = aten::mul.Tensor(%x, @w)\nreturn %y\n");
  CHECK_FALSE(fit_model(fixed, data, nullptr, BatchFit::one_size, 4));
}

}  // namespace
}  // namespace lissome
