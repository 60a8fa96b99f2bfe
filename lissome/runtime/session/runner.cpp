#include "lissome/runtime/session/runner.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "lissome/measure.h"
#include "lissome/runtime/memory/arena_guard.h"
#include "lissome/runtime/plan/input_check.h"
#include "lissome/runtime/step/move/offload_steps.h"

namespace lissome {
namespace {

// Steps that no two threads share stand together in a stage of one part, any other has one of its own.
struct NativeRegion {
  std::span<const BoundStep> steps;
  std::span<const int> first;  // of each stage: its first step; the number of steps at the end
  int64_t* stamps;             // when timing: the time after each step
};

void run_native_part(void* argument, int stage, int part) {
  const auto& region = *static_cast<const NativeRegion*>(argument);
  const auto at = static_cast<size_t>(stage);
  for (int i = region.first[at]; i < region.first[at + 1]; ++i) {
    const BoundStep& step = region.steps[static_cast<size_t>(i)];
    step.function(step.call.data(), part, step.parts);
  }
}

void stamp_stage(void* argument, int stage) {
  static_cast<const NativeRegion*>(argument)->stamps[stage] = now_nanoseconds();
}

// Ends the stream's run however the session's ends.
struct StreamedRun {
  WeightStream* stream;
  ~StreamedRun() {
    if (stream != nullptr) stream->finish();
  }
};

Array make_uninitialized(const PlacedValue& value) {
  const int64_t bytes = std::max<int64_t>(value.elements() * item_size(value.dtype), 1);
  allocator_memory().take(bytes, "an output");
  void* memory = std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64));
  if (!memory) {
    allocator_memory().remove(bytes);
    throw_error(ErrorKind::over_budget, "no memory for an output of ", bytes, " bytes");
  }
  return {value.dtype, value.sizes, std::shared_ptr<void>(memory, [bytes](void* block) {
            std::free(block);
            allocator_memory().remove(bytes);
          })};
}

// Dtype and bytes of a literal that is a number; nothing for none and text, which do not leave a session.
struct LiteralView {
  Dtype dtype = Dtype::i64;
  const void* data = nullptr;
};
LiteralView view_literal(const PlanOutput::Literal& literal) {
  if (const auto* integer = std::get_if<int64_t>(&literal)) return {Dtype::i64, integer};
  if (const auto* number = std::get_if<double>(&literal)) return {Dtype::f64, number};
  if (const auto* flag = std::get_if<bool>(&literal)) return {Dtype::boolean, flag};
  return {};
}

Array make_literal(const PlanOutput::Literal& literal) {
  const LiteralView view = view_literal(literal);
  return view.data ? copy_array({view.dtype, {}, {}, const_cast<void*>(view.data)}) : Array{};
}

void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

void copy_strided(const PlacedValue& value, const std::byte* from, std::byte* to) {
  if (value.is_row_major()) return copy_bytes(to, from, value.elements() * item_size(value.dtype));
  if (value.elements() > 0) copy_elements(value.dtype, value.sizes, value.strides, from, to);
}

// By output, then by write: whether a later one names the same value.
std::vector<bool> find_leaving_again(const Plan& plan) {
  std::vector<int> leaving;
  for (const PlanOutput& output : plan.outputs) leaving.push_back(output.value);
  for (const PlanWrite& write : plan.writes) leaving.push_back(write.value);
  std::vector<bool> again(leaving.size());
  for (size_t i = 0; i < leaving.size(); ++i) {
    again[i] = leaving[i] >= 0 && std::find(leaving.begin() + static_cast<std::ptrdiff_t>(i) + 1, leaving.end(),
                                            leaving[i]) != leaving.end();
  }
  return again;
}

}  // namespace

int choose_threads(const Plan& plan, int asked) {
  if (asked > 0) return asked;
  return plan.machine.threads > 0 ? std::min(plan.machine.threads, usable_threads()) : usable_cores();
}

Session::Runner::Runner(std::shared_ptr<const Plan> plan, const SessionOptions& options)
    : plan_(std::move(plan)),
      threads_(choose_threads(*plan_, options.threads)),
      cached_shapes_(static_cast<size_t>(std::max(options.cached_shapes, 1))),
      memory_limit_(options.memory),
      leaving_(plan_->steps.size()) {
  check_plan(*plan_);
  for (const PlanArray& array : plan_->arrays) arrays_.push_back(array.array);
  for (const PlanValue& value : plan_->values) {
    if (value.storage == Storage::state) {
      Array& array = arrays_[static_cast<size_t>(value.array)];
      array = copy_array(array.view());
      state_bytes_ += array.bytes();
    }
  }
  if (memory_limit_ > 0) {
    if (plan_->needs_reference()) {
      throw_error(ErrorKind::unsupported,
                  "a limit on memory: some nodes of this model run in libtorch, which keeps all of ",
                  "their weights.\n      lissome audit names them");
    }
    stream_ = std::make_unique<WeightStream>(*plan_, arrays_);
    fit_memory(nullptr);
  }
  open_file(options.offload_folder);
  const std::vector<bool> direct = find_direct_outputs(*plan_);
  direct_output_.assign(plan_->values.size(), -1);
  for (size_t i = plan_->outputs.size(); i-- > 0;) {
    const PlanOutput& output = plan_->outputs[i];
    if (output.leaves_after >= 0) {
      LISSOME_CHECK(memory_limit_ == 0, "a limit on memory, and outputs that leave early");
      leaving_[static_cast<size_t>(output.leaves_after)].push_back(i);
    } else if (output.value >= 0 && direct[static_cast<size_t>(output.value)]) {
      direct_output_[static_cast<size_t>(output.value)] = static_cast<int>(i);
    }
  }
  natively_read_ = find_natively_read(*plan_);
  leaves_again_ = find_leaving_again(*plan_);
  news_.resize(plan_->writes.size());
  drops_ = find_held_drops(*plan_);
  address_.resize(plan_->values.size());
  if (plan_->needs_reference()) {
    reference_ = open_reference({plan_.get(), arrays_, threads_});
    reference_run_ = reference_->make_run();
  }
  choose_executor();
  bind_fixed_sizes();
}

void Session::Runner::bind_fixed_sizes() {
  if (!plan_->dimensions.empty()) return;
  std::vector<TensorView> inputs;
  for (const PlanInput& input : plan_->inputs) {
    const PlanValue& value = plan_->values[static_cast<size_t>(input.value)];
    Sizes sizes;
    for (const SizeExpression& size : value.sizes) {
      if (!size.constant()) return;
      sizes.push_back(*size.constant());
    }
    inputs.push_back({value.dtype, sizes, contiguous_strides(sizes), nullptr});
  }
  bind(inputs);
}

void Session::Runner::open_file(const std::string& folder) {
  if (std::none_of(plan_->steps.begin(), plan_->steps.end(), is_step<OffloadStep>)) return;
  if (folder.empty())
    throw_error(ErrorKind::invalid_input, "plan: some values wait in a file, and there is no folder for it");
  if (memory_limit_ > 0)
    throw_error(ErrorKind::unsupported, "a limit on memory, and a plan of which some values wait in a file");
  file_.emplace(folder);
}

Binding& Session::Runner::bind(std::span<const TensorView> inputs) {
  key_.clear();
  for (const TensorView& input : inputs) {
    key_.push_back(static_cast<int64_t>(input.dtype));
    key_.insert(key_.end(), input.sizes.begin(), input.sizes.end());
  }
  const auto found =
      std::find_if(bindings_.begin(), bindings_.end(), [&](const Entry& entry) { return entry.key == key_; });
  if (found != bindings_.end() &&
      std::all_of(inputs.begin(), inputs.end(), [](const TensorView& input) { return input.is_contiguous(); })) {
    bindings_.splice(bindings_.begin(), bindings_, found);
  } else {
    const DimensionValues dimensions = match_inputs(*plan_, inputs);
    auto binding = std::make_unique<Binding>(*plan_, dimensions, threads_);
    if (stream_) book_rows(*binding);
    if (memory_limit_ > 0) fit_memory(binding.get());
    if (file_) file_->reserve(file_bytes(binding->transfers()));
    for (size_t i = 0; i < plan_->values.size(); ++i) {
      const PlanValue& value = plan_->values[i];
      if (value.storage != Storage::constant && value.storage != Storage::state) continue;
      binding->place_block(static_cast<int>(i), arrays_[static_cast<size_t>(value.array)].storage.get());
    }
    binding->place_block(Binding::kRunBlock, &words_);
    if (bindings_.size() >= cached_shapes_) bindings_.pop_back();
    bindings_.push_front({key_, std::move(binding)});
  }
  Binding& binding = *bindings_.front().binding;
  arena_.reserve(binding.arena_bytes());  // for known shapes too: one that did not fit may have left nothing
  binding.place_arena(arena_.data());
  if (guards_arenas()) forbid_gaps(arena_, binding.buffers());
  return binding;
}

void Session::Runner::release_memory() {
  const std::lock_guard lock(mutex_);
  arena_.release();
}

void Session::Runner::place(Binding& binding, int block, void* address) {
  address_[static_cast<size_t>(block)] = address;
  binding.place_block(block, address);
}

// Of the first element; not for held values.
std::byte* Session::Runner::address_of(const Binding& binding, int value) const {
  const PlacedValue& bound = binding.value(value);
  const auto block = static_cast<size_t>(bound.block);
  const PlanValue& owner = plan_->values[block];
  std::byte* base = nullptr;
  if (owner.storage == Storage::constant || owner.storage == Storage::state) {
    base = arrays_[static_cast<size_t>(owner.array)].data<std::byte>();
  } else if (binding.in_arena(bound.block)) {
    base = binding.arena_address(bound.block);
  } else {
    base = static_cast<std::byte*>(address_[block]);
  }
  return base + bound.offset;
}

TensorView Session::Runner::view_of(const Binding& binding, int value) const {
  const PlacedValue& bound = binding.value(value);
  return {bound.dtype, bound.sizes, bound.strides, address_of(binding, value)};
}

void Session::Runner::run_native(Binding& binding, const Segment& segment, const StepSink* sink) {
  const auto steps =
      binding.steps().subspan(static_cast<size_t>(segment.first), static_cast<size_t>(segment.last - segment.first));
  for (size_t first = 0; first < steps.size();) {
    poll_stop();
    size_t last = std::min(steps.size(), first + count_steps_between_polls());
    if (stream_) {
      const int end = stream_->advance(steps[first].plan_step);
      const size_t most = last;
      last = first + 1;
      while (last < most && steps[last].plan_step < end) ++last;
    }
    run_steps(steps.subspan(first, last - first), sink);
    first = last;
  }
}

void Session::Runner::run_steps(std::span<const BoundStep> steps, const StepSink* sink) {
  if (steps.empty()) return;
  stage_parts_.clear(), stage_first_.clear();
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool joins = i > 0 && steps[i].parts == 1 && steps[i - 1].parts == 1 && !sink;  // a sink times every step
    if (joins) continue;
    stage_parts_.push_back(steps[i].parts);
    stage_first_.push_back(static_cast<int>(i));
  }
  stage_first_.push_back(static_cast<int>(steps.size()));
  const bool shared = *std::max_element(stage_parts_.begin(), stage_parts_.end()) > 1;
  if (sink) stamps_.assign(steps.size(), 0);
  NativeRegion native = {steps, stage_first_, sink ? stamps_.data() : nullptr};
  int64_t before = sink ? now_nanoseconds() : 0;
  run_region(shared ? threads_ : 1, {stage_parts_, run_native_part, sink ? stamp_stage : nullptr, &native});
  if (!sink) return;
  for (size_t i = 0; i < steps.size(); ++i) {
    tell(*sink, steps[i], stamps_[i] - before);
    before = stamps_[i];
  }
}

void Session::Runner::tell(const StepSink& sink, const BoundStep& step, int64_t nanoseconds) const {
  const PlanStep& planned = plan_->steps[static_cast<size_t>(step.plan_step)];
  static const PlanOrigin nowhere;
  sink({step.plan_step, planned.origins.empty() ? &nowhere : &planned.origins.front(), planned.kernel,
        isa_name(step.isa), step.parts, nanoseconds, step.bytes, step.products, step.multiplied});
}

void Session::Runner::run_reference(Binding& binding, const Segment& segment, const StepSink* sink) {
  const PlanStep& step = plan_->steps[static_cast<size_t>(segment.first)];
  for (const int operand : step.operands) {
    if (operand < 0) continue;
    const PlanValue& value = plan_->values[static_cast<size_t>(operand)];
    if (value.storage == Storage::held) continue;
    const TensorView view = view_of(binding, operand);
    if (value.kind == PlanKind::tensor) {
      reference_run_->lend(operand, view);
    } else {
      reference_run_->lend_number(operand, value.kind, view);
    }
  }
  reference_run_->run_step(segment.first, sink);
  for (const int result : step.results) {
    const auto at = static_cast<size_t>(result);
    if (!natively_read_[at]) continue;
    const PlacedValue& bound = binding.value(result);
    place(binding, result, reference_run_->read(result, bound.dtype, bound.sizes, plan_->values[at].format));
  }
}

// What comes back next is read ahead from here on, while the steps before it compute.
void Session::Runner::run_transfer(const Binding& binding, size_t position, const StepSink* sink) {
  const std::span<const Transfer> transfers = binding.transfers();
  const Transfer& transfer = transfers[position];
  const int64_t before = sink ? now_nanoseconds() : 0;
  std::byte* memory = address_of(binding, transfer.value);
  if (transfer.out) {
    file_->write(transfer.offset, memory, transfer.bytes);
    // Whoever reads a ticket must not see what lay there before.
    std::memset(address_of(binding, transfer.ticket), 0, sizeof(int64_t));
  } else {
    file_->read(transfer.offset, memory, transfer.bytes);
  }
  if (position + 1 < transfers.size() && !transfers[position + 1].out)
    file_->fetch({transfers[position + 1].offset, transfers[position + 1].end()});
  if (!sink) return;
  BoundStep moved;
  moved.plan_step = transfer.plan_step, moved.bytes = transfer.bytes;
  tell(*sink, moved, now_nanoseconds() - before);
}

void Session::Runner::execute(Binding& binding, std::span<const TensorView> inputs, const RunListeners& listeners) {
  if (stream_ && memory_limit_ == 0) fit_inputs(inputs);
  const StreamedRun streamed{stream_.get()};
  try {
    const int64_t before = should_stop_ ? now_nanoseconds() : 0;
    run_segments(binding, inputs, listeners);
    if (should_stop_) run_nanoseconds_ = now_nanoseconds() - before;
    check_mappings();
  } catch (const Error& error) {
    // What it took is given back, so that a smaller run may fit; bind() takes anew.
    if (error.kind() == ErrorKind::over_budget) std::destroy_at(&arena_), std::construct_at(&arena_);
    throw;
  }
}

void Session::Runner::run_segments(Binding& binding, std::span<const TensorView> inputs,
                                   const RunListeners& listeners) {
  for (size_t i = 0; i < inputs.size(); ++i) place(binding, plan_->inputs[i].value, inputs[i].data);
  words_.fault = 0;
  ++words_.run;
  int done = 0;  // of the plan's steps; views are no part of segments
  for (const Segment& segment : binding.segments()) {
    const int first = binding.first_step(segment);
    finish_steps(binding, std::exchange(done, first), first, listeners.taker);
    if (stream_ && segment.kind == SegmentKind::reference) stream_->advance(first);
    if (segment.kind == SegmentKind::reference) {
      poll_stop();
      run_reference(binding, segment, listeners.sink);
    } else if (segment.kind == SegmentKind::transfer) {
      run_transfer(binding, static_cast<size_t>(segment.first), listeners.sink);
    } else {
      run_native(binding, segment, listeners.sink);
      check_fault(binding);
    }
  }
  finish_steps(binding, done, static_cast<int>(plan_->steps.size()), listeners.taker);
}

// [first, last) of the plan have run: what leaves behind them is given away, what nobody needs any more goes.
void Session::Runner::finish_steps(const Binding& binding, int first, int last, const OutputTaker* taker) {
  for (int step = first; step < last; ++step) {
    if (taker != nullptr) {
      for (const size_t output : leaving_[static_cast<size_t>(step)]) give_output(binding, output, *taker);
    }
    for (const int value : drops_[static_cast<size_t>(step)]) reference_run_->drop(value);
  }
}

void Session::Runner::give_output(const Binding& binding, size_t output, const OutputTaker& taker) {
  const auto& [name, value, literal, leaves_after] = plan_->outputs[output];
  if (plan_->values[static_cast<size_t>(value)].storage != Storage::held) return taker(output, view_of(binding, value));
  const std::vector<int>& drops = drops_[static_cast<size_t>(leaves_after)];
  const bool last = !leaves_again_[output] && std::find(drops.begin(), drops.end(), value) != drops.end();
  const Array array = last ? reference_run_->take(value) : reference_run_->copy(value);
  if (array.storage) taker(output, array.view());
}

// "; input 'ids' holds 3 to 30522", for operands that are inputs: of other values the memory may be another's by now.
std::string Session::Runner::describe_indices(const Binding& binding, const PlanStep& step) const {
  std::string text;
  for (const PlanInput& input : plan_->inputs) {
    if (std::find(step.operands.begin(), step.operands.end(), input.value) == step.operands.end()) continue;
    const TensorView view = view_of(binding, input.value);
    const auto tell = [&](const auto* first) {
      const auto [least, most] = std::minmax_element(first, first + view.elements());
      text += "; input " + quote(input.name) + " holds " + std::to_string(*least) + " to " + std::to_string(*most);
    };
    if (view.elements() == 0) continue;
    if (view.dtype == Dtype::i64) tell(static_cast<const int64_t*>(view.data));
    if (view.dtype == Dtype::i32) tell(static_cast<const int32_t*>(view.data));
  }
  return text;
}

void Session::Runner::check_fault(const Binding& binding) {
  if (words_.fault == 0) return;
  const PlanStep& step = plan_->steps[static_cast<size_t>(words_.fault - 1)];
  const PlanOrigin origin = step.origins.empty() ? PlanOrigin{} : step.origins.front();
  throw_error(ErrorKind::invalid_input, "an index in the data is out of range: ", origin.op, " (%", origin.node, ")",
              origin.source.empty() ? "" : " at ", origin.source, describe_indices(binding, step));
}

// `leaving` counts outputs, then writes. Whoever is last gets the memory itself.
Array Session::Runner::fetch_held(int value, size_t leaving) {
  return leaves_again_[leaving] ? reference_run_->copy(value) : reference_run_->take(value);
}

bool Session::Runner::is_direct(size_t output) const {
  const int value = plan_->outputs[output].value;
  return value >= 0 && direct_output_[static_cast<size_t>(value)] == static_cast<int>(output);
}

Array Session::Runner::fetch_output(const Binding& binding, size_t i) {
  const PlanOutput& output = plan_->outputs[i];
  if (output.value < 0) return make_literal(output.literal);
  if (plan_->values[static_cast<size_t>(output.value)].storage == Storage::held) return fetch_held(output.value, i);
  return copy_array(view_of(binding, output.value));
}

void Session::Runner::check_place(size_t i, const TensorView& place, Dtype dtype,
                                  std::span<const int64_t> sizes) const {
  if (place.dtype == dtype && std::equal(place.sizes.begin(), place.sizes.end(), sizes.begin(), sizes.end()) &&
      place.is_contiguous()) {
    return;
  }
  throw_error(ErrorKind::invalid_input, "the place for output ", quote(plan_->outputs[i].name), " is ",
              dtype_name(place.dtype), format_sizes(place.sizes), ", must be ", dtype_name(dtype), format_sizes(sizes),
              " and dense in row order");
}

void Session::Runner::store_output(const Binding& binding, size_t i, const TensorView& place) {
  const PlanOutput& output = plan_->outputs[i];
  if (output.leaves_after >= 0) return;
  if (output.value < 0) {
    const LiteralView literal = view_literal(output.literal);
    if (!literal.data) return;
    check_place(i, place, literal.dtype, {});
    return copy_bytes(place.data, literal.data, item_size(literal.dtype));
  }
  if (plan_->values[static_cast<size_t>(output.value)].storage == Storage::held) {
    const Array array = fetch_output(binding, i);
    if (!array.storage) return;
    check_place(i, place, array.dtype, array.sizes);
    return copy_bytes(place.data, array.storage.get(), array.bytes());
  }
  const std::byte* from = address_of(binding, output.value);
  if (from == place.data) return;
  const PlacedValue& value = binding.value(output.value);
  check_place(i, place, value.dtype, value.sizes);
  copy_strided(value, from, static_cast<std::byte*>(place.data));
}

void Session::Runner::store_state(const Binding& binding) {
  // All new values are read before the first is written: one may lie in the memory of another's target.
  for (size_t i = 0; i < plan_->writes.size(); ++i) {
    const PlanWrite& write = plan_->writes[i];
    const PlanValue &target = plan_->values[static_cast<size_t>(write.target)],
                    &source = plan_->values[static_cast<size_t>(write.value)];
    if (target.storage != Storage::state) continue;
    const Array& state = arrays_[static_cast<size_t>(target.array)];
    Array& fresh = news_[i];
    if (source.storage == Storage::held) {
      fresh = fetch_held(write.value, plan_->outputs.size() + i);
    } else {
      const PlacedValue& value = binding.value(write.value);
      if (!fresh.storage || fresh.dtype != value.dtype || fresh.sizes != value.sizes) {
        fresh = make_array(value.dtype, value.sizes);
      }
      copy_strided(value, address_of(binding, write.value), fresh.data<std::byte>());
    }
    if (!fresh.storage || fresh.dtype != state.dtype || fresh.elements() != state.elements()) {
      throw_error(ErrorKind::invalid_input, "plan: a write gives ", dtype_name(fresh.dtype), format_sizes(fresh.sizes),
                  " to state ", target.name, ", which is ", dtype_name(state.dtype), format_sizes(state.sizes));
    }
  }
  for (size_t i = 0; i < plan_->writes.size(); ++i) {
    const PlanValue& target = plan_->values[static_cast<size_t>(plan_->writes[i].target)];
    if (target.storage != Storage::state) continue;
    const Array& state = arrays_[static_cast<size_t>(target.array)];
    copy_bytes(state.storage.get(), news_[i].storage.get(), state.bytes());
    if (plan_->values[static_cast<size_t>(plan_->writes[i].value)].storage == Storage::held) news_[i] = {};
  }
}

std::vector<Array> Session::Runner::run(std::span<const TensorView> inputs, const RunListeners& listeners) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (reference_run_) reference_run_->clear();  // first: what a run that failed holds may be what the arena lacks
  Binding& binding = bind(inputs);
  std::vector<Array> outputs(plan_->outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int value = plan_->outputs[i].value;
    if (!is_direct(i)) continue;
    outputs[i] = make_uninitialized(binding.value(value));
    place(binding, value, outputs[i].storage.get());
  }
  execute(binding, inputs, listeners);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].storage && plan_->outputs[i].leaves_after < 0) outputs[i] = fetch_output(binding, i);
  }
  store_state(binding);
  if (reference_run_) reference_run_->clear();
  return outputs;
}

void Session::Runner::run_into(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                               const RunListeners& listeners) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (reference_run_) reference_run_->clear();  // first: what a run that failed holds may be what the arena lacks
  Binding& binding = bind(inputs);
  if (outputs.size() != plan_->outputs.size()) {
    throw_error(ErrorKind::invalid_input, outputs.size(), " places for outputs were given, the model makes ",
                plan_->outputs.size());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int value = plan_->outputs[i].value;
    if (!is_direct(i)) continue;
    check_place(i, outputs[i], binding.value(value).dtype, binding.value(value).sizes);
    place(binding, value, outputs[i].data);
  }
  execute(binding, inputs, listeners);
  for (size_t i = 0; i < outputs.size(); ++i) store_output(binding, i, outputs[i]);
  store_state(binding);
  if (reference_run_) reference_run_->clear();
}

}  // namespace lissome
