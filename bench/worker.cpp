// Runs a finished model, one call's rows of the inputs at a time, on request: lissome's side of
// bench/compare_eager.py and bench/compare_peers.py, which start it. A process without libtorch, as finished models are
// deployed.
//   lissome_bench_worker MODEL.lissome INPUTS.npz THREADS [ANSWERS]
// Says `ready` once the model has run a few times, then answers each line on stdin with one on stdout:
//   run N         N latencies in nanoseconds, of the next N rows (the first row follows the last)
//   outputs PATH  `ok`; PATH, an .npz, holds `output`: the first output of every call, one behind the other
// With ANSWERS it answers so many calls, then prints the clock at the first answer in nanoseconds and the peak of its
// resident memory in kB, and ends.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/runtime.h"

namespace {

constexpr int kWarmUpRuns = 20;

using Row = std::vector<lissome::TensorView>;

// Arrays feed the inputs of their name, else those at their place; what is left over (labels) is no input.
std::vector<lissome::Array> choose_arrays(const lissome::Plan& plan, const std::vector<lissome::NamedArray>& arrays) {
  std::vector<lissome::Array> chosen;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const auto named = std::find_if(arrays.begin(), arrays.end(),
                                    [&](const lissome::NamedArray& a) { return a.name == plan.inputs[i].name; });
    chosen.push_back(named != arrays.end() ? named->array : arrays.at(i).array);
  }
  return chosen;
}

// Rows of one call: those that the model insists on, else one.
int64_t find_batch(const lissome::Plan& plan) {
  const lissome::PlanValueId value = plan.inputs.at(0).value;
  if (!lissome::is_value(value)) return 1;
  return plan.value(value).sizes.at(0).constant().value_or(1);
}

std::vector<Row> cut_rows(const std::vector<lissome::Array>& arrays, int64_t batch) {
  std::vector<Row> rows(static_cast<size_t>(arrays.at(0).sizes.at(0) / batch));
  for (const lissome::Array& array : arrays) {
    lissome::TensorView view = array.view();
    view.sizes.at(0) = batch;
    const int64_t row_bytes = view.elements() * lissome::item_size(array.dtype);
    for (Row& row : rows) {
      row.push_back(view);
      view.data = static_cast<std::byte*>(view.data) + row_bytes;
    }
  }
  return rows;
}

int64_t read_peak_kilobytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  int64_t kilobytes = 0;
  while (status >> word && word != "VmHWM:") {
  }
  status >> kilobytes;
  return kilobytes;
}

class Worker {
 public:
  Worker(const std::string& model, const std::string& inputs, int threads)
      : session_(lissome::Session::load(model, {.threads = threads})),
        arrays_(choose_arrays(session_.plan(), lissome::load_arrays(inputs))),
        rows_(cut_rows(arrays_, find_batch(session_.plan()))) {}

  void warm_up() {
    bind_outputs();
    for (int i = 1; i < kWarmUpRuns; ++i) run(rows_[static_cast<size_t>(i) % rows_.size()]);
  }

  void answer_lean(int64_t count) {
    bind_outputs();
    const auto first = std::chrono::steady_clock::now().time_since_epoch();
    for (int64_t i = 1; i < count; ++i) run(rows_[0]);
    std::cout << std::chrono::duration_cast<std::chrono::nanoseconds>(first).count() << ' ' << read_peak_kilobytes()
              << std::endl;
  }

  void answer_run(int64_t count) {
    std::vector<int64_t> times;
    for (int64_t i = 0; i < count; ++i) {
      const Row& row = rows_[position_];
      position_ = (position_ + 1) % rows_.size();
      const auto start = std::chrono::steady_clock::now();
      run(row);
      const auto end = std::chrono::steady_clock::now();
      times.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count());
    }
    for (const int64_t time : times) std::cout << time << ' ';
    std::cout << std::endl;
  }

  void answer_outputs(const std::string& path) {
    lissome::Array all;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const lissome::Array output = session_.run(rows_[i]).at(0);
      if (i == 0) {
        lissome::Sizes sizes = output.sizes;
        sizes.at(0) *= static_cast<int64_t>(rows_.size());
        all = lissome::make_array(output.dtype, sizes);
      }
      const auto bytes = static_cast<size_t>(output.bytes());
      std::memcpy(all.data<std::byte>() + i * bytes, output.data<std::byte>(), bytes);
    }
    lissome::save_arrays(path, {{"output", all}});
    std::cout << "ok" << std::endl;
  }

 private:
  // The first answer, whose memory the others take: outputs are bound before, as for the other engines.
  void bind_outputs() {
    outputs_ = session_.run(rows_.at(0));
    for (const lissome::Array& output : outputs_) places_.push_back(output.view());
  }
  void run(const Row& row) { session_.run_into(row, places_); }

  lissome::Session session_;
  std::vector<lissome::Array> arrays_;
  std::vector<Row> rows_;
  std::vector<lissome::Array> outputs_;
  Row places_;
  size_t position_ = 0;
};

void answer_commands(Worker& worker) {
  worker.warm_up();
  std::cout << "ready" << std::endl;
  std::string command, argument;
  while (std::cin >> command >> argument) {
    if (command == "run")
      worker.answer_run(std::stoll(argument));
    else if (command == "outputs")
      worker.answer_outputs(argument);
    else
      throw std::runtime_error("unknown command " + command);
  }
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 4 && argument_count != 5) {
    std::fprintf(stderr, "usage: lissome_bench_worker MODEL.lissome INPUTS.npz THREADS [ANSWERS]\n");
    return 2;
  }
  try {
    Worker worker(arguments[1], arguments[2], std::stoi(arguments[3]));
    if (argument_count == 5)
      worker.answer_lean(std::stoll(arguments[4]));
    else
      answer_commands(worker);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
