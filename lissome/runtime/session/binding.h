// A plan for one set of input sizes: sizes of all values, places in the arena, and steps as function pointers with
// filled calls. Made once per shape (sizes and offsets only; nothing is run), kept by the session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lissome/runtime/memory/memory_plan.h"
#include "lissome/runtime/session/run/stage_list.h"
#include "lissome/runtime/step/step_binder.h"

namespace lissome {

enum class SegmentKind : uint8_t { native, reference, transfer };

// Native steps that run in one parallel region, one reference step, or one transfer.
struct Segment {
  SegmentKind kind = SegmentKind::native;
  // Bound steps [first, last); of a reference `first` is the step of the plan, of a transfer its place among transfers.
  int first = 0, last = 0;
};

// Where a value lies that is made inside another, which a concatenation makes of it: bytes from that one's first.
struct Piece {
  PlanValueId joined = PlanValueId::none;
  int64_t offset = 0;
};

class Binding {
 public:
  // Throws invalid_input when the plan does not fit together, over_budget when sizes are absurd.
  Binding(const Plan& plan, const DimensionValues& dimensions, int threads);

  const std::vector<PlacedValue>& values() const { return parts_.values; }
  const PlacedValue& value(PlanValueId id) const { return parts_.values[static_cast<size_t>(id)]; }
  std::span<const BoundStep> steps() const { return parts_.steps; }
  const std::vector<Segment>& segments() const { return segments_; }
  // Bound steps [first, last), at least one, as stages of a region. `timed`: each step in a stage of its own.
  Stages stages(int first, int last, bool timed) const { return (timed ? timed_stages_ : stages_).cut(first, last); }
  int64_t arena_bytes() const { return arena_.bytes; }
  const PlannedArena& arena() const { return arena_; }
  const std::vector<PlannedBuffer>& buffers() const { return buffers_; }
  std::span<const BindingParts::Scratch> scratch() const { return parts_.scratch; }
  std::span<const Transfer> transfers() const { return parts_.transfers; }
  // The step of the plan that a segment begins with.
  int first_step(const Segment& segment) const;

  static constexpr int kRunBlock = StepBinder::kRunBlock;
  // Writes the addresses of everything in the arena into the calls; needed once, and when the arena has moved.
  void place_arena(std::byte* base);
  // The same for one block outside the arena: an input, constant, state, output or held value, or the RunWords.
  void place_block(int block, const void* address);
  // Where the first element of an arena value lies.
  std::byte* arena_address(int block) const { return arena_base_ + block_offset_[static_cast<size_t>(block)]; }
  bool in_arena(int block) const { return block_offset_[static_cast<size_t>(block)] >= 0; }

 private:
  void size_values(const Plan& plan, const DimensionValues& dimensions);
  void bind_steps(const Plan& plan);
  // Sizes such as [2^20, 2^20, 0] would have a kernel walk through 2^40 empty rows: where a step makes no element, none
  // is run.
  void drop_empty_step(std::span<const PlanValueId> results);
  void plan_arena(const Plan& plan);
  // `source`: the operand whose memory a value takes over, or none.
  void place_buffers(const Plan& plan, const struct Lifetimes& lifetimes, const std::vector<bool>& direct,
                     const std::vector<PlanValueId>& source, const std::vector<Piece>& pieces);
  void sort_pointers();
  void write_pointer(const BoundPointer& pointer, std::byte* base);

  BindingParts parts_;
  std::vector<Segment> segments_;
  StageList stages_, timed_stages_;
  std::vector<PlannedBuffer> buffers_;
  std::vector<int64_t> block_offset_;  // by block; -1 outside the arena
  std::vector<int> first_pointer_;     // by block + 1 (RunWords first): into parts_.pointers, sorted by block
  PlannedArena arena_;
  std::byte* arena_base_ = nullptr;
};

// How long memory is needed: for every value that owns arena memory its first and last step, views and what libtorch
// may alias counted in. Same for every shape. -1 where a value owns none.
struct Lifetimes {
  std::vector<int> first, last;  // by value
  std::vector<int> given;        // by value: the step behind which an output that leaves early is last read from it; -1
};
Lifetimes find_lifetimes(const Plan& plan);
// Which held values no later step, output or write needs once a step has run, by step.
std::vector<std::vector<PlanValueId>> find_held_drops(const Plan& plan);
// Held values that native steps read, themselves or through views.
std::vector<bool> find_natively_read(const Plan& plan);
// Values of the plan that leave the run straight from the memory that the caller gives.
std::vector<bool> find_direct_outputs(const Plan& plan);

}  // namespace lissome
