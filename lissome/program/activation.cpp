// Activations by name; see activation.h.
#include "lissome/program/activation.h"

#include <ATen/ops/elu.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>

#include <algorithm>
#include <array>

#include "lissome/base.h"

namespace lissome {
namespace {

using Apply = at::Tensor (*)(const at::Tensor&);

struct Row {
  std::string_view name;
  Apply apply;
};

constexpr std::array<Row, 12> kActivations = {{
    {"none", [](const at::Tensor& x) { return x; }},
    {"relu", [](const at::Tensor& x) { return at::relu(x); }},
    {"relu6", [](const at::Tensor& x) { return at::hardtanh(x, 0, 6); }},
    {"leaky_relu", [](const at::Tensor& x) { return at::leaky_relu(x); }},
    {"elu", [](const at::Tensor& x) { return at::elu(x); }},
    {"gelu", [](const at::Tensor& x) { return at::gelu(x); }},
    {"gelu_tanh", [](const at::Tensor& x) { return at::gelu(x, "tanh"); }},
    {"silu", [](const at::Tensor& x) { return at::silu(x); }},
    {"sigmoid", [](const at::Tensor& x) { return at::sigmoid(x); }},
    {"tanh", [](const at::Tensor& x) { return at::tanh(x); }},
    {"hardswish", [](const at::Tensor& x) { return at::hardswish(x); }},
    {"hardsigmoid", [](const at::Tensor& x) { return at::hardsigmoid(x); }},
}};

const Row* find_row(std::string_view name) {
  const auto* const found =
      std::find_if(kActivations.begin(), kActivations.end(), [&](const Row& row) { return row.name == name; });
  return found == kActivations.end() ? nullptr : found;
}

}  // namespace

std::span<const std::string_view> activation_names() {
  static const auto names = [] {
    std::array<std::string_view, kActivations.size()> all;
    std::transform(kActivations.begin(), kActivations.end(), all.begin(), [](const Row& row) { return row.name; });
    return all;
  }();
  return names;
}

bool is_activation(std::string_view name) { return find_row(name) != nullptr; }

at::Tensor apply_activation(std::string_view name, const at::Tensor& tensor) {
  const Row* row = find_row(name);
  if (row == nullptr) {
    std::vector<std::string> known(activation_names().begin(), activation_names().end());
    throw_error(ErrorKind::invalid_input, "no activation is named '", name, "'; there are ", join(known, ", "));
  }
  return row->apply(tensor);
}

}  // namespace lissome
