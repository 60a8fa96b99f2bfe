#include "lissome/import_module.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/pooling.h>

using namespace lissome;

namespace {

struct ConvNetImpl : torch::nn::Module {
  ConvNetImpl() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("head", head);
    norm->running_mean.uniform_();
    norm->running_var.uniform_(0.5, 2);
  }
  at::Tensor forward(const at::Tensor& x) {
    namespace F = torch::nn::functional;
    at::Tensor y = F::max_pool2d(F::relu(norm(conv(x))), F::MaxPool2dFuncOptions(2));
    return head(y.flatten(1));
  }
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(1, 4, 3).padding(1)};
  torch::nn::BatchNorm2d norm{4};
  torch::nn::Linear head{4 * 4 * 4, 5};
};

}  // namespace

TEST_CASE("a traced convolutional net gives the module's numbers at every batch size, under its own names") {
  torch::manual_seed(0);
  ConvNetImpl net;
  net.eval();
  const Program program = import_module(net, {{"image", at::randn({2, 1, 8, 8}), {{0, {"batch", 1, 64}}}}},
                                        [&](const std::vector<at::Tensor>& inputs) { return net.forward(inputs[0]); });
  CHECK(program.find_weight("conv.weight") != nullptr);
  CHECK(program.find_weight("norm.running_mean")->role == WeightRole::buffer);
  CHECK(program.value(program.inputs[0].value).type.sizes[0] == Dimension::named("batch"));
  CHECK(program.value(program.outputs[0].value.value()).type.sizes[0] == Dimension::named("batch"));
  for (int64_t batch : {1, 2, 7}) {
    const at::Tensor image = at::randn({batch, 1, 8, 8});
    const at::Tensor expected = net.forward(image);
    const at::Tensor got = interpret(program, {image}).at(0).toTensor();
    CHECK(at::allclose(got, expected, 1e-5, 1e-6));
  }
  for (const at::Tensor& parameter : net.parameters()) CHECK(parameter.requires_grad());
}

TEST_CASE("nodes of a trace speak of the module whose weights they read") {
  ConvNetImpl net;
  net.eval();
  const Program program = import_module(net, {{"image", at::randn({1, 1, 8, 8})}},
                                        [&](const std::vector<at::Tensor>& inputs) { return net.forward(inputs[0]); });
  bool found = false;
  for (const Node& node : program.nodes) {
    if (node.is("aten::convolution")) found = node.origin != nullptr && node.origin->module == "conv";
  }
  CHECK(found);
}
