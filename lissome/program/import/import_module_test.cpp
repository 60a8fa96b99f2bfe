// What a C++ module computes, its program computes at every size; refusals stand in import_module_refusal_test.cpp.
#include "lissome/import_module.h"
#include "tests/program_helpers.h"

#include <ATen/core/ivalue.h>

#include <ATen/Context.h>
#include <doctest/doctest.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformer.h>
#include <torch/nn/modules/transformercoder.h>

using namespace lissome;
namespace nn = torch::nn;

namespace {

using Tensors = std::vector<at::Tensor>;

const NamedDimension kBatch{"batch", 1, 64}, kSteps{"steps", 1, 64};

struct ConvNetImpl : nn::Module {
  ConvNetImpl() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("drop", drop);
    register_module("head", head);
    norm->running_mean.uniform_();
    norm->running_var.uniform_(0.5, 2);
  }
  at::Tensor forward(const at::Tensor& x) {
    namespace F = nn::functional;
    const at::Tensor y = drop(F::max_pool2d(F::relu(norm(conv(x))), F::MaxPool2dFuncOptions(2)));
    return head(y.view({y.size(0), y.size(1) * y.size(2) * y.size(3)}));
  }
  nn::Conv2d conv{nn::Conv2dOptions(1, 4, 3).padding(1)};
  nn::BatchNorm2d norm{4};
  nn::Dropout drop{0.25};
  nn::Linear head{4 * 4 * 4, 5};
};

// The program's outputs are the module's, for each of these inputs, with the same random numbers.
void check_numbers(const Program& program, const ForwardMany& forward, const std::vector<Tensors>& trials) {
  const at::NoGradGuard no_grad;
  for (const Tensors& inputs : trials) {
    at::manual_seed(7);
    std::vector<c10::IValue> copies;
    for (const at::Tensor& input : inputs) copies.emplace_back(input.clone());
    const auto got = interpret(program, copies);
    at::manual_seed(7);
    const Tensors expected = forward(inputs);
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      REQUIRE(got[i].toTensor().sizes() == expected[i].sizes());
      CHECK(at::allclose(got[i].toTensor(), expected[i], 1e-5, 1e-6, true));
    }
  }
}

// Imports plain code with `inputs` as its examples and checks it on `trials`.
Program import_and_check(const nn::Module& module, const std::vector<TracedInput>& inputs, const ForwardMany& forward,
                         const std::vector<Tensors>& trials) {
  Program program = import_module(module, inputs, forward);
  CHECK(same_program(parse_program(print_program(program)), program));
  check_numbers(program, forward, trials);
  return program;
}

}  // namespace

TEST_CASE("a convolutional net gives the module's numbers at every batch size, under its own names") {
  at::manual_seed(0);
  ConvNetImpl net;
  net.eval();
  const Program program =
      import_and_check(net, {{"image", at::randn({2, 1, 8, 8}), {{0, kBatch}}}},
                       [&](const Tensors& inputs) { return Tensors{net.forward(inputs[0])}; },
                       {{at::randn({1, 1, 8, 8})}, {at::randn({2, 1, 8, 8})}, {at::randn({7, 1, 8, 8})}});
  CHECK(program.find_weight("conv.weight") != nullptr);
  CHECK(program.find_weight("norm.running_mean")->role == WeightRole::buffer);
  CHECK(program.value(program.inputs[0].value).type.sizes[0] == Dimension::named("batch"));
  CHECK(program.value(program.outputs[0].value.value()).type.sizes[0] == Dimension::named("batch"));
  CHECK(program.outputs[0].name == "output");
  CHECK_FALSE(program.training);
  for (const Node& node : program.nodes) {
    const ValueType& type = program.value(node.result()).type;
    CHECK((type.kind != ValueKind::tensor || type.sized));
  }
  for (const at::Tensor& parameter : net.parameters()) CHECK(parameter.requires_grad());
}

TEST_CASE("in train mode dropout stays, statistics are written by the program, and the module is as it was") {
  at::manual_seed(0);
  ConvNetImpl net;
  const at::Tensor before = net.norm->running_mean.clone();
  at::Tensor example = at::randn({2, 1, 8, 8});
  const at::Tensor random = at::globalContext().defaultGenerator(at::kCPU).get_state();
  const ForwardMany forward = [&](const Tensors& inputs) { return Tensors{net.forward(inputs[0])}; };
  const Program program = import_module(net, {{"image", example, {{0, {"batch", 2, 64}}}}}, forward);
  CHECK(at::equal(random, at::globalContext().defaultGenerator(at::kCPU).get_state()));
  CHECK(program.training);
  CHECK(count_ops(program, "aten::dropout") == 1);
  CHECK(program.writes.size() == 3);
  CHECK(at::equal(net.norm->running_mean, before));
  CHECK(net.norm->num_batches_tracked.item<int64_t>() == 0);
  check_numbers(program, forward, {{at::randn({3, 1, 8, 8})}});
  CHECK(net.norm->num_batches_tracked.item<int64_t>() == 1);  // by check_numbers' own call of the module
  // The weights are the module's own: a step of the program is a step of the module.
  InterpretOptions options;
  options.write_state = true;
  interpret(program, {at::randn({3, 1, 8, 8})}, options);
  CHECK(net.norm->num_batches_tracked.item<int64_t>() == 2);
}

TEST_CASE("nodes speak of the module whose weights they read") {
  ConvNetImpl net;
  net.eval();
  const Program program = import_module(net, {{"image", at::randn({1, 1, 8, 8})}},
                                        [&](const Tensors& inputs) { return net.forward(inputs[0]); });
  const auto conv = std::find_if(program.nodes.begin(), program.nodes.end(),
                                 [](const Node& node) { return node.is("aten::conv2d"); });
  REQUIRE(conv != program.nodes.end());
  REQUIRE(conv->origin != nullptr);
  CHECK(conv->origin->module == "conv");
  CHECK(conv->origin->module_type.find("Conv2d") != std::string::npos);
}

TEST_CASE("recurrent layers keep batch and sequence dynamic, and all their outputs") {
  at::manual_seed(0);
  const std::vector<TracedInput> inputs = {{"x", at::randn({2, 3, 6}), {{0, kBatch}, {1, kSteps}}}};
  const std::vector<Tensors> trials = {{at::randn({2, 3, 6})}, {at::randn({4, 7, 6})}, {at::randn({1, 1, 6})}};
  nn::LSTM lstm(nn::LSTMOptions(6, 5).num_layers(2).bidirectional(true).batch_first(true));
  lstm->eval();
  const Program program = import_and_check(
      *lstm, inputs,
      [&](const Tensors& given) {
        const auto [output, state] = lstm->forward(given[0]);
        return Tensors{output, std::get<0>(state), std::get<1>(state)};
      },
      trials);
  CHECK(program.outputs.size() == 3);
  CHECK(program.outputs[1].name == "output.1");
  CHECK(count_ops(program, "aten::lstm.input") == 1);
  nn::GRU gru(nn::GRUOptions(6, 5).num_layers(2).batch_first(true));
  gru->eval();
  import_and_check(
      *gru, inputs,
      [&](const Tensors& given) {
        const auto [output, state] = gru->forward(given[0]);
        return Tensors{output, state};
      },
      trials);
  nn::RNN rnn(nn::RNNOptions(6, 5).nonlinearity(torch::kReLU).batch_first(true));
  import_and_check(*rnn, {inputs[0], {"state", at::randn({1, 2, 5}), {{1, kBatch}}}},
                   [&](const Tensors& given) { return Tensors{std::get<0>(rnn->forward(given[0], given[1]))}; },
                   {{at::randn({4, 7, 6}), at::randn({1, 4, 5})}});
}

TEST_CASE("a transformer encoder with a padding mask keeps batch and sequence dynamic") {
  at::manual_seed(0);
  nn::TransformerEncoder encoder(
      nn::TransformerEncoderOptions(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16), 2));
  encoder->eval();
  const auto mask = [](int64_t batch, int64_t steps) {
    return at::arange(steps).expand({batch, steps}).ge(steps / 2 + 1);
  };
  const Program program = import_and_check(
      *encoder,
      {{"x", at::randn({5, 3, 8}), {{0, kSteps}, {1, kBatch}}}, {"mask", mask(3, 5), {{0, kBatch}, {1, kSteps}}}},
      [&](const Tensors& inputs) { return Tensors{encoder->forward(inputs[0], {}, inputs[1])}; },
      {{at::randn({5, 3, 8}), mask(3, 5)}, {at::randn({2, 4, 8}), mask(4, 2)}, {at::randn({1, 1, 8}), mask(1, 1)}});
  CHECK(program.find_weight("layers.1.self_attn.in_proj_weight") != nullptr);
}

TEST_CASE("attention over another tensor, its weights, and a whole transformer") {
  at::manual_seed(0);
  nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(8, 2));
  attention->eval();
  const NamedDimension sources{"sources", 1, 32};
  const std::vector<TracedInput> inputs = {{"query", at::randn({4, 2, 8}), {{0, kSteps}, {1, kBatch}}},
                                           {"memory", at::randn({6, 2, 8}), {{0, sources}, {1, kBatch}}}};
  const std::vector<Tensors> trials = {{at::randn({3, 5, 8}), at::randn({9, 5, 8})},
                                       {at::randn({1, 1, 8}), at::randn({1, 1, 8})}};
  import_and_check(
      *attention, inputs,
      [&](const Tensors& given) {
        const auto [output, weights] = attention->forward(given[0], given[1], given[1]);
        return Tensors{output, weights};
      },
      trials);
  nn::Transformer transformer(nn::TransformerOptions(8, 2, 1, 1).dim_feedforward(16));
  transformer->eval();
  import_and_check(
      *transformer, inputs,
      [&](const Tensors& given) {
        const at::Tensor causal = nn::TransformerImpl::generate_square_subsequent_mask(given[0].size(0));
        return Tensors{transformer->forward(given[1], given[0], {}, causal)};
      },
      trials);
}

TEST_CASE("tied parameters are one storage under both names; buffers that are cut by sizes are read") {
  at::manual_seed(0);
  struct TiedImpl : nn::Module {
    TiedImpl() {
      register_module("embed", embed);
      register_module("head", head);
      head->weight = embed->weight;
      head->register_parameter("tied", embed->weight);
      positions = register_buffer("positions", at::randn({64, 4}));
    }
    nn::Embedding embed{10, 4};
    nn::Linear head{nn::LinearOptions(4, 10).bias(false)};
    at::Tensor positions;
  } net;
  const Program program = import_and_check(net, {{"ids", at::randint(10, {2, 3}), {{0, kBatch}, {1, kSteps}}}},
                                           [&](const Tensors& inputs) {
                                             const at::Tensor hidden =
                                                 net.embed(inputs[0]) + net.positions.slice(0, 0, inputs[0].size(1));
                                             return Tensors{net.head(hidden)};
                                           },
                                           {{at::randint(10, {6, 5})}, {at::randint(10, {1, 64})}});
  const Weight *embed = program.find_weight("embed.weight"), *tied = program.find_weight("head.tied");
  REQUIRE(embed != nullptr);
  REQUIRE(tied != nullptr);
  CHECK(embed->tensor.is_alias_of(tied->tensor));
  CHECK(embed->tensor.is_alias_of(net.embed->weight));
  CHECK(program.find_weight("positions")->role == WeightRole::buffer);
}

TEST_CASE("numbers computed from sizes are computed by the program") {
  const nn::Sequential nothing;
  const NamedDimension height{"height", 8, 64}, width{"width", 8, 64};
  const Program program = import_and_check(
      *nothing, {{"x", at::randn({2, 3, 12, 10}), {{0, kBatch}, {2, height}, {3, width}}}},
      [](const Tensors& inputs) {
        const at::Tensor& x = inputs[0];
        const int64_t batch = x.size(0), rows = x.size(2), columns = x.size(3);
        const at::Tensor pooled = at::max_pool2d(x, 2);
        const at::Tensor tokens = pooled.view({batch, 3, pooled.size(2) * pooled.size(3)}).transpose(1, 2);
        const at::Tensor mean = x.sum({2, 3}) / (rows * columns);
        const at::Tensor scaled = mean * (1 / std::sqrt(static_cast<double>(columns)));
        const at::Tensor shifted = scaled + static_cast<double>(rows);
        const at::Tensor middle = x.select(2, rows / 2).narrow(2, columns - 3, 2);
        return Tensors{tokens, shifted, middle, at::arange(rows / 4), at::zeros({(rows - 3) / 2 + 1, batch * 2})};
      },
      {{at::randn({1, 3, 8, 8})}, {at::randn({5, 3, 31, 17})}, {at::randn({2, 3, 64, 9})}});
  CHECK(program.value(program.outputs[0].value.value()).type.sizes[0] == Dimension::named("batch"));
}

TEST_CASE("in-place code becomes pure: writes through views, new looks, inputs that are written") {
  const nn::Sequential nothing;
  const Program program =
      import_and_check(*nothing, {{"x", at::randn({3, 4}), {{0, kBatch}}}, {"total", at::zeros({4})}},
                       [](const Tensors& inputs) {
                         at::Tensor y = inputs[0].clone();
                         y.select(1, 0).zero_();
                         y.slice(1, 1, 3).mul_(2).add_(1);
                         y.unsqueeze_(1);
                         at::Tensor table = at::empty({y.size(0), 2});
                         table.select(1, 0).copy_(y.sum({1, 2}));
                         table.select(1, 1).fill_(3);
                         inputs[1].add_(inputs[0].sum(0));
                         return Tensors{y, table, inputs[1].clone(), inputs[0]};
                       },
                       {{at::randn({5, 4}), at::ones({4})}});
  CHECK(program.writes.size() == 1);
  CHECK(program.writes[0].target == program.inputs[1].value);
  for (const Node& node : program.nodes) CHECK_FALSE(find_effects(program, node).barrier());
}

TEST_CASE("tensors that plain C++ filled are constants; handles made behind the dispatcher are seen through") {
  const nn::Sequential nothing;
  const at::Tensor captured = at::randn({4});
  const Program program = import_and_check(
      *nothing, {{"x", at::randn({3, 4}), {{0, kBatch}}}},
      [&](const Tensors& inputs) {
        std::vector<float> numbers = {1, 2, 3, 4};
        const at::Tensor listed = at::tensor(numbers), borrowed = at::from_blob(numbers.data(), {4});
        at::Tensor filled = at::empty({4});
        std::copy(numbers.begin(), numbers.end(), filled.data_ptr<float>());
        at::Tensor hidden = at::zeros({inputs[0].size(0), 4}).variable_data();  // as torch::zeros() makes it
        return Tensors{inputs[0] * listed + borrowed, hidden + filled.to(at::kDouble), inputs[0] + captured};
      },
      {{at::randn({6, 4})}});
  CHECK(program.weights.size() == 4);
  for (const Weight& weight : program.weights) CHECK(weight.role == WeightRole::constant);
}

TEST_CASE("what runs under a NoGradGuard passes no gradient on, and the rest trains") {
  nn::Linear frozen(3, 4), head(4, 2), side(3, 4);
  struct Net : nn::Module {};
  auto net = std::make_shared<Net>();
  net->register_module("frozen", frozen);
  net->register_module("side", side);
  net->register_module("head", head);
  const auto forward = [&](const Tensors& inputs) -> Tensors {
    at::Tensor features;
    {
      const at::NoGradGuard no_grad;
      features = at::cat(at::relu(frozen(inputs[0])).contiguous().chunk(2, 1), 1);
    }
    return {head(features + side(inputs[0]))};
  };
  const Program program = import_and_check(*net, {{"x", at::rand({2, 3}), {{0, kBatch}}}}, forward,
                                           {{at::rand({3, 3})}, {at::rand({1, 3})}});
  const at::Tensor x = at::rand({5, 3});
  const at::AutoGradMode gradients(true);
  std::map<std::string, at::Tensor> expected;
  forward({x})[0].square().sum().backward();
  for (const auto& parameter : net->named_parameters()) expected[parameter.key()] = parameter->grad();
  for (at::Tensor& parameter : net->parameters()) parameter.mutable_grad() = at::Tensor();
  for (const Weight& weight : program.weights) at::Tensor(weight.tensor).detach_().requires_grad_();
  interpret(program, {x}, {.gradients = true})[0].toTensor().square().sum().backward();
  for (const Weight& weight : program.weights) {
    CAPTURE(weight.name);
    const at::Tensor& gradient = expected.at(weight.name);
    CHECK(gradient.defined() == !weight.name.starts_with("frozen"));
    REQUIRE(weight.tensor.grad().defined() == gradient.defined());
    if (gradient.defined()) CHECK(at::allclose(weight.tensor.grad(), gradient));
  }
}

TEST_CASE("sizes that come from data are read from the tensors that have them") {
  const nn::Sequential nothing;
  import_and_check(*nothing, {{"x", at::randn({6, 4}), {{0, kBatch}}}},
                   [](const Tensors& inputs) {
                     const at::Tensor rows = at::nonzero(inputs[0].sum(1) > 0).squeeze(1);
                     const at::Tensor chosen = inputs[0].index_select(0, rows);
                     return Tensors{chosen, at::ones({rows.size(0), 2})};
                   },
                   {{at::randn({9, 4})}, {at::randn({16, 4})}, {at::full({3, 4}, -1.0)}});
}

TEST_CASE("numbers read out of weights that do not change are part of the program") {
  struct ScaledImpl : nn::Module {
    ScaledImpl() { scale = register_buffer("scale", at::full({}, 2.5)); }
    at::Tensor scale;
  } net;
  net.eval();
  import_and_check(net, {{"x", at::randn({3}), {{0, kBatch}}}},
                   [&](const Tensors& inputs) { return Tensors{inputs[0] * net.scale.item<double>()}; },
                   {{at::randn({7})}});
}

TEST_CASE("examples keep what they hold, also when the module writes to its inputs") {
  const nn::Sequential nothing;
  const at::Tensor example = at::ones({2, 3});
  import_module(*nothing, {{"x", example, {{0, kBatch}}}}, [](const Tensors& inputs) { return inputs[0].mul_(2); });
  CHECK(at::equal(example, at::ones({2, 3})));
}
