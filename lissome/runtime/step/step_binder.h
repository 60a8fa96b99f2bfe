// Turns one step of a plan, once sizes are known, into a kernel function and its call structure. A binder
// (*_steps.cpp) is one function for each kind of step: it finds the values of a typed step through this class, checks
// every size and dtype that the kernel relies on (plans may come from untrusted files), and fills the call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "lissome/kernel.h"
#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/step/step_fields.h"

namespace lissome {

// A value with its sizes. Its first element lies `offset` bytes into the memory of `block`.
struct PlacedValue {
  Dtype dtype = Dtype::f32;
  Sizes sizes, strides;  // strides in elements
  int block = -1;
  int64_t offset = 0;

  int64_t elements() const { return count_elements(sizes); }
  bool is_row_major() const;
  bool is_dense(Format format) const;
};

inline constexpr size_t kCallBytes = 1024;

struct BoundStep {
  KernelFunction function = nullptr;
  int parts = 1;  // into how many the work is cut
  int plan_step = -1;
  Isa isa = Isa::portable;
  int64_t bytes = 0;              // of operands and results
  double products = 0;            // multiply-adds that the result needs
  Dtype multiplied = Dtype::f32;  // what those products are of; u8 stands for u8 with s8
  alignas(64) std::array<std::byte, kCallBytes> call{};
};

// A pointer inside a call that is set when the address of its block is known.
struct BoundPointer {
  int step = -1;  // position among the bound steps
  uint32_t call_offset = 0;
  int block = -1;
  int64_t offset = 0;  // bytes
};

// A value that goes to the session's file, or comes back.
struct Transfer {
  int plan_step = -1;
  PlanValueId value = PlanValueId::none;
  PlanValueId ticket = PlanValueId::none;  // stands for the place in the file
  int64_t offset = 0, bytes = 0;           // in the file
  bool out = false;

  int64_t end() const { return offset + bytes; }
};

// Places in the file lie whole pages apart.
inline constexpr int64_t kFilePage = 4096;
int64_t file_bytes(std::span<const Transfer> transfers);

// Blocks are numbered: first the values, then scratch, last the run's words.
constexpr int block_of(PlanValueId value) { return static_cast<int>(value); }
// Of a block that is a value's memory.
constexpr PlanValueId owner_of(int block) { return PlanValueId{block}; }

// Where binders put what they make.
struct BindingParts {
  std::vector<PlacedValue> values;  // by plan value
  std::vector<BoundStep> steps;
  std::vector<BoundPointer> pointers;
  struct Scratch {
    int step, block;  // position among the bound steps
    int64_t bytes;
  };
  std::vector<Scratch> scratch;
  std::vector<Transfer> transfers;
  int threads = 1;
};

// What kernels and the session that runs them tell each other.
struct RunWords {
  // Set by a kernel to its fault_code() when the data themselves are at fault: an index out of range.
  int64_t fault = 0;
  int64_t run = 0;  // the number of this one, from 1
};

// "step 3 (linear_f32, %y)", for messages.
std::string describe_step(const PlanStep& step, int position);

class StepBinder {
 public:
  StepBinder(const Plan& plan, int plan_step, BindingParts& parts);

  const PlanStep& step() const { return step_; }
  // A value of the step by its member; invalid_input where it is absent.
  const PlacedValue& value(const StepValue& member) const;
  const PlacedValue& value(const OperandList& list, size_t i) const { return value(StepValue{list.values.at(i)}); }
  // The result of a view, to be given a place.
  PlacedValue& placed(const Result& member);

  // Throws invalid_input naming the step.
  template <typename... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (!condition) throw_error(ErrorKind::invalid_input, "plan: ", describe_step(step_, plan_step_), ": ", parts...);
  }
  void require_dtype(const PlacedValue& value, Dtype dtype) const;
  void require_sizes(const PlacedValue& value, const Sizes& sizes) const;
  void require_row_major(const PlacedValue& value) const;
  void require_dense(const PlacedValue& value, Dtype dtype, const Sizes& sizes) const;  // all three
  // That sizes multiply to something a machine can hold, before they are multiplied.
  void require_product(std::initializer_list<int64_t> factors) const;

  // The kernel and its call; pointers are added by point().
  template <typename Call>
  void set_call(std::string_view kernel, const Call& call) {
    static_assert(std::is_trivially_copyable_v<Call> && sizeof(Call) <= kCallBytes);
    set_kernel(kernel);
    new (bound().call.data()) Call(call);
  }
  template <typename Call, typename T>
  void point(T* Call::* member, const PlacedValue& value) {
    add_pointer(member_offset(member), value.block, value.offset);
  }
  template <typename Call, typename T>
  void point(T* Call::* pointer, const StepValue& member) {
    point(pointer, value(member));
  }
  // Element i of an array of pointers.
  template <typename Call, typename T, size_t Count>
  void point_at(T* (Call::*member)[Count], size_t i, const PlacedValue& value) {
    const Call call{};
    const auto at = reinterpret_cast<const std::byte*>(&(call.*member)[i]) - reinterpret_cast<const std::byte*>(&call);
    add_pointer(static_cast<uint32_t>(at), value.block, value.offset);
  }
  // Memory that only this step uses, while it runs: as many bytes as the factors multiply to. They come from sizes that
  // a file may have made up, so invalid_input where one is negative or the product is above kLargestBytes.
  template <typename Call, typename T>
  void point_scratch(T* Call::* member, std::initializer_list<int64_t> factors) {
    add_pointer(member_offset(member), add_scratch(factors), 0);
  }
  template <typename Call>
  void point_fault(int64_t* Call::* member) {
    add_pointer(member_offset(member), kRunBlock, offsetof(RunWords, fault));
  }
  template <typename Call>
  void point_run(const int64_t* Call::* member) {
    add_pointer(member_offset(member), kRunBlock, offsetof(RunWords, run));
  }
  int64_t fault_code() const { return plan_step_ + 1; }
  // How much there is to do decides whether one thread does it alone.
  void set_work(double multiplications, double bytes);
  // For reports: what the result needs at least, whatever the kernel does.
  void set_products(double count, Dtype of = Dtype::f32) { bound().products = count, bound().multiplied = of; }
  // For reports, where a step does not touch all of its operands.
  void subtract_bytes(int64_t bytes) { parts_.steps.back().bytes -= bytes; }
  // In place of a kernel and its call.
  void send_to_file(const Operand& value, const Result& ticket);
  void fetch_from_file(const Operand& ticket, const Result& value);
  // Into how many parts set_work() cut it.
  int parts() const { return parts_.steps.back().parts; }

  static constexpr int kRunBlock = -1;

 private:
  template <typename Call, typename T>
  static uint32_t member_offset(T* Call::* member) {
    const Call call{};
    return static_cast<uint32_t>(reinterpret_cast<const std::byte*>(&(call.*member)) -
                                 reinterpret_cast<const std::byte*>(&call));
  }
  BoundStep& bound() { return parts_.steps.back(); }
  void set_kernel(std::string_view kernel);
  void add_pointer(uint32_t call_offset, int block, int64_t offset);
  int add_scratch(std::initializer_list<int64_t> factors);

  const PlanStep& step_;
  int plan_step_;
  BindingParts& parts_;
};

// A row of the step table (step_table.cpp).
struct StepRow {
  std::string_view kernel;
  void (*bind)(StepBinder&);
  bool view = false;      // computes nothing: gives its result a place in the memory of an operand
  uint32_t in_place = 0;  // bit i: the result may lie in the memory of operand i, where sizes allow
  bool transfer = false;  // has no kernel: the session moves bytes between memory and its file
  StepSchema schema = {};
};
std::span<const StepRow> step_rows();
// Throws invalid_input, naming the step, when one of its values does not lie as its rule says.
void check_layouts(const StepBinder& binder, const StepSchema& schema);
// Throws invalid_input when there is no such step.
const StepRow& find_step_row(std::string_view kernel);

}  // namespace lissome
