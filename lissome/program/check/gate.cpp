// See gate.h. An op passes by being on the list of ATen's ops (allowed_ops.h), by being one of ours, whose references
// check their arguments, or by the user's word (allow_op). Everything else is refused, whatever it would do.
#include "lissome/program/check/gate.h"

#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <string_view>

#include "lissome/allow_op.h"
#include "lissome/base.h"
#include "lissome/program.h"
#include "lissome/program/check/allowed_ops.h"

namespace lissome {
namespace {

static_assert(std::is_sorted(std::begin(kAllowedOps), std::end(kAllowedOps)));

bool is_listed(std::string_view name) {
  return std::binary_search(std::begin(kAllowedOps), std::end(kAllowedOps), name);
}

// Some overload of aten::add is on the list.
bool is_word_listed(std::string_view word) {
  const auto* const found = std::lower_bound(std::begin(kAllowedOps), std::end(kAllowedOps), word);
  if (found == std::end(kAllowedOps)) return false;
  return *found == word || (found->starts_with(word) && (*found)[word.size()] == '.');
}

// purify() makes of these what is on the list, or leaves them for judge_program() to refuse.
bool is_rewritten_by_import(std::string_view name) {
  for (const std::string_view look : {"aten::resize_", "aten::resize_as_", "aten::as_strided_"}) {
    if (name == look) return true;
  }
  const size_t dot = name.find('.');
  return dot != std::string_view::npos && (name.ends_with(".out") || name.ends_with("_out")) &&
         is_word_listed(name.substr(0, dot));
}

}  // namespace

std::string refuse_op(const Op& op, bool is_rewritten) {
  const std::string& name = op.name();
  if (!op.has_schema() || is_listed(name) || name.starts_with("lissome::")) return {};
  if (is_rewritten && is_rewritten_by_import(name)) return {};
  if (!is_own_namespace(name) && is_op_allowed(name)) return {};
  const std::string refusal = "is not on the list of ops that a model file may call";
  if (is_own_namespace(name)) return refusal + "; none of PyTorch's ops can be added to it";
  return refusal + "; an op of your own is allowed by --allow-op NAME, in Python lissome.allow_op(NAME)";
}

namespace {

// Some ops leave out their own checks where the caller asks for it.
bool waives_checks(const Node& node) {
  const int position = node.op.has_schema() ? node.op.argument_index("unsafe") : -1;
  if (position < 0) return false;
  const Argument& argument = node.arguments[static_cast<size_t>(position)];
  const bool* flag = argument.get<bool>();
  return flag == nullptr || *flag;
}

std::string print_sizes(const ValueType& type) {
  std::vector<std::string> sizes;
  for (const Dimension& size : type.sizes) sizes.push_back(size.print());
  return "[" + join(sizes, ", ") + "]";
}

// A write puts a tensor in the place of one like it; libtorch would convert and broadcast.
void judge_write(const Program& program, const StateWrite& write) {
  const ValueType &target = program.value(write.target).type, &value = program.value(write.value).type;
  if (target.kind != ValueKind::tensor || value.kind != ValueKind::tensor) return;
  const auto refuse = [&](std::string_view stored, std::string_view held) {
    throw_error(ErrorKind::invalid_input, "the write to %", program.value(write.target).name, " stores ", stored,
                " in ", held);
  };
  const Weight* state = program.find_weight(write.target);
  if (state != nullptr && state->tensor.defined() && at::has_internal_overlap(state->tensor) == at::MemOverlap::Yes)
    refuse("a tensor", "one whose elements share memory");
  if (target.dtype != value.dtype) refuse(dtype_name(value.dtype), dtype_name(target.dtype));
  if (!target.sized || !value.sized) return;
  bool differ = target.sizes.size() != value.sizes.size();
  for (size_t i = 0; !differ && i < target.sizes.size(); ++i) {
    const std::optional<int64_t> held = target.sizes[i].constant(), stored = value.sizes[i].constant();
    differ = held && stored && *held != *stored;
  }
  if (differ) refuse(print_sizes(value), print_sizes(target));
}

}  // namespace

void judge_program(const Program& program) {
  for (const StateWrite& write : program.writes) judge_write(program, write);
  for (const Node& node : program.nodes) {
    if (waives_checks(node)) {
      throw_error(ErrorKind::unsupported, describe_node(node),
                  " with unsafe=true is not on the list of ops that a model file may call; unsafe=false is");
    }
    if (const std::string refusal = refuse_op(node.op, false); !refusal.empty()) {
      throw_error(ErrorKind::unsupported, describe_node(node), " ", refusal);
    }
    judge_control(node);
    for (const auto& body : node.bodies) judge_program(*body);
  }
}

}  // namespace lissome
