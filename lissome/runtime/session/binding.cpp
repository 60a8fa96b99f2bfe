#include "lissome/runtime/session/binding.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "lissome/runtime/memory/arena_guard.h"
#include "lissome/runtime/step/move/copy_steps.h"
#include "lissome/runtime/step/step_schema.h"

namespace lissome {
namespace {

constexpr int64_t kValueAlignment = 64;  // of every value

// In place of a kernel where there is nothing to make.
void make_nothing(const void* /*call*/, int /*part*/, int /*parts*/) {}

int64_t value_bytes(const PlacedValue& value) { return value.elements() * item_size(value.dtype); }

// Which arena values take over the memory of an operand that dies where they are made: result -> operand.
std::vector<PlanValueId> find_in_place(const Plan& plan, const Lifetimes& lifetimes,
                                       const std::vector<PlacedValue>& values, const std::vector<bool>& direct) {
  std::vector<PlanValueId> source(plan.values.size(), PlanValueId::none);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (step.kernel == kReferenceStep || step.results.size() != 1) continue;
    const uint32_t allowed = find_step_row(step.kernel).in_place;
    const auto result = static_cast<size_t>(step.results[0]);
    if (plan.values[result].storage != Storage::arena || direct[result]) continue;
    for (size_t position = 0; position < step.operands.size() && position < 32; ++position) {
      const PlanValueId operand = step.operands[position];
      if (!(allowed >> position & 1) || !is_value(operand)) continue;
      const auto at = static_cast<size_t>(operand);
      const bool owns = plan.values[at].storage == Storage::arena && !direct[at];
      // No other operand may read the same memory, not even through a view.
      const bool once = std::count_if(step.operands.begin(), step.operands.end(), [&](PlanValueId other) {
                          return is_value(other) && values[static_cast<size_t>(other)].block == block_of(operand);
                        }) == 1;
      const int now = static_cast<int>(i);
      if (!owns || !once || lifetimes.last[at] != now || lifetimes.given[at] == now) continue;
      if (values[at].dtype != values[result].dtype || values[at].sizes != values[result].sizes ||
          values[at].strides != values[result].strides) {
        continue;
      }
      source[result] = operand;
      break;
    }
  }
  return source;
}

// Whether what comes before dimension `dim` in memory counts 1, so that what a concatenation joins lies in one run.
bool joins_runs(const PlacedValue& joined, size_t dim) {
  for (size_t i = 0; i < joined.sizes.size(); ++i) {
    if (joined.sizes[i] != 1 && joined.strides[i] > joined.strides[dim]) return false;
  }
  return true;
}

// Arena values that are made where a concatenation wants them, in its result: those that nobody reads after it, whole,
// and at an aligned place. `source`: see find_in_place().
std::vector<Piece> find_pieces(const Plan& plan, const Lifetimes& lifetimes, const std::vector<PlacedValue>& values,
                               const std::vector<bool>& direct, const std::vector<PlanValueId>& source) {
  std::vector<Piece> pieces(plan.values.size());
  const auto is_shared = [&](PlanValueId id) { return std::find(source.begin(), source.end(), id) != source.end(); };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (!is_step<ConcatStep>(plan.steps[i])) continue;
    const auto step = read_step<ConcatStep>(plan.steps[i]);
    const auto joined = static_cast<size_t>(step.y.value);
    if (plan.values[joined].storage != Storage::arena || direct[joined]) continue;
    if (!joins_runs(values[joined], static_cast<size_t>(step.dim))) continue;
    int64_t offset = 0;
    for (const Operand& operand : step.pieces()) {
      const PlacedValue& piece = values[static_cast<size_t>(operand.value)];
      const int64_t place = std::exchange(offset, offset + value_bytes(piece));
      const PlanValueId owner = owner_of(piece.block);
      const auto root = static_cast<size_t>(owner);
      if (!is_value(owner) || root >= plan.values.size()) continue;
      const bool owns = plan.values[root].storage == Storage::arena && !direct[root] && !is_value(pieces[root].joined);
      const bool whole = piece.offset == 0 && value_bytes(piece) == value_bytes(values[root]);
      const bool ends_here = lifetimes.last[root] == static_cast<int>(i) && lifetimes.given[root] < 0;
      if (!owns || !whole || !ends_here || place % kValueAlignment != 0) continue;
      if (is_value(source[root]) || is_shared(owner)) continue;
      pieces[root] = {step.y.value, place};
    }
  }
  return pieces;
}

// In the outermost value, where what is joined is joined again.
Piece find_place(const std::vector<Piece>& pieces, size_t value) {
  Piece place = pieces[value];
  for (Piece next = pieces[static_cast<size_t>(place.joined)]; is_value(next.joined);
       next = pieces[static_cast<size_t>(place.joined)]) {
    place = {next.joined, place.offset + next.offset};
  }
  return place;
}

}  // namespace

Binding::Binding(const Plan& plan, const DimensionValues& dimensions, int threads) {
  parts_.threads = threads;
  size_values(plan, dimensions);
  bind_steps(plan);
  stages_ = StageList::join(parts_.steps), timed_stages_ = StageList::separate(parts_.steps);
  plan_arena(plan);
  sort_pointers();
}

void Binding::size_values(const Plan& plan, const DimensionValues& dimensions) {
  parts_.values.resize(plan.values.size());
  for (const PlanValueId id : plan.value_ids()) {
    const PlanValue& value = plan.value(id);
    PlacedValue& bound = parts_.values[static_cast<size_t>(id)];
    bound.dtype = value.dtype;
    bound.block = block_of(id);
    if (!value.sized) continue;
    for (const SizeExpression& size : value.sizes) {
      const auto number = size.evaluate(dimensions);
      if (!number || *number < 0) {
        throw_error(ErrorKind::invalid_input, "plan: size ", quote(size.text()), " of value %", value.name,
                    " does not follow from the sizes of the inputs");
      }
      bound.sizes.push_back(*number);
    }
    // A size of 0 counts as 1: loops go over the others.
    Sizes filled = bound.sizes;
    for (int64_t& size : filled) size = std::max<int64_t>(size, 1);
    const auto bytes = count_bytes(bound.dtype, filled);
    if (!bytes || *bytes > kLargestBytes) {
      throw_error(ErrorKind::over_budget, "plan: value %", value.name, " would be ", dtype_name(bound.dtype),
                  format_sizes(bound.sizes), ": give smaller inputs");
    }
    bound.strides = dense_strides(bound.sizes, value.format);
  }
}

void Binding::drop_empty_step(std::span<const PlanValueId> results) {
  if (!std::all_of(results.begin(), results.end(), [&](PlanValueId id) { return value(id).elements() == 0; })) return;
  BoundStep& step = parts_.steps.back();
  step.function = make_nothing, step.parts = 1;
}

void Binding::bind_steps(const Plan& plan) {
  std::vector<bool> leaves(plan.steps.size(), false);  // whether an output is given away behind a step
  for (const PlanOutput& output : plan.outputs) {
    if (output.leaves_after >= 0) leaves[static_cast<size_t>(output.leaves_after)] = true;
  }
  parts_.steps.reserve(plan.steps.size());
  bool cut = false;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    cut = cut || (i > 0 && leaves[i - 1]);
    if (step.kernel == kReferenceStep) {
      segments_.push_back({SegmentKind::reference, static_cast<int>(i), static_cast<int>(i) + 1});
      continue;
    }
    const StepRow& row = find_step_row(step.kernel);
    StepBinder binder(plan, static_cast<int>(i), parts_);
    for (const PlanValueId id : step.results) {
      binder.require(row.view == (plan.value(id).storage == Storage::view), "its result is ",
                     storage_name(plan.value(id).storage));
    }
    check_layouts(binder, row.schema);
    if (row.view) {
      row.bind(binder);
      continue;
    }
    if (row.transfer) {
      row.bind(binder);
      const int position = static_cast<int>(parts_.transfers.size()) - 1;
      segments_.push_back({SegmentKind::transfer, position, position + 1});
      continue;
    }
    parts_.steps.emplace_back();
    parts_.steps.back().plan_step = static_cast<int>(i);
    row.bind(binder);
    drop_empty_step(step.results);
    for (const PlanValueId id : step.operands) {
      if (is_value(id)) parts_.steps.back().bytes += value_bytes(value(id));
    }
    for (const PlanValueId id : step.results) parts_.steps.back().bytes += value_bytes(value(id));
    const int position = static_cast<int>(parts_.steps.size()) - 1;
    if (segments_.empty() || segments_.back().kind != SegmentKind::native || std::exchange(cut, false))
      segments_.push_back({SegmentKind::native, position, position});
    segments_.back().last = position + 1;
  }
}

int Binding::first_step(const Segment& segment) const {
  const auto first = static_cast<size_t>(segment.first);
  if (segment.kind == SegmentKind::reference) return segment.first;
  return segment.kind == SegmentKind::transfer ? parts_.transfers[first].plan_step : parts_.steps[first].plan_step;
}

void Binding::plan_arena(const Plan& plan) {
  const Lifetimes lifetimes = find_lifetimes(plan);
  const std::vector<bool> direct = find_direct_outputs(plan);
  const std::vector<PlanValueId> source = find_in_place(plan, lifetimes, parts_.values, direct);
  const std::vector<Piece> pieces = find_pieces(plan, lifetimes, parts_.values, direct, source);
  place_buffers(plan, lifetimes, direct, source, std::vector<Piece>(pieces.size()));
  if (std::any_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return is_value(piece.joined); })) {
    // What is joined needs its place from the first piece on: that may not cost memory.
    auto apart = std::make_tuple(std::move(buffers_), std::move(block_offset_), arena_);
    place_buffers(plan, lifetimes, direct, source, pieces);
    if (arena_.bytes > std::get<PlannedArena>(apart).bytes)
      std::tie(buffers_, block_offset_, arena_) = std::move(apart);
  }
  if (arena_.bytes > kLargestBytes) {
    throw_error(ErrorKind::over_budget, "intermediate values of ", arena_.bytes, " bytes: give smaller inputs");
  }
}

void Binding::place_buffers(const Plan& plan, const Lifetimes& lifetimes, const std::vector<bool>& direct,
                            const std::vector<PlanValueId>& source, const std::vector<Piece>& pieces) {
  buffers_.clear();
  block_offset_.assign(plan.values.size() + parts_.scratch.size(), -1);
  std::vector<int> buffer_of(block_offset_.size(), -1);
  for (size_t i = 0; i < plan.values.size(); ++i) {
    if (plan.values[i].storage != Storage::arena || direct[i] || lifetimes.first[i] < 0 || is_value(source[i]))
      continue;
    if (is_value(pieces[i].joined)) continue;
    buffer_of[i] = static_cast<int>(buffers_.size());
    buffers_.push_back({value_bytes(parts_.values[i]), lifetimes.first[i], lifetimes.last[i], 0});
  }
  // In the order of steps: in a chain of in-place steps each takes over what the one before took over.
  for (const PlanStep& step : plan.steps) {
    for (const PlanValueId result : step.results) {
      const auto at = static_cast<size_t>(result);
      if (!is_value(source[at])) continue;
      buffer_of[at] = buffer_of[static_cast<size_t>(source[at])];
      PlannedBuffer& buffer = buffers_[static_cast<size_t>(buffer_of[at])];
      buffer.last_step = std::max(buffer.last_step, lifetimes.last[at]);
    }
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!is_value(pieces[i].joined)) continue;
    const auto whole = static_cast<size_t>(find_place(pieces, i).joined);
    PlannedBuffer& buffer = buffers_[static_cast<size_t>(buffer_of[whole])];
    buffer.first_step = std::min(buffer.first_step, lifetimes.first[i]);
  }
  for (const BindingParts::Scratch& scratch : parts_.scratch) {
    const int step = parts_.steps[static_cast<size_t>(scratch.step)].plan_step;
    buffer_of[static_cast<size_t>(scratch.block)] = static_cast<int>(buffers_.size());
    buffers_.push_back({scratch.bytes, step, step, 0});
  }
  // Planning adds sizes up; sums of what a machine holds never overflow, those of a hostile plan may.
  int64_t total = 0;
  for (const PlannedBuffer& buffer : buffers_) {
    if (__builtin_add_overflow(total, buffer.bytes, &total) || total > INT64_MAX / 2)
      throw_error(ErrorKind::over_budget, "plan: intermediate values take more than 2^62 bytes: give smaller inputs");
  }
  arena_ = guards_arenas() ? place_apart(buffers_) : plan_memory(buffers_);
  for (size_t block = 0; block < buffer_of.size(); ++block) {
    if (buffer_of[block] >= 0) block_offset_[block] = buffers_[static_cast<size_t>(buffer_of[block])].offset;
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!is_value(pieces[i].joined)) continue;
    const Piece place = find_place(pieces, i);
    block_offset_[i] = block_offset_[static_cast<size_t>(place.joined)] + place.offset;
  }
}

void Binding::sort_pointers() {
  std::stable_sort(parts_.pointers.begin(), parts_.pointers.end(),
                   [](const BoundPointer& left, const BoundPointer& right) { return left.block < right.block; });
  first_pointer_.assign(block_offset_.size() + 2, 0);
  for (const BoundPointer& pointer : parts_.pointers) ++first_pointer_[static_cast<size_t>(pointer.block) + 2];
  for (size_t i = 1; i < first_pointer_.size(); ++i) first_pointer_[i] += first_pointer_[i - 1];
}

void Binding::write_pointer(const BoundPointer& pointer, std::byte* base) {
  std::byte* address = base + pointer.offset;
  std::memcpy(parts_.steps[static_cast<size_t>(pointer.step)].call.data() + pointer.call_offset, &address,
              sizeof(address));
}

void Binding::place_arena(std::byte* base) {
  if (base == arena_base_) return;
  arena_base_ = base;
  for (const BoundPointer& pointer : parts_.pointers) {
    if (pointer.block >= 0 && in_arena(pointer.block)) write_pointer(pointer, arena_address(pointer.block));
  }
}

void Binding::place_block(int block, const void* address) {
  const auto at = static_cast<size_t>(block + 1);
  for (int i = first_pointer_[at]; i < first_pointer_[at + 1]; ++i) {
    write_pointer(parts_.pointers[static_cast<size_t>(i)], static_cast<std::byte*>(const_cast<void*>(address)));
  }
}

}  // namespace lissome
