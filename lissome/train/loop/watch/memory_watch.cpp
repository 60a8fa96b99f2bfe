// See memory_watch.h.
#include "lissome/train/loop/watch/memory_watch.h"

#include "lissome/measure.h"
#include "lissome/train/budget/allocation_meter.h"

namespace lissome {

int64_t start_metering() {
  meter_allocations();
  return allocator_memory().live();
}

MemoryRecord count_memory(const MemoryTimeline& timeline, const std::vector<at::Tensor>& inputs,
                          const TrainingBytes& bytes) {
  MemoryRecord memory{
      .weights = bytes.weights, .gradients = bytes.gradients, .states = bytes.states, .reserved = timeline.reserved};
  for (const at::Tensor& input : inputs) memory.batch += static_cast<int64_t>(input.nbytes());
  if (timeline.peak_step >= 0) {
    memory.activations = timeline.values[static_cast<size_t>(timeline.peak_step)];
    memory.scratch = timeline.scratch[static_cast<size_t>(timeline.peak_step)];
  }
  return memory;
}

bool MemoryWatch::is_due(const TrainRecord& record) const {
  return every_ > 0 && (record.places.empty() || record.steps % every_ == 0);
}

MemoryRecord MemoryWatch::look(TrainingStep& step, const std::vector<at::Tensor>& inputs, const TrainingBytes& bytes,
                               TrainRecord& record) const {
  const MemoryTimeline timeline = step.trace_arena(inputs);
  const ResidentMemory resident = read_resident_memory();
  MemoryRecord memory = count_memory(timeline, inputs, bytes);
  memory.step = record.steps;
  memory.allocated = allocator_memory().live() - before_;
  memory.resident = resident.now, memory.resident_peak = resident.peak;
  if (record.places.empty()) {
    record.places = list_memory_places(step.session().plan(), timeline);
    for (int i = 0; i < static_cast<int>(timeline.values.size()); ++i) record.step_memory.push_back(timeline.total(i));
  }
  return memory;
}

std::optional<std::string> MemoryWatch::check_growth(int64_t allocated) {
  if (!leak_.observe(allocated)) return std::nullopt;
  return "allocators hold " + format_bytes(leak_.growth()) + " more than " + std::to_string(5 * every_) +
         " steps ago, and the memory grows each time: something keeps memory from step to step";
}

}  // namespace lissome
