// Looks at the memory of a training between steps: where it goes, and whether it grows from look to look.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lissome/train/budget/memory_view.h"
#include "lissome/train/budget/training_bytes.h"
#include "lissome/train/loop/train_record.h"
#include "lissome/train/step/training_step.h"

namespace lissome {

class MemoryWatch {
 public:
  // `before`: bytes that were live before the training began (start_metering()). `every`: steps between looks, and one
  // more look after the first step of a run; 0: none.
  MemoryWatch(int64_t before, int64_t every) : before_(before), every_(every) {}

  // Whether to look after the last step of `record`.
  bool is_due(const TrainRecord& record) const;
  // `inputs`: of the last part that `step` ran; `bytes`: beside the values inside the step. The first look also fills
  // step_memory and places of `record`.
  MemoryRecord look(TrainingStep& step, const std::vector<at::Tensor>& inputs, const TrainingBytes& bytes,
                    TrainRecord& record) const;
  // Takes MemoryRecord::allocated of each look. Returns a notice once when it keeps growing.
  std::optional<std::string> check_growth(int64_t allocated);

 private:
  int64_t before_, every_;
  LeakCheck leak_;
};

// Counts the memory of libtorch from now on; see meter_allocations(). Returns the bytes that are live now.
int64_t start_metering();

// The parts of a memory record that are known without measuring. `inputs`: samples that run at once.
MemoryRecord count_memory(const MemoryTimeline& timeline, const std::vector<at::Tensor>& inputs,
                          const TrainingBytes& bytes);

}  // namespace lissome
