// Functional forms of writing ops for which ATen has none: what is written comes back as a result, nothing is touched.
#include <ATen/ops/instance_norm.h>

#include "lissome/program/op/register.h"

namespace lissome {
namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor> normalize_instances(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const at::Tensor& running_mean, const at::Tensor& running_var, double momentum, double eps, bool cudnn_enabled) {
  at::Tensor mean = running_mean.detach().clone(), variance = running_var.detach().clone();
  at::Tensor output = at::instance_norm(input, weight, bias, mean, variance, true, momentum, eps, cudnn_enabled);
  return {std::move(output), std::move(mean), std::move(variance)};
}

at::Tensor fill_diagonal(const at::Tensor& self, const at::Scalar& fill_value, bool wrap) {
  return self.clone().fill_diagonal_(fill_value, wrap);
}

}  // namespace

std::vector<OpRow> list_functional_ops() {
  return {
      {"instance_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
       "Tensor running_var, float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor)",
       wrap_kernel(normalize_instances)},
      {"fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor", wrap_kernel(fill_diagonal)},
  };
}

}  // namespace lissome
