// One folder of the parity cases, as export_models.py writes it: what the model is called with and what PyTorch
// answers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

namespace lissome {

struct ParityRun {
  std::vector<c10::IValue> inputs;        // arguments that the export froze are left out
  std::vector<c10::IValue> expected;      // per output; none for none and text
  std::vector<c10::IValue> f64;           // the same from float64, empty when there is none
  std::vector<c10::IValue> inputs_after;  // per input; none where the run leaves it alone
  std::vector<c10::IValue> eval,
      eval_f64;  // as expected and f64, of the module in eval mode; empty unless mode is train
};

struct ParityState {
  std::vector<std::pair<std::string, at::Tensor>> before, after, f64;
};

struct ParityCase {
  std::string folder, name, family, mode;
  bool dynamic = false;
  uint64_t seed = 0;
  size_t outputs = 0;
  std::vector<ParityRun> runs;
  std::optional<ParityState> state;

  std::string model() const { return folder + "/model.pt2"; }
};

ParityCase read_parity_case(const std::string& folder);

}  // namespace lissome
