// A plain convolutional classifier of 28 x 28 grey images, as one writes it against torch::nn: blocks of 3 x 3
// convolution, batch norm and ReLU, max pooling between them, two linear layers at the end. It takes f32 images
// [N, 1, 28, 28] with values in 0..1 and returns the logits of 10 classes. fashion_mnist_net.py is the same net in
// Python, with the same parameter names.
#pragma once

#include <torch/torch.h>

struct ConvBlockImpl : torch::nn::Module {
  ConvBlockImpl(int64_t in_channels, int64_t out_channels)
      : conv(register_module(
            "conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(in_channels, out_channels, 3).padding(1).bias(false)))),
        norm(register_module("norm", torch::nn::BatchNorm2d(out_channels))) {}

  torch::Tensor forward(const torch::Tensor& x) { return torch::relu(norm(conv(x))); }

  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
};
TORCH_MODULE(ConvBlock);

struct FashionMnistNetImpl : torch::nn::Module {
  FashionMnistNetImpl()
      : block1(register_module("block1", ConvBlock(1, 32))),
        block2(register_module("block2", ConvBlock(32, 64))),
        block3(register_module("block3", ConvBlock(64, 64))),
        block4(register_module("block4", ConvBlock(64, 128))),
        block5(register_module("block5", ConvBlock(128, 128))),
        dropout(register_module("dropout", torch::nn::Dropout(0.2))),
        hidden(register_module("hidden", torch::nn::Linear(128 * 3 * 3, 256))),
        classes(register_module("classes", torch::nn::Linear(256, 10))) {}

  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(block1(x), 2);
    x = torch::max_pool2d(block3(block2(x)), 2);
    x = torch::max_pool2d(block5(block4(x)), 2);
    x = dropout(x.flatten(1));
    return classes(torch::relu(hidden(x)));
  }

  ConvBlock block1, block2, block3, block4, block5;
  torch::nn::Dropout dropout;
  torch::nn::Linear hidden, classes;
};
TORCH_MODULE(FashionMnistNet);
