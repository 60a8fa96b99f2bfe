// Trains the classifier of fashion_mnist_net.h on Fashion-MNIST, in plain libtorch, in one to two minutes on two cores.
//   fashion_mnist_train DATA_FOLDER OUT_FOLDER
// reads the four IDX files of DATA_FOLDER, holds the last 5,000 training images back, and writes to OUT_FOLDER
//   net.lissome           the net as a model, imported by tracing
//   weights.safetensors   parameters and statistics by name, for the same net in Python
//   validation.npz        `images` and `labels` of the images held back: the data of `lissome optimize`
//   test.npz              the same of the 10,000 test images, which nothing is ever tuned on
// The seed is fixed; progress goes to stderr, the test accuracy to stdout.
#include <ATen/autocast_mode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "examples/fashion_mnist/fashion_mnist_net.h"
#include "lissome/base.h"
#include "lissome/data.h"
#include "lissome/import_module.h"

namespace {

constexpr int64_t kEpochs = 3;
constexpr int64_t kBatch = 128;
constexpr int64_t kHeldOut = 5000;
constexpr double kPeakRate = 0.15;
constexpr double kWeightDecay = 5e-4;
// A slow machine shortens the schedule, to half at most, so as to end by then.
constexpr double kLongestSeconds = 150;

double read_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Images {
  torch::Tensor pixels;  // u8 [N, 1, 28, 28]
  torch::Tensor labels;  // i64 [N]
};

Images read_images(const std::string& path) {
  const lissome::Dataset dataset = lissome::load_dataset(path);
  const lissome::Array &pixels = dataset.columns.at(0).array, &labels = dataset.labels.value();
  return {torch::from_blob(pixels.data<uint8_t>(), pixels.sizes, torch::kByte).unsqueeze(1).clone(),
          torch::from_blob(labels.data<int64_t>(), labels.sizes, torch::kLong).clone()};
}

torch::Tensor scale_pixels(const torch::Tensor& pixels) {
  return pixels.to(torch::kFloat).div_(255).contiguous(at::MemoryFormat::ChannelsLast);
}

// Mixed precision pays where the processor multiplies bf16 natively; elsewhere training stays in f32.
class Bfloat16Region {
 public:
  Bfloat16Region() {
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, __builtin_cpu_supports("avx512bf16") != 0);
  }
  ~Bfloat16Region() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
};

// Decay pulls on the weights of convolutions and linears, not on biases and batch norms.
torch::optim::SGD make_optimizer(torch::nn::Module& net) {
  std::vector<torch::Tensor> decayed, plain;
  for (const torch::Tensor& parameter : net.parameters()) (parameter.dim() > 1 ? decayed : plain).push_back(parameter);
  const auto options = torch::optim::SGDOptions(kPeakRate).momentum(0.9).nesterov(true);
  return torch::optim::SGD(
      {torch::optim::OptimizerParamGroup(decayed, std::make_unique<torch::optim::SGDOptions>(
                                                      torch::optim::SGDOptions(options).weight_decay(kWeightDecay))),
       torch::optim::OptimizerParamGroup(plain, std::make_unique<torch::optim::SGDOptions>(options))},
      options);
}

// One cycle: up to the peak in the first 30 %, then straight down to nothing.
double find_rate(double progress) {
  return kPeakRate * (progress < 0.3 ? 0.05 + 0.95 * progress / 0.3 : (1 - progress) / 0.7);
}

double train_step(FashionMnistNet& net, torch::optim::SGD& optimizer, const torch::Tensor& images,
                  const torch::Tensor& labels) {
  torch::Tensor logits;
  {
    Bfloat16Region region;
    logits = net(images);
  }
  const torch::Tensor loss = torch::cross_entropy_loss(logits.to(torch::kFloat), labels);
  optimizer.zero_grad();
  loss.backward();
  optimizer.step();
  return loss.item<double>();
}

void train_net(FashionMnistNet& net, const Images& data) {
  net->train();
  torch::optim::SGD optimizer = make_optimizer(*net);
  const int64_t count = data.pixels.size(0), steps_an_epoch = count / kBatch, steps = kEpochs * steps_an_epoch;
  const double start = read_seconds();
  double last_report = start, mean_loss = 2.3;
  torch::Tensor order;
  for (int64_t step = 0;; ++step) {
    const double now = read_seconds();
    const double done = static_cast<double>(step) / static_cast<double>(steps);
    const double progress = std::max(done, std::min((now - start) / kLongestSeconds, 2 * done));
    if (progress >= 1) break;
    if (step % steps_an_epoch == 0) order = torch::randperm(count);
    for (auto& group : optimizer.param_groups()) group.options().set_lr(find_rate(progress));

    const torch::Tensor chosen = order.narrow(0, step % steps_an_epoch * kBatch, kBatch);
    const torch::Tensor pixels = data.pixels.index_select(0, chosen);
    const torch::Tensor mirrored = torch::rand({kBatch, 1, 1, 1}) < 0.5;
    const torch::Tensor images = scale_pixels(torch::where(mirrored, pixels.flip(3), pixels));
    mean_loss += 0.02 * (train_step(net, optimizer, images, data.labels.index_select(0, chosen)) - mean_loss);

    if (now - last_report > 5) {
      last_report = now;
      std::fprintf(stderr, "  training: %3.0f %%, loss %.3f, %.0f s left\n", 100 * progress, mean_loss,
                   (now - start) * (1 - progress) / progress);
    }
  }
  std::fprintf(stderr, "  training: done in %.0f s\n", read_seconds() - start);
}

double measure_accuracy(FashionMnistNet& net, const Images& data) {
  torch::InferenceMode guard;
  net->eval();
  int64_t right = 0;
  for (int64_t first = 0; first < data.pixels.size(0); first += 500) {
    const int64_t count = std::min<int64_t>(500, data.pixels.size(0) - first);
    const torch::Tensor answers = net(scale_pixels(data.pixels.narrow(0, first, count))).argmax(1);
    right += answers.eq(data.labels.narrow(0, first, count)).sum().item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(data.pixels.size(0));
}

lissome::NamedArray name_array(const std::string& name, const torch::Tensor& tensor, lissome::Dtype dtype) {
  const torch::Tensor dense = tensor.detach().contiguous();
  return {name, lissome::copy_array({dtype, dense.sizes().vec(), dense.strides().vec(), dense.data_ptr()})};
}

void save_weights(const FashionMnistNet& net, const std::string& path) {
  std::vector<lissome::NamedArray> arrays;
  for (const auto& item : net->named_parameters())
    arrays.push_back(name_array(item.key(), item.value(), lissome::Dtype::f32));
  for (const auto& item : net->named_buffers())
    if (item.value().is_floating_point())  // not the counters of batches seen
      arrays.push_back(name_array(item.key(), item.value(), lissome::Dtype::f32));
  lissome::save_safetensors(path, arrays);
}

void save_images(const Images& data, const std::string& path) {
  lissome::save_arrays(path, {name_array("images", scale_pixels(data.pixels), lissome::Dtype::f32),
                              name_array("labels", data.labels, lissome::Dtype::i64)});
}

// The trained net as a model of its own, for any number of images.
void save_model(FashionMnistNet& net, const std::string& path) {
  net->eval();
  const lissome::TracedInput images{"images", torch::zeros({2, 1, 28, 28}), {{0, {"batch", 1, 1 << 20}}}};
  const lissome::Program program = lissome::import_module(
      *net, {images}, [&](const std::vector<torch::Tensor>& inputs) { return net(inputs.at(0)); });
  lissome::save_program(program, path);
}

void train_and_save(const std::string& data_folder, const std::string& out_folder) {
  torch::manual_seed(1);
  const Images all = read_images(data_folder + ":train"), test = read_images(data_folder + ":test");
  const int64_t count = all.pixels.size(0) - kHeldOut;
  const Images training{all.pixels.narrow(0, 0, count), all.labels.narrow(0, 0, count)};
  const Images validation{all.pixels.narrow(0, count, kHeldOut), all.labels.narrow(0, count, kHeldOut)};
  std::filesystem::create_directories(out_folder);

  FashionMnistNet net;
  for (torch::Tensor& parameter : net->parameters())
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
  train_net(net, training);
  const double accuracy = measure_accuracy(net, test);
  save_weights(net, out_folder + "/weights.safetensors");
  save_model(net, out_folder + "/net.lissome");
  save_images(validation, out_folder + "/validation.npz");
  save_images(test, out_folder + "/test.npz");
  std::printf("test accuracy %.2f %% on %ld images\n", 100 * accuracy, static_cast<long>(test.pixels.size(0)));
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3) {
    std::fprintf(stderr, "usage: fashion_mnist_train DATA_FOLDER OUT_FOLDER\n");
    return 2;
  }
  try {
    train_and_save(arguments[1], arguments[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
