#include "lissome/runtime/step/step_binder.h"

#include <algorithm>
#include <optional>

#include "lissome/runtime/step/move/offload_steps.h"

namespace lissome {
namespace {

// What one core does in a nanosecond, roughly; only used to decide whether waking a second one can pay.
constexpr double kMultiplicationsPerNanosecond = 40;
constexpr double kBytesPerNanosecond = 12;
constexpr double kWorthSharing = 3000;  // nanoseconds

// Empty where a factor is negative, or the product is more than any machine has.
std::optional<int64_t> multiply_bounded(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (factor < 0 || __builtin_mul_overflow(product, factor, &product) || product > kLargestBytes) return {};
  }
  return product;
}

}  // namespace

int64_t file_bytes(std::span<const Transfer> transfers) {
  int64_t bytes = 0;
  for (const Transfer& transfer : transfers) bytes = std::max(bytes, transfer.end());
  return bytes;
}

// As is_dense(Format::row_major), but allocates nothing: asked while a plan runs.
bool PlacedValue::is_row_major() const {
  int64_t wanted = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != wanted) return false;
    wanted *= std::max<int64_t>(sizes[i], 1);
  }
  return true;
}

bool PlacedValue::is_dense(Format format) const {
  const Sizes wanted = dense_strides(sizes, format);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1 && strides[i] != wanted[i]) return false;
  }
  return true;
}

StepBinder::StepBinder(const Plan& plan, int plan_step, BindingParts& parts)
    : step_(plan.steps[static_cast<size_t>(plan_step)]), plan_step_(plan_step), parts_(parts) {}

std::string describe_step(const PlanStep& step, int position) {
  std::string text = "step " + std::to_string(position) + " (" + step.kernel;
  if (!step.origins.empty()) text += ", %" + step.origins.front().node;
  return text + ")";
}

const PlacedValue& StepBinder::value(const StepValue& member) const {
  require(is_value(member.value), "a value is missing");
  return parts_.values[static_cast<size_t>(member.value)];
}

PlacedValue& StepBinder::placed(const Result& member) {
  require(is_value(member.value), "a value is missing");
  return parts_.values[static_cast<size_t>(member.value)];
}

void StepBinder::require_dtype(const PlacedValue& value, Dtype dtype) const {
  require(value.dtype == dtype, "an operand or result is ", dtype_name(value.dtype), ", must be ", dtype_name(dtype));
}

void StepBinder::require_sizes(const PlacedValue& value, const Sizes& sizes) const {
  require(value.sizes == sizes, "an operand or result is ", format_sizes(value.sizes), ", must be ",
          format_sizes(sizes));
}

void StepBinder::require_row_major(const PlacedValue& value) const {
  require(value.is_row_major(), "an operand or result of ", format_sizes(value.sizes), " is not dense in row order");
}

void StepBinder::require_dense(const PlacedValue& value, Dtype dtype, const Sizes& sizes) const {
  require_dtype(value, dtype);
  require_sizes(value, sizes);
  require_row_major(value);
}

void StepBinder::require_product(std::initializer_list<int64_t> factors) const {
  require(multiply_bounded(factors).has_value(), "sizes multiply to more than ", kLargestBytes);
}

void StepBinder::set_kernel(std::string_view kernel) {
  const KernelRow& row = find_kernel(kernel);
  bound().function = row.function;
  bound().isa = row.isa;
}

void StepBinder::add_pointer(uint32_t call_offset, int block, int64_t offset) {
  parts_.pointers.push_back({static_cast<int>(parts_.steps.size()) - 1, call_offset, block, offset});
}

int StepBinder::add_scratch(std::initializer_list<int64_t> factors) {
  const std::optional<int64_t> bytes = multiply_bounded(factors);
  require(bytes.has_value(), "its scratch would take more than ", kLargestBytes, " bytes");
  const int block = static_cast<int>(parts_.values.size() + parts_.scratch.size());
  parts_.scratch.push_back({static_cast<int>(parts_.steps.size()) - 1, block, *bytes});
  return block;
}

void StepBinder::send_to_file(const Operand& value, const Result& ticket) {
  const PlacedValue& sent = this->value(value);
  const int64_t offset = (file_bytes(parts_.transfers) + kFilePage - 1) / kFilePage * kFilePage;
  const int64_t bytes = sent.elements() * item_size(sent.dtype);
  parts_.transfers.push_back({plan_step_, value.value, ticket.value, offset, bytes, true});
  require(parts_.transfers.back().end() <= kLargestBytes, "the file would take more than ", kLargestBytes, " bytes");
}

void StepBinder::fetch_from_file(const Operand& ticket, const Result& value) {
  const auto sent = std::find_if(parts_.transfers.begin(), parts_.transfers.end(), [&](const Transfer& transfer) {
    return transfer.out && transfer.ticket == ticket.value;
  });
  require(sent != parts_.transfers.end(), "its operand is not what a step ", quote(OffloadStep::kKernel), " gave");
  const PlacedValue &from = parts_.values[static_cast<size_t>(sent->value)], &to = this->value(value);
  require(from.dtype == to.dtype && from.sizes == to.sizes && from.strides == to.strides, "what comes back is ",
          dtype_name(to.dtype), format_sizes(to.sizes), ", what was sent ", dtype_name(from.dtype),
          format_sizes(from.sizes));
  parts_.transfers.push_back({plan_step_, value.value, ticket.value, sent->offset, sent->bytes, false});
}

void StepBinder::set_work(double multiplications, double bytes) {
  const double nanoseconds = std::max(multiplications / kMultiplicationsPerNanosecond, bytes / kBytesPerNanosecond);
  bound().parts = nanoseconds >= kWorthSharing ? parts_.threads : 1;
}

}  // namespace lissome
