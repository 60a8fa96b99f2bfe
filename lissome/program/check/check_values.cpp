// See check_values.h: the table of ops with a check of their own, and what holds for all ops.
#include "lissome/program/check/check_values.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/zero.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lissome/program.h"
#include "lissome/program/check/check_values_rows.h"
#include "lissome/program/check/operand_strides.h"
#include "lissome/program/record/record_calls.h"

namespace lissome {
namespace {

const std::unordered_map<std::string_view, ValueCheck>& value_checks() {
  static const auto* const checks = [] {
    auto* const made = new std::unordered_map<std::string_view, ValueCheck>;
    for (const std::span<const ValueCheckRow> rows : {index_check_rows(), layer_check_rows(), geometry_check_rows(),
                                                      solver_check_rows(), count_check_rows(), onednn_check_rows()}) {
      for (const ValueCheckRow& row : rows) made->emplace(row.op, row.check);
    }
    return made;
  }();
  return *checks;
}

}  // namespace

// What holds for every call of an op.
struct CallFacts {
  struct Word {
    size_t position;
    c10::TypeKind kind;
  };
  Op op;
  ValueCheck check = nullptr;
  bool leaves_memory_unset = false;  // of its result
  bool may_grow = false;             // its first argument, by memory that is not set
  StrideNeed strides = StrideNeed::any;
  bool takes_opaque_tensors = false;  // whose contents only oneDNN's own ops understand
  ResultFinish finish = nullptr;
  std::vector<bool> may_be_absent;  // by argument: a tensor that is not given
  std::vector<Word> words;          // that stand for a dtype, a layout, a memory format or a device
  std::vector<size_t> modes;        // integers that stand for one of three words
};

namespace {

// Kernels that know no other number than 0, 1 and 2 leave their result unset.
constexpr std::string_view kModes[] = {"reduction", "interpolation_mode", "padding_mode"};

bool is_optional(const c10::Type& type) { return type.kind() == c10::TypeKind::OptionalType; }

const c10::Type& strip_optional(const c10::Type& type) {
  return is_optional(type) ? *type.castRaw<c10::OptionalType>()->getElementType() : type;
}

constexpr std::string_view kLeavesMemoryUnset[] = {
    "aten::empty.memory_format", "aten::empty_like", "aten::empty_permuted",
    "aten::empty_strided",       "aten::new_empty",  "aten::new_empty_strided",
};

CallFacts read_facts(const Op& op) {
  CallFacts facts;
  facts.op = op;
  if (!op.has_schema()) return facts;
  facts.check = find_value_check(op);
  facts.finish = find_result_finish(op);
  facts.leaves_memory_unset = std::find(std::begin(kLeavesMemoryUnset), std::end(kLeavesMemoryUnset), op.name()) !=
                              std::end(kLeavesMemoryUnset);
  facts.strides = find_stride_need(op);
  facts.may_grow = op.is("aten::resize") || op.is("aten::resize_as");
  facts.takes_opaque_tensors = op.name().starts_with("mkldnn::") || op.name().starts_with("onednn::");
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Type& type = *arguments[i].type();
    const bool is_list = type.kind() == c10::TypeKind::ListType;
    facts.may_be_absent.push_back(is_optional(is_list ? *type.castRaw<c10::ListType>()->getElementType() : type));
    const c10::TypeKind kind = strip_optional(*arguments[i].real_type()).kind();
    if (kind == c10::TypeKind::ScalarTypeType || kind == c10::TypeKind::LayoutType ||
        kind == c10::TypeKind::MemoryFormatType || kind == c10::TypeKind::DeviceObjType) {
      facts.words.push_back({i, kind});
    }
    const bool is_mode = std::find(std::begin(kModes), std::end(kModes), arguments[i].name()) != std::end(kModes);
    if (is_mode && kind == c10::TypeKind::IntType) facts.modes.push_back(i);
  }
  return facts;
}

const CallFacts* find_facts(const Op& op) {
  static std::shared_mutex mutex;
  static auto* const known = new std::unordered_map<const std::string*, std::unique_ptr<const CallFacts>>;
  {
    const std::shared_lock lock(mutex);
    if (const auto found = known->find(&op.name()); found != known->end()) return found->second.get();
  }
  auto facts = std::make_unique<const CallFacts>(read_facts(op));
  const std::unique_lock lock(mutex);
  return known->emplace(&op.name(), std::move(facts)).first->second.get();  // names are interned
}

void check_word(const c10::Argument& expected, c10::TypeKind kind, const c10::IValue& value) {
  // Elsewhere (meta, lazy, ...) a tensor has no memory that could be read.
  if (value.isDevice()) {
    require_value(value.toDevice().is_cpu() || value.toDevice().is_cuda(), "argument '", expected.name(), "' is ",
                  value.toDevice().str(), "; allowed are cpu and cuda");
  }
  if (!value.isInt()) return;
  const int64_t number = value.toInt();
  const int64_t most = kind == c10::TypeKind::ScalarTypeType ? static_cast<int64_t>(at::ScalarType::NumOptions)
                       : kind == c10::TypeKind::LayoutType   ? static_cast<int64_t>(at::Layout::NumOptions)
                                                             : static_cast<int64_t>(at::MemoryFormat::NumOptions);
  require_value(number >= 0 && number < most, "argument '", expected.name(), "' is ", number, ", which is no ",
                kind == c10::TypeKind::ScalarTypeType ? "dtype"
                : kind == c10::TypeKind::LayoutType   ? "layout"
                                                      : "memory format");
  if (kind == c10::TypeKind::ScalarTypeType) dtype_of(static_cast<at::ScalarType>(number));
}

// Kernels that have nothing to write still count over the other dimensions.
void check_empty(const c10::Argument& expected, const at::Tensor& tensor) {
  constexpr int64_t kMost = int64_t{1} << 32;
  int64_t product = 1;
  for (const int64_t size : tensor.sizes()) {
    require_value(!__builtin_mul_overflow(product, std::max<int64_t>(size, 1), &product) && product <= kMost,
                  "argument '", expected.name(), "' is ", print_sizes(tensor.sizes()),
                  ": a tensor without elements, of more places than 2^32");
  }
}

void check_tensor(const CallFacts& facts, size_t position, const at::Tensor& tensor) {
  const c10::Argument& expected = facts.op.schema().arguments()[position];
  if (!tensor.defined()) {
    require_value(facts.may_be_absent[position], "argument '", expected.name(), "' is absent; a tensor is needed");
    return;
  }
  if (tensor.layout() == at::kStrided) {
    if (tensor.numel() == 0) check_empty(expected, tensor);
    return;
  }
  if (tensor.layout() == at::kMkldnn) {
    require_value(facts.takes_opaque_tensors, "argument '", expected.name(), "' is packed for another op of oneDNN's");
    return;
  }
  check_sparse_indices(expected.name(), tensor);
}

// Beyond the elements that there were before.
void clear_growth(const at::Tensor& tensor, int64_t before) {
  const int64_t growth = tensor.numel() - before;
  if (growth > 0) at::as_strided(tensor, {growth}, {1}, tensor.storage_offset() + before).zero_();
}

}  // namespace

ValueCheck find_value_check(const Op& op) {
  if (op.name().starts_with("aten::special_") && op.name().find("_polynomial_") != std::string::npos)
    return check_degree;
  const auto found = value_checks().find(op.name());
  return found == value_checks().end() ? nullptr : found->second;
}

CheckedCall::CheckedCall(const Op& op) : facts_(find_facts(op)) {}

void CheckedCall::check(std::span<const c10::IValue> arguments) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isTensor()) {
      check_tensor(*facts_, i, arguments[i].toTensor());
    } else if (arguments[i].isTensorList()) {
      for (const at::Tensor& tensor : arguments[i].toTensorList()) check_tensor(*facts_, i, tensor);
    } else if (arguments[i].isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& tensor : arguments[i].toOptionalTensorList()) {
        if (tensor) check_tensor(*facts_, i, *tensor);
      }
    }
  }
  const auto& expected = facts_->op.schema().arguments();
  for (const CallFacts::Word& word : facts_->words)
    check_word(expected[word.position], word.kind, arguments[word.position]);
  for (const size_t position : facts_->modes) {
    const int64_t mode = arguments[position].toInt();
    require_value(mode >= 0 && mode <= 2, "'", expected[position].name(), "' is ", mode, ", allowed are 0 to 2");
  }
  if (facts_->check == nullptr) return;
  // What a check computes is no part of a recording.
  const c10::impl::ExcludeDispatchKeyGuard unseen(kRecordingKey);
  const c10::NoGradGuard without_gradients;
  facts_->check(arguments);
}

void CheckedCall::operator()(std::vector<c10::IValue>& stack) const {
  check(stack);
  fit_strides(facts_->op, facts_->strides, stack);
  const int64_t before = facts_->may_grow ? stack[0].toTensor().numel() : 0;
  const std::vector<c10::IValue> arguments = facts_->finish != nullptr ? stack : std::vector<c10::IValue>();
  facts_->op.handle().callBoxed(stack);
  if (facts_->finish != nullptr) facts_->finish(arguments, stack);
  if (facts_->may_grow) clear_growth(stack[0].toTensor(), before);
  if (facts_->leaves_memory_unset && stack[0].toTensor().layout() == at::kStrided) stack[0].toTensor().zero_();
}

}  // namespace lissome
