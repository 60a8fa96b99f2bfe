// For tests of trainings: points of a line, a model that can find it, and options with which it does.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "lissome/train/loop/trainer.h"

namespace lissome {

inline constexpr int64_t kLineSamples = 40;

inline NamedArray make_floats(const std::string& name, Sizes sizes, const std::function<float(int64_t)>& value) {
  NamedArray named{name, make_array(Dtype::f32, std::move(sizes))};
  for (int64_t i = 0; i < named.array.elements(); ++i) named.array.data<float>()[i] = value(i);
  return named;
}

// x in [-1, 1], target slope * x + 1.
inline Dataset make_line(float slope = 2) {
  const auto x = [](int64_t i) { return static_cast<float>(i) / (kLineSamples / 2) - 1; };
  return make_dataset({make_floats("x", {kLineSamples, 1}, x),
                       make_floats("labels", {kLineSamples, 1}, [&](int64_t i) { return slope * x(i) + 1; })},
                      {.labels = "labels"}, "line");
}

// y = w * x + b, with weights of its own, since training changes them. `range`: of its batches, or its only batch.
inline Program make_line_model(const std::string& range = "1..64") {
  const bool fixed = range.find("..") == std::string::npos;
  const std::string batch = fixed ? range : "n";
  return parse_program((fixed ? "" : "dim n in " + range + "\n") + "input %x: f32[" + batch +
                       ", 1]\n"
                       "parameter @w: f32[1, 1] = 0.5\n"
                       "parameter @b: f32[1] = 0.0\n"
                       "%y: f32[" +
                       batch +
                       ", 1] = aten::linear(%x, @w, @b)\n"
                       "return %y\n");
}

inline TrainOptions make_line_options() {
  TrainOptions options;
  options.loss.kind = LossKind::mse;
  options.optimizer = Sgd{.lr = 0.2, .momentum = 0.5};
  options.epochs = 30, options.batch = 7;
  return options;
}

// The first element of a weight.
inline float read_one(const Program& program, const std::string& name) {
  return program.find_weight(name)->tensor.flatten()[0].item().toFloat();
}

}  // namespace lissome
