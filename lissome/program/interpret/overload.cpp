// Binding written arguments to schemas. Program text names overloads in full when lissome writes it; people leave them
// out (`aten::add(%a, %b)`), so the overload is found from what the arguments are.
#include "lissome/program/interpret/overload.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <map>
#include <optional>

#include "lissome/program/syntax/program_lexer.h"

namespace lissome {
namespace {

// Base name -> full names, of everything in the dispatcher at the first call (register_ops has run).
const std::multimap<std::string, std::string>& list_overloads() {
  static const auto* const overloads = [] {
    auto* made = new std::multimap<std::string, std::string>;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      if (!name.overload_name.empty()) made->emplace(name.name, name.name + "." + name.overload_name);
    }
    return made;
  }();
  return *overloads;
}

bool fits(const Argument& argument, const c10::Type& type, const Program& program);

bool fits_list(const ArgumentList& items, const c10::Type& element, const Program& program) {
  return std::all_of(items.begin(), items.end(), [&](const Argument& item) { return fits(item, element, program); });
}

bool value_fits(ValueKind kind, c10::TypeKind type) {
  switch (kind) {
    case ValueKind::any: return true;
    case ValueKind::tensor: return type == c10::TypeKind::TensorType;
    case ValueKind::integer:
      return type == c10::TypeKind::IntType || type == c10::TypeKind::SymIntType || type == c10::TypeKind::NumberType;
    case ValueKind::floating: return type == c10::TypeKind::FloatType || type == c10::TypeKind::NumberType;
    case ValueKind::boolean: return type == c10::TypeKind::BoolType || type == c10::TypeKind::NumberType;
    case ValueKind::string: return type == c10::TypeKind::StringType;
    case ValueKind::list: return type == c10::TypeKind::ListType;
    case ValueKind::none: return type == c10::TypeKind::NoneType;
  }
  return false;
}

bool fits(const Argument& argument, const c10::Type& type, const Program& program) {
  using Type = c10::TypeKind;
  if (type.kind() == Type::OptionalType) {
    return argument.is_none() || fits(argument, *type.castRaw<c10::OptionalType>()->getElementType(), program);
  }
  if (argument.is_value()) return value_fits(program.value(argument.value()).type.kind, type.kind());
  if (argument.is_list()) {
    return type.kind() == Type::ListType &&
           fits_list(argument.list(), *type.castRaw<c10::ListType>()->getElementType(), program);
  }
  switch (type.kind()) {
    case Type::NumberType:
      return argument.get<int64_t>() || argument.get<double>() || argument.get<bool>() ||
             argument.get<std::complex<double>>();
    case Type::IntType:
    case Type::SymIntType: return argument.get<int64_t>() != nullptr;
    case Type::FloatType: return argument.get<double>() || argument.get<int64_t>();
    case Type::BoolType: return argument.get<bool>() != nullptr;
    case Type::StringType: return argument.get<std::string>() != nullptr;
    case Type::ScalarTypeType: return argument.get<Dtype>() != nullptr;
    case Type::LayoutType: return argument.get<Layout>() != nullptr;
    case Type::MemoryFormatType: return argument.get<MemoryFormat>() != nullptr;
    case Type::DeviceObjType: return argument.get<Device>() != nullptr;
    default: return false;
  }
}

// Every argument finds its place and none is missing; with `program`, kinds fit too.
bool fits_schema(const Op& op, const std::vector<NamedArgument>& arguments, const Program* program) {
  const auto& expected = op.schema().arguments();
  std::vector<bool> given(expected.size(), false);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const int index = arguments[i].keyword.empty() ? static_cast<int>(i) : op.argument_index(arguments[i].keyword);
    if (index < 0 || static_cast<size_t>(index) >= expected.size()) return false;
    const c10::Argument& slot = expected[static_cast<size_t>(index)];
    if (arguments[i].keyword.empty() && slot.kwarg_only()) return false;
    if (program != nullptr && !fits(arguments[i].value, *slot.real_type(), *program)) return false;
    given[static_cast<size_t>(index)] = true;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!given[i] && !expected[i].default_value().has_value()) return false;
  }
  return true;
}

}  // namespace

Op find_overload(const std::string& name, const std::vector<NamedArgument>& arguments, const Program& program,
                 TextPlace place) {
  const Op* const exact = Op::try_find(name);
  const bool is_full = name.find('.') != std::string::npos;
  // An op without an overload name is full already: `aten::floor_divide(%x, 3)` is not its Scalar overload.
  if (exact && (is_full || !exact->has_schema() || fits_schema(*exact, arguments, nullptr))) return *exact;
  const auto [first, last] = list_overloads().equal_range(name);
  std::optional<Op> chosen;
  std::string known;
  for (auto overload = first; overload != last; ++overload) {
    known += (known.empty() ? "" : ", ") + overload->second;
    const Op op = Op::find(overload->second);
    if (!fits_schema(op, arguments, &program)) continue;
    // Where a value of unknown kind fits several, it is a tensor.
    if (!chosen || overload->second.ends_with(".Tensor")) chosen = op;
  }
  if (chosen) return *chosen;
  if (exact) return *exact;  // bind_arguments says what is wrong
  if (!known.empty()) {
    refuse_text(place, "no overload of " + name + " takes these arguments; there are " + known);
  }
  try {
    return Op::find(name);
  } catch (const Error& error) {
    throw_error(error.kind(), "program text, line ", place.line, ": ", error.message());
  }
}

ArgumentList bind_arguments(const Op& op, std::vector<NamedArgument> arguments, TextPlace place) {
  ArgumentList bound;
  if (!op.has_schema()) {
    for (NamedArgument& argument : arguments) {
      if (!argument.keyword.empty()) refuse_text(argument.place, op.name() + " takes no arguments by name");
      bound.push_back(std::move(argument.value));
    }
    return bound;
  }
  const auto& expected = op.schema().arguments();
  bound.resize(expected.size());
  std::vector<bool> given(expected.size(), false);
  bool by_position = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    NamedArgument& argument = arguments[i];
    by_position = by_position && argument.keyword.empty();
    if (!by_position && argument.keyword.empty()) {
      refuse_text(argument.place, "an argument by position behind one by name");
    }
    const int index = by_position ? static_cast<int>(i) : op.argument_index(argument.keyword);
    if (index < 0 || static_cast<size_t>(index) >= expected.size()) {
      std::string names;
      for (const c10::Argument& slot : expected) names += (names.empty() ? "" : ", ") + slot.name();
      refuse_text(argument.place,
                  op.name() + " has no " +
                      (by_position ? "argument " + std::to_string(i + 1) : "argument '" + argument.keyword + "'") +
                      "; it takes (" + names + ")");
    }
    const auto slot = static_cast<size_t>(index);
    if (given[slot]) refuse_text(argument.place, "argument '" + expected[slot].name() + "' is given twice");
    given[slot] = true;
    bound[slot] = std::move(argument.value);
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (given[i]) continue;
    auto usual = default_argument(op, i);
    if (!usual) refuse_text(place, op.name() + " lacks its argument '" + expected[i].name() + "'");
    bound[i] = std::move(*usual);
  }
  return bound;
}

}  // namespace lissome
