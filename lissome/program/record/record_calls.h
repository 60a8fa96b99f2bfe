// Listens to PyTorch's dispatcher: every op that a piece of C++ code calls, with its arguments and results. For
// importing torch::nn modules and for gradients. A recording holds numbers for tensors, given in order of appearance,
// so that recordings of the same calls can be compared; contents are kept only of tensors that no recorded op made.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <string>
#include <vector>

#include "lissome/program/program.h"

namespace lissome {

struct RecordedTensor {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;
  // Of a tensor that came from elsewhere (made in plain C++, or filled through its memory): what it held when first
  // read.
  at::Tensor contents;
};

// Tensors in `arguments` and `results` are ValueIds that count in Recording::tensors.
struct RecordedCall {
  c10::OperatorHandle op;
  ArgumentList arguments, results;
  std::string problem;  // why an argument or result could not be recorded; empty when all were
};

struct Recording {
  std::vector<RecordedTensor> tensors;  // those known beforehand first, in the order given
  std::vector<RecordedCall> calls;
  ArgumentList outputs;
};

enum class RecordingLevel : uint8_t {
  outermost,       // what the code calls itself: aten::lstm, not the matrix products inside of it; without autograd
  differentiated,  // the ops that have a derivative or need none: what autograd sees, and what its formulas call
  // The same, with ops that write in place run as a copy of what they overwrite, their form that gives a new tensor,
  // and a copy of that back: autograd keeps such copies for its formulas, made where no op shows them.
  differentiated_out_of_place,
};

inline bool records_gradients(RecordingLevel level) { return level != RecordingLevel::outermost; }

// On while calls are recorded on a thread; what excludes it there is not noted.
inline constexpr c10::DispatchKey kRecordingKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Runs `code` on this thread; `known` are tensors that it may read by their own. Exceptions of `code` pass through.
Recording record_calls(const std::vector<at::Tensor>& known, RecordingLevel level,
                       const std::function<std::vector<at::Tensor>()>& code);

}  // namespace lissome
