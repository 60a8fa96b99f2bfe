// Arguments as the dispatcher takes them; see convert.h.
#include "lissome/program/convert.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

#include "lissome/program.h"

namespace lissome {
namespace {

using c10::IValue;
using c10::TypeKind;

bool is_scalar(const IValue& value) {
  return value.isInt() || value.isDouble() || value.isBool() || value.isComplexDouble();
}

at::Tensor wrap_number(const IValue& value) {
  const at::Scalar number = value.toScalar();
  at::Tensor tensor = at::scalar_tensor(number, at::TensorOptions().dtype(number.type()));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

[[noreturn]] void refuse(const IValue& value, const c10::Type& type) {
  throw_error(ErrorKind::invalid_input, "a ", value.tagKind(), " cannot be taken as ", type.str());
}

IValue fit(IValue value, const c10::Type& type, std::optional<int32_t> count);

c10::List<int64_t> fit_integers(const IValue& value, std::optional<int32_t> count) {
  c10::List<int64_t> result;
  if (!value.isList()) {
    const int64_t number = fit(value, *c10::IntType::get(), {}).toInt();
    for (int32_t i = 0; i < count.value_or(1); ++i) result.push_back(number);
    return result;
  }
  for (const IValue& item : value.toListRef()) result.push_back(fit(item, *c10::IntType::get(), {}).toInt());
  return result;
}

IValue fit_tensors(const IValue& value) {
  c10::List<at::Tensor> result;
  for (const IValue& item : value.toListRef()) result.push_back(fit(item, *c10::TensorType::get(), {}).toTensor());
  return result;
}

IValue fit_optional_tensors(const IValue& value) {
  c10::List<std::optional<at::Tensor>> result;
  for (const IValue& item : value.toListRef()) {
    if (item.isNone()) {
      result.push_back(std::nullopt);
    } else {
      result.push_back(fit(item, *c10::TensorType::get(), {}).toTensor());
    }
  }
  return result;
}

IValue fit_list(const IValue& value, const c10::Type& type, std::optional<int32_t> count) {
  const c10::TypePtr& element = type.castRaw<c10::ListType>()->getElementType();
  if (element->kind() == TypeKind::IntType || element->kind() == TypeKind::SymIntType) {
    if (value.isIntList() && !count) return value;
    return fit_integers(value, count);
  }
  if (!value.isList()) {
    c10::impl::GenericList single(element);
    for (int32_t i = 0; i < count.value_or(1); ++i) single.push_back(fit(value, *element, {}));
    return fit_list(IValue(std::move(single)), type, {});
  }
  switch (element->kind()) {
    case TypeKind::TensorType: return value.isTensorList() ? value : fit_tensors(value);
    case TypeKind::OptionalType:
      if (element->castRaw<c10::OptionalType>()->getElementType()->kind() == TypeKind::TensorType) {
        return fit_optional_tensors(value);
      }
      break;
    case TypeKind::FloatType: {
      c10::List<double> result;
      for (const IValue& item : value.toListRef()) result.push_back(fit(item, *element, {}).toDouble());
      return result;
    }
    case TypeKind::BoolType: {
      c10::List<bool> result;
      for (const IValue& item : value.toListRef()) result.push_back(fit(item, *element, {}).toBool());
      return result;
    }
    default: break;
  }
  c10::impl::GenericList result(element);
  for (const IValue& item : value.toListRef()) result.push_back(fit(item, *element, {}));
  return result;
}

IValue fit_integer(const IValue& value, const c10::Type& type) {
  if (value.isInt()) return value;
  if (value.isBool()) return static_cast<int64_t>(value.toBool());
  if (value.isTensor() && value.toTensor().numel() == 1 && value.toTensor().dim() == 0) {
    return value.toTensor().item().toLong();
  }
  refuse(value, type);
}

IValue fit_number(IValue value, const c10::Type& type) {
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().dim() == 0) value = value.toTensor().item();
  if (is_scalar(value)) return value;
  refuse(value, type);
}

IValue fit(IValue value, const c10::Type& type, std::optional<int32_t> count) {
  switch (type.kind()) {
    case TypeKind::OptionalType:
      if (value.isNone()) return value;
      return fit(std::move(value), *type.castRaw<c10::OptionalType>()->getElementType(), count);
    case TypeKind::TensorType:
      if (value.isTensor()) return value;
      if (value.isNone()) return at::Tensor();
      if (is_scalar(value)) return wrap_number(value);
      refuse(value, type);
    case TypeKind::ListType: return fit_list(value, type, count);
    case TypeKind::IntType:
    case TypeKind::SymIntType: return fit_integer(value, type);
    case TypeKind::NumberType: return fit_number(std::move(value), type);
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      if (value.isInt()) return static_cast<double>(value.toInt());
      if (value.isBool()) return value.toBool() ? 1.0 : 0.0;
      if (!value.isDouble()) value = fit_number(std::move(value), type).toScalar().toDouble();
      return value;
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      if (value.isInt()) return value.toInt() != 0;
      if (value.isTensor()) return value.toTensor().item().toBool();
      return value;
    case TypeKind::DeviceObjType:
      if (value.isString()) return c10::Device(value.toStringRef());
      return value;
    default: return value;
  }
}

}  // namespace

IValue fit_to_schema(IValue value, const c10::Argument& expected) {
  try {
    return fit(std::move(value), *expected.type(), expected.N());
  } catch (const Error& error) {
    throw_error(error.kind(), "argument '", expected.name(), "': ", error.message());
  }
}

namespace {

bool may_be_number(ValueKind kind) {
  return kind == ValueKind::integer || kind == ValueKind::floating || kind == ValueKind::boolean;
}

bool is_number_type(TypeKind kind) {
  switch (kind) {
    case TypeKind::IntType:
    case TypeKind::SymIntType:
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
    case TypeKind::NumberType: return true;
    default: return false;
  }
}

bool may_be(const ValueType& type, const c10::Type& expected) {
  if (type.kind == ValueKind::any) return true;
  if (is_number_type(expected.kind())) return may_be_number(type.kind) || type.kind == ValueKind::tensor;
  switch (expected.kind()) {
    case TypeKind::OptionalType:
      return type.kind == ValueKind::none || may_be(type, *expected.castRaw<c10::OptionalType>()->getElementType());
    case TypeKind::TensorType:
      return type.kind == ValueKind::tensor || type.kind == ValueKind::none || may_be_number(type.kind);
    case TypeKind::ListType:
      // One number stands for a list of it.
      return type.kind == ValueKind::list || may_be_number(type.kind) || type.kind == ValueKind::tensor;
    case TypeKind::StringType:
    case TypeKind::DeviceObjType: return type.kind == ValueKind::string;
    default: return true;
  }
}

// Whether a value of this kind can be what a schema gives.
bool may_come_of(const ValueType& type, const c10::Type& given) {
  if (type.kind == ValueKind::any) return true;
  if (is_number_type(given.kind())) return may_be_number(type.kind);
  switch (given.kind()) {
    case TypeKind::OptionalType:
      return type.kind == ValueKind::none || may_come_of(type, *given.castRaw<c10::OptionalType>()->getElementType());
    case TypeKind::TensorType: return type.kind == ValueKind::tensor || type.kind == ValueKind::none;
    case TypeKind::ListType: return type.kind == ValueKind::list;
    case TypeKind::StringType: return type.kind == ValueKind::string;
    default: return true;
  }
}

// Which literals an expected kind takes, by index into Argument::Data; lists and optionals are seen to elsewhere.
bool takes_literal(const Argument& argument, const c10::Type& expected) {
  const bool integer = argument.get<int64_t>() != nullptr, floating = argument.get<double>() != nullptr;
  const bool boolean = argument.get<bool>() != nullptr, text = argument.get<std::string>() != nullptr;
  const bool complex = argument.get<std::complex<double>>() != nullptr;
  const bool word =
      argument.get<Dtype>() != nullptr || argument.get<Layout>() != nullptr || argument.get<MemoryFormat>() != nullptr;
  switch (expected.kind()) {
    case TypeKind::TensorType: return argument.is_none() || integer || floating || boolean || complex;
    case TypeKind::NumberType: return integer || floating || boolean || complex;
    case TypeKind::FloatType:
    case TypeKind::SymFloatType: return integer || floating || boolean;
    case TypeKind::IntType:
    case TypeKind::SymIntType: return integer || boolean || word;
    case TypeKind::BoolType:
    case TypeKind::SymBoolType: return boolean || integer;
    case TypeKind::StringType: return text;
    case TypeKind::DeviceObjType: return text || argument.get<Device>() != nullptr;
    default: return true;
  }
}

bool fits(const Program& program, const Argument& argument, const c10::Type& expected) {
  if (argument.is_value()) return may_be(program.value(argument.value()).type, expected);
  if (expected.kind() == TypeKind::OptionalType) {
    return argument.is_none() || fits(program, argument, *expected.castRaw<c10::OptionalType>()->getElementType());
  }
  if (expected.kind() == TypeKind::ListType) {
    const c10::Type& element = *expected.castRaw<c10::ListType>()->getElementType();
    if (!argument.is_list()) return !argument.is_none() && fits(program, argument, element);
    return std::all_of(argument.list().begin(), argument.list().end(),
                       [&](const Argument& item) { return fits(program, item, element); });
  }
  if (argument.is_list()) return expected.kind() == TypeKind::AnyType;
  return takes_literal(argument, expected);
}

}  // namespace

std::string find_misfit(const Program& program, const Argument& argument, const c10::Argument& expected) {
  if (fits(program, argument, *expected.type())) return {};
  return "cannot be taken as " + expected.real_type()->str();
}

std::string find_result_misfit(const ValueType& type, const c10::Argument& given) {
  // The real type tells dtypes, layouts and memory formats from the integers that they are stored as.
  if (may_come_of(type, *given.real_type())) return {};
  return "cannot be what it gives, " + given.real_type()->str();
}

IValue resolve_argument(const Argument& argument, const std::function<IValue(ValueId)>& lookup) {
  if (argument.is_value()) return lookup(argument.value());
  if (!argument.is_list()) return to_ivalue(argument);
  c10::impl::GenericList items(c10::AnyType::get());
  for (const Argument& item : argument.list()) items.push_back(resolve_argument(item, lookup));
  return items;
}

IValue to_ivalue(const Argument& literal) {
  return std::visit(
      [](const auto& data) -> IValue {
        using T = std::decay_t<decltype(data)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return {};
        } else if constexpr (std::is_same_v<T, ValueId>) {
          throw_error(ErrorKind::internal, "a value is no literal");
        } else if constexpr (std::is_same_v<T, std::complex<double>>) {
          return c10::complex<double>(data.real(), data.imag());
        } else if constexpr (std::is_same_v<T, Dtype>) {
          return static_cast<int64_t>(scalar_type_of(data));
        } else if constexpr (std::is_same_v<T, Layout>) {
          return static_cast<int64_t>(torch_layout_of(data));
        } else if constexpr (std::is_same_v<T, MemoryFormat>) {
          return static_cast<int64_t>(torch_memory_format_of(data));
        } else if constexpr (std::is_same_v<T, Device>) {
          return c10::Device(data.name);
        } else if constexpr (std::is_same_v<T, ArgumentList>) {
          return resolve_argument(Argument(data), [](ValueId) -> IValue {
            throw_error(ErrorKind::internal, "a list with values is no literal");
          });
        } else {
          return data;
        }
      },
      literal.data);
}

}  // namespace lissome
