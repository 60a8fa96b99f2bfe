// Trains a model on batches of a file on request: lissome's side of bench/compare_training.py, which starts it.
//   lissome_training_worker MODEL.pt2 DATA.npz BATCH THREADS PRECISION
// PRECISION is f32, bf16 or fp16: as autocast has it.
// Says `ready` once a few steps have run, then answers each line on stdin with one on stdout:
//   run N         N times of a step in nanoseconds: forward, backward and AdamW over the next batch
//   loss 1        the loss of the last step
//   nodes N       the N costliest steps of the plan, on stderr
//   text 1        the joint program, on stderr
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>

#include "lissome/compare.h"
#include "lissome/data.h"
#include "lissome/train.h"
#include "lissome/train/step/precision.h"

namespace lissome {
namespace {

constexpr int kWarmUpSteps = 3;

at::Tensor to_tensor(const Array& array) {
  return at::from_blob(
             array.storage.get(), array.sizes, [kept = array.storage](void*) {}, scalar_type_of(array.dtype))
      .clone();
}

class Worker {
 public:
  Worker(const std::string& model, const std::string& data, int64_t batch, int threads, Dtype precision)
      : model_(import_pt2(model)),
        data_(fit_dataset(load_dataset(data, {.labels = "labels"}), describe_inputs(model_))),
        batch_(batch),
        step_(attach(precision), take(0, std::min<int64_t>(3, batch)), {.threads = threads}),
        optimizer_(list_parameters(), AdamW{}) {
    for (int64_t first = 0; first + batch <= data_.samples(); first += batch) batches_.push_back(take(first, batch));
    for (int i = 0; i < kWarmUpSteps; ++i) run();
  }

  void run(const StepSink* sink = nullptr) {
    loss_ = step_.run(batches_[position_++ % batches_.size()], sink).at(0);
    optimizer_.step(step_.gradients(), {.lr = 1e-4});
  }

  void answer_run(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const auto start = std::chrono::steady_clock::now();
      run();
      const auto end = std::chrono::steady_clock::now();
      std::cout << std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count() << ' ';
    }
    std::cout << std::endl;
  }

  // Of one step: kind of node and kernel, how often, milliseconds together.
  void print_nodes(int64_t count) {
    std::map<std::string, std::pair<int, int64_t>> kinds;
    const StepSink sink = [&](const StepTiming& timing) {
      const std::string op = timing.origin != nullptr ? timing.origin->op : "";
      auto& [times, nanoseconds] = kinds[std::string(timing.kernel) + " " + op];
      ++times, nanoseconds += timing.nanoseconds;
    };
    run(&sink);
    std::vector<std::pair<int64_t, std::string>> sorted;
    for (const auto& [name, kind] : kinds) sorted.emplace_back(kind.second, name + " x" + std::to_string(kind.first));
    std::sort(sorted.rbegin(), sorted.rend());
    for (const auto& [nanoseconds, name] : sorted) {
      if (count-- > 0) std::fprintf(stderr, "%9.3f ms  %s\n", static_cast<double>(nanoseconds) * 1e-6, name.c_str());
    }
    std::cout << "ok" << std::endl;
  }
  void print_text() {
    std::fputs(print_program(step_.program()).c_str(), stderr);
    std::cout << "ok" << std::endl;
  }
  double loss() const { return loss_.item().toDouble(); }

 private:
  Program attach(Dtype precision) const {
    const Sizes& sizes = data_.labels->sizes;
    const Program program = attach_loss(model_, {}, data_.labels->dtype, {sizes.begin() + 1, sizes.end()});
    return precision == Dtype::f32 ? program : apply_autocast(program, precision);
  }

  std::vector<at::Tensor> take(int64_t first, int64_t count) const {
    std::vector<at::Tensor> tensors;
    for (const NamedArray& column : take_batch(data_, first, count)) tensors.push_back(to_tensor(column.array));
    tensors.push_back(to_tensor(take_labels(data_, first, count)));
    return tensors;
  }

  std::vector<Parameter> list_parameters() const {
    std::vector<Parameter> parameters;
    for (const std::string& name : step_.names())
      parameters.push_back({name, step_.program().find_weight(name)->tensor, {}});
    return parameters;
  }

  Program model_;
  Dataset data_;
  int64_t batch_;
  TrainingStep step_;
  Optimizer optimizer_;
  std::vector<std::vector<at::Tensor>> batches_;
  size_t position_ = 0;
  at::Tensor loss_;
};

}  // namespace
}  // namespace lissome

int main(int argument_count, char** arguments) {
  if (argument_count != 6) {
    std::fprintf(stderr, "usage: lissome_training_worker MODEL.pt2 DATA.npz BATCH THREADS PRECISION\n");
    return 2;
  }
  try {
    const int threads = std::stoi(arguments[4]);
    at::set_num_threads(threads);
    lissome::Worker worker(arguments[1], arguments[2], std::stoll(arguments[3]), threads,
                           lissome::parse_precision(arguments[5]).value());
    std::cout << "ready" << std::endl;
    std::string command;
    int64_t count = 0;
    while (std::cin >> command >> count) {
      if (command == "run") {
        worker.answer_run(count);
      } else if (command == "nodes") {
        worker.print_nodes(count);
      } else if (command == "text") {
        worker.print_text();
      } else if (command == "loss") {
        std::cout << worker.loss() << std::endl;
      } else {
        throw std::runtime_error("unknown command " + command);
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
