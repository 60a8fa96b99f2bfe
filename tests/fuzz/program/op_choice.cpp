#include "tests/fuzz/program/op_choice.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <map>

#include "lissome/program/check/gate.h"

namespace lissome {
namespace {

const c10::Type& strip_optional(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::OptionalType ? *type->expectRef<c10::OptionalType>().getElementType() : *type;
}

bool accepts(const c10::Argument& wanted, char given) {
  const c10::TypePtr type = wanted.real_type();
  if (given == 'n') return type->kind() == c10::TypeKind::OptionalType;
  switch (strip_optional(type).kind()) {
    case c10::TypeKind::TensorType: return given == 'v';
    case c10::TypeKind::ListType: return given == 'l';
    case c10::TypeKind::BoolType: return given == 'b';
    case c10::TypeKind::StringType: return given == 's';
    case c10::TypeKind::FloatType:
    case c10::TypeKind::NumberType: return given == 'f' || given == 'i';
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return given == 'i' || given == 'v';
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
    case c10::TypeKind::DeviceObjType: return given == 'w';
    default: return false;
  }
}

bool accepts(const c10::FunctionSchema& schema, const std::string& letters) {
  const std::vector<c10::Argument>& wanted = schema.arguments();
  if (letters.size() > wanted.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i >= letters.size() && !wanted[i].default_value()) return false;
    if (i < letters.size() && (wanted[i].kwarg_only() || !accepts(wanted[i], letters[i]))) return false;
  }
  return true;
}

}  // namespace

const std::vector<Op>& allowed_ops() {
  static const std::vector<Op> ops = [] {
    register_ops();
    std::vector<Op> found;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      const std::string text = c10::toString(name);
      const Op* op = Op::try_find(text);
      if (op != nullptr && op->has_schema() && refuse_op(*op, false).empty()) found.push_back(*op);
    }
    std::sort(found.begin(), found.end(), [](const Op& left, const Op& right) { return left.name() < right.name(); });
    return found;
  }();
  return ops;
}

const std::vector<Op>& find_like_ops(const std::string& letters, size_t results) {
  static std::map<std::pair<std::string, size_t>, std::vector<Op>> known;
  const auto [found, is_new] = known.try_emplace({letters, results});
  if (!is_new) return found->second;
  for (const Op& op : allowed_ops()) {
    if (op.schema().returns().size() == results && accepts(op.schema(), letters)) found->second.push_back(op);
  }
  return found->second;
}

}  // namespace lissome
