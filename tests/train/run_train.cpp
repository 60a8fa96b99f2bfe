// Optimizers and schedules for the tests of this folder, which compare with PyTorch:
//   run_train schedule TEXT RATE TOTAL STEPS_PER_EPOCH COUNT   prints rate and momentum of the first COUNT steps
//   run_train plateau TEXT RATE METRIC...                      prints the rate after each metric
//   run_train steps ...                                    see run_steps.cpp
//   run_train optimizer NAME IN.npz OUT.npz [KEY=VALUE...]     steps through the gradients in IN, writes the weights
// IN holds weight.W for each weight, and gradient.S.W for its gradient at step S; where there is rows.S.W, the gradient
// holds those rows alone.
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/sparse_coo_tensor.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "lissome/base.h"
#include "lissome/train.h"
#include "tests/train/run_steps.h"

namespace lissome {
namespace {

using Numbers = std::map<std::string, double>;

// The options of PyTorch's names that `numbers` holds; the others keep their defaults.
OptimizerOptions read_options(std::string_view name, const Numbers& numbers) {
  const auto read = [&](const char* key, double& value) {
    if (const auto at = numbers.find(key); at != numbers.end()) value = at->second;
  };
  const auto read_all = [&](auto own) -> OptimizerOptions {
    read("lr", own.lr);
    read("weight_decay", own.weight_decay);
    if constexpr (requires { own.beta1; }) read("beta1", own.beta1), read("beta2", own.beta2);
    if constexpr (requires { own.momentum; }) {
      read("momentum", own.momentum);
      read("dampening", own.dampening);
      own.nesterov = numbers.contains("nesterov");
    }
    return own;
  };
  if (name == "AdamW") return read_all(AdamW{});
  if (name == "Adam") return read_all(Adam{});
  if (name == "SGD") return read_all(Sgd{});
  if (name == "Lion") return read_all(Lion{});
  if (name == "Adafactor") return read_all(Adafactor{});
  throw_error(ErrorKind::usage, "no optimizer ", quote(name));
}

using Tensors = std::map<std::string, at::Tensor>;

Tensors read_tensors(const std::string& path) {
  Tensors tensors;
  for (const NamedArray& item : load_arrays(path)) {
    const auto dtype = item.array.dtype == Dtype::i64 ? at::kLong : at::kFloat;
    tensors[item.name] = at::from_blob(item.array.storage.get(), item.array.sizes, dtype).clone();
  }
  return tensors;
}

at::Tensor find_gradient(const Tensors& tensors, int step, size_t index, const at::Tensor& weight) {
  const std::string place = std::to_string(step) + "." + std::to_string(index);
  const auto gradient = tensors.find("gradient." + place), rows = tensors.find("rows." + place);
  if (gradient == tensors.end() || rows == tensors.end()) {
    return gradient == tensors.end() ? at::Tensor() : gradient->second;
  }
  return at::sparse_coo_tensor(rows->second.unsqueeze(0), gradient->second, weight.sizes());
}

void run_optimizer(const std::vector<std::string>& words) {
  Numbers numbers;
  for (size_t i = 3; i < words.size(); ++i) {
    const auto parts = split(words[i], '=');
    numbers[parts.at(0)] = std::stod(parts.at(1));
  }
  const Tensors tensors = read_tensors(words.at(1));
  std::vector<Parameter> parameters;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with("weight.")) parameters.push_back({name, tensor, {}});
  }
  Optimizer optimizer(parameters, read_options(words.at(0), numbers));
  const StepOptions step_options = {.clip_norm = numbers["clip_norm"],
                                    .loss_scale = numbers.contains("loss_scale") ? numbers["loss_scale"] : 1};
  for (int step = 0; tensors.contains("gradient." + std::to_string(step) + ".0"); ++step) {
    std::vector<at::Tensor> gradients;
    for (size_t i = 0; i < parameters.size(); ++i) {
      gradients.push_back(find_gradient(tensors, step, i, parameters[i].weight));
    }
    optimizer.step(gradients, step_options);
  }
  std::vector<NamedArray> results;
  for (const Parameter& parameter : parameters) {
    results.push_back({parameter.name, make_array(Dtype::f32, parameter.weight.sizes().vec())});
    std::memcpy(results.back().array.storage.get(), parameter.weight.data_ptr(), parameter.weight.nbytes());
  }
  save_arrays(words.at(2), results);
}

void run_schedule(const std::vector<std::string>& words) {
  const Schedule schedule =
      parse_schedule(words.at(0), {std::stod(words.at(1)), std::stoll(words.at(2)), std::stoll(words.at(3))});
  for (int64_t step = 0; step < std::stoll(words.at(4)); ++step) {
    const RatePoint point = schedule.at(step);
    std::printf("%.17g %.17g\n", point.learning_rate, point.momentum.value_or(-1));
  }
}

void run_plateau(const std::vector<std::string>& words) {
  Schedule schedule = parse_schedule(words.at(0), {std::stod(words.at(1)), 0, 1});
  for (size_t i = 2; i < words.size(); ++i) {
    schedule.observe(std::stod(words[i]));
    std::printf("%.17g\n", schedule.at(0).learning_rate);
  }
}

}  // namespace
}  // namespace lissome

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const std::vector<std::string> rest(words.begin() + !words.empty(), words.end());
  try {
    const std::string verb = words.empty() ? "" : words.front();
    if (verb == "optimizer") {
      lissome::run_optimizer(rest);
    } else if (verb == "schedule") {
      lissome::run_schedule(rest);
    } else if (verb == "plateau") {
      lissome::run_plateau(rest);
    } else if (verb == "steps") {
      lissome::run_steps(rest);
    } else {
      std::fprintf(stderr, "run_train optimizer|schedule|plateau|steps ...\n");
      return 2;
    }
  } catch (const lissome::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return lissome::exit_code(error.kind());
  }
  return 0;
}
