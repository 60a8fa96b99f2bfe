// Building and looking up: values with unique names, nodes with every default written out, and the words that libtorch
// and we use for element types.
#include "lissome/program/program.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <array>

namespace lissome {
namespace {

constexpr std::array<std::pair<Dtype, at::ScalarType>, 20> kDtypes = {{
    {Dtype::u8, at::kByte},
    {Dtype::i8, at::kChar},
    {Dtype::i16, at::kShort},
    {Dtype::i32, at::kInt},
    {Dtype::i64, at::kLong},
    {Dtype::f16, at::kHalf},
    {Dtype::bf16, at::kBFloat16},
    {Dtype::f32, at::kFloat},
    {Dtype::f64, at::kDouble},
    {Dtype::boolean, at::kBool},
    {Dtype::c32, at::ScalarType::ComplexHalf},
    {Dtype::c64, at::kComplexFloat},
    {Dtype::c128, at::kComplexDouble},
    {Dtype::u16, at::ScalarType::UInt16},
    {Dtype::u32, at::ScalarType::UInt32},
    {Dtype::u64, at::ScalarType::UInt64},
    {Dtype::f8_e4m3fn, at::ScalarType::Float8_e4m3fn},
    {Dtype::f8_e5m2, at::ScalarType::Float8_e5m2},
    {Dtype::f8_e4m3fnuz, at::ScalarType::Float8_e4m3fnuz},
    {Dtype::f8_e5m2fnuz, at::ScalarType::Float8_e5m2fnuz},
}};

Argument from_default_integer(int64_t number, const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::ScalarTypeType: return dtype_of(static_cast<at::ScalarType>(number));
    case c10::TypeKind::LayoutType: return layout_of(static_cast<at::Layout>(number));
    case c10::TypeKind::MemoryFormatType: return memory_format_of(static_cast<at::MemoryFormat>(number));
    case c10::TypeKind::OptionalType:
      return from_default_integer(number, *type.castRaw<c10::OptionalType>()->getElementType());
    default: return number;
  }
}

// A schema's default value as an argument. `type` is the written type ("ScalarType"), not the one that it runs as.
Argument from_default(const c10::IValue& value, const c10::Type& type) {
  if (value.isNone()) return {};
  if (value.isInt()) return from_default_integer(value.toInt(), type);
  if (value.isBool()) return value.toBool();
  if (value.isDouble()) return value.toDouble();
  if (value.isString()) return value.toStringRef();
  if (value.isComplexDouble()) return std::complex<double>(value.toComplexDouble());
  if (value.isDevice()) return Device{value.toDevice().str()};
  if (value.isList()) {
    ArgumentList items;
    for (const c10::IValue& item : value.toListRef()) items.push_back(from_default(item, *c10::AnyType::get()));
    return items;
  }
  throw_error(ErrorKind::internal, "a default of kind ", value.tagKind(), " has no literal");
}

}  // namespace

Dtype dtype_of(at::ScalarType type) {
  for (const auto& [dtype, scalar_type] : kDtypes) {
    if (scalar_type == type) return dtype;
  }
  throw_error(ErrorKind::unsupported, "element type ", c10::toString(type),
              " is not supported: quantized and bit types have no place in a program");
}

at::ScalarType scalar_type_of(Dtype dtype) {
  for (const auto& [ours, theirs] : kDtypes) {
    if (ours == dtype) return theirs;
  }
  throw_error(ErrorKind::internal, "dtype ", static_cast<int>(dtype), " is none");
}

Layout layout_of(at::Layout layout) {
  switch (layout) {
    case at::Layout::Strided: return Layout::strided;
    case at::Layout::Sparse: return Layout::sparse_coo;
    case at::Layout::SparseCsr: return Layout::sparse_csr;
    case at::Layout::SparseCsc: return Layout::sparse_csc;
    case at::Layout::SparseBsr: return Layout::sparse_bsr;
    case at::Layout::SparseBsc: return Layout::sparse_bsc;
    case at::Layout::Mkldnn: return Layout::mkldnn;
    default: throw_error(ErrorKind::unsupported, "tensor layout ", static_cast<int>(layout), " is not supported");
  }
}

at::Layout torch_layout_of(Layout layout) {
  switch (layout) {
    case Layout::strided: return at::Layout::Strided;
    case Layout::sparse_coo: return at::Layout::Sparse;
    case Layout::sparse_csr: return at::Layout::SparseCsr;
    case Layout::sparse_csc: return at::Layout::SparseCsc;
    case Layout::sparse_bsr: return at::Layout::SparseBsr;
    case Layout::sparse_bsc: return at::Layout::SparseBsc;
    case Layout::mkldnn: return at::Layout::Mkldnn;
  }
  throw_error(ErrorKind::internal, "layout ", static_cast<int>(layout), " is none");
}

MemoryFormat memory_format_of(at::MemoryFormat format) {
  switch (format) {
    case at::MemoryFormat::Contiguous: return MemoryFormat::contiguous;
    case at::MemoryFormat::Preserve: return MemoryFormat::preserve;
    case at::MemoryFormat::ChannelsLast: return MemoryFormat::channels_last;
    case at::MemoryFormat::ChannelsLast3d: return MemoryFormat::channels_last_3d;
    default: throw_error(ErrorKind::unsupported, "memory format ", static_cast<int>(format), " is not supported");
  }
}

at::MemoryFormat torch_memory_format_of(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::contiguous: return at::MemoryFormat::Contiguous;
    case MemoryFormat::preserve: return at::MemoryFormat::Preserve;
    case MemoryFormat::channels_last: return at::MemoryFormat::ChannelsLast;
    case MemoryFormat::channels_last_3d: return at::MemoryFormat::ChannelsLast3d;
  }
  throw_error(ErrorKind::internal, "memory format ", static_cast<int>(format), " is none");
}

std::optional<Argument> default_argument(const Op& op, size_t index) {
  const c10::Argument& argument = op.schema().arguments().at(index);
  if (!argument.default_value().has_value()) return std::nullopt;
  return from_default(*argument.default_value(), *argument.real_type());
}

ArgumentList complete_arguments(const Op& op, ArgumentList arguments) {
  if (!op.has_schema()) return arguments;
  const auto& expected = op.schema().arguments();
  LISSOME_CHECK(arguments.size() <= expected.size(), op.name(), " takes ", expected.size(), " arguments, not ",
                arguments.size());
  for (size_t i = arguments.size(); i < expected.size(); ++i) {
    auto value = default_argument(op, i);
    LISSOME_CHECK(value.has_value(), op.name(), " lacks its argument '", expected[i].name(), "'");
    arguments.push_back(std::move(*value));
  }
  return arguments;
}

const Argument& Node::argument(std::string_view name) const {
  const int index = op.argument_index(name);
  LISSOME_CHECK(index >= 0 && static_cast<size_t>(index) < arguments.size(), op.name(), " has no argument '", name,
                "'");
  return arguments[static_cast<size_t>(index)];
}

Argument& Node::argument(std::string_view name) { return const_cast<Argument&>(std::as_const(*this).argument(name)); }

std::string Program::make_unique_name(std::string name) {
  for (; named_ < values.size(); ++named_) names_.emplace(values[named_].name, static_cast<int>(named_));
  const auto is_taken = [this](const std::string& candidate) {
    const auto found = names_.find(candidate);
    if (found == names_.end()) return false;
    return values[static_cast<size_t>(found->second)].name == candidate;
  };
  if (name.empty()) {
    do name = std::to_string(next_number_++);
    while (is_taken(name));
    return name;
  }
  if (!is_taken(name)) return name;
  for (int64_t suffix = 1;; ++suffix) {
    std::string candidate = name + "_" + std::to_string(suffix);
    if (!is_taken(candidate)) return candidate;
  }
}

ValueId Program::add_value(ValueType type, std::string name) {
  name = make_unique_name(std::move(name));
  const int index = static_cast<int>(values.size());
  names_.insert_or_assign(name, index);
  values.push_back({std::move(name), std::move(type)});
  named_ = values.size();
  return ValueId{index};
}

void Program::rename_value(ValueId id, std::string name) {
  if (value(id).name == name) return;
  name = make_unique_name(std::move(name));
  names_.insert_or_assign(name, static_cast<int>(id));
  value(id).name = std::move(name);
}

ValueId Program::add_input(std::string name, ValueType type) {
  const ValueId id = add_value(std::move(type), name);
  inputs.push_back({id, std::move(name)});
  return id;
}

ValueId Program::add_weight(std::string name, at::Tensor tensor, WeightRole role) {
  ValueType type{ValueKind::tensor, dtype_of(tensor.scalar_type()), true, {}};
  for (const int64_t size : tensor.sizes()) type.sizes.emplace_back(size);
  const ValueId id = add_value(std::move(type), name);
  weights.push_back({id, std::move(name), role, std::move(tensor)});
  return id;
}

Node& Program::add_node(Op op, ArgumentList arguments, std::vector<ValueType> results,
                        std::shared_ptr<const Origin> origin) {
  Node node{op, complete_arguments(op, std::move(arguments)), {}, {}, std::move(origin)};
  LISSOME_CHECK(!op.has_schema() || results.size() == op.schema().returns().size(), op.name(), " returns ",
                op.schema().returns().size(), " values, not ", results.size());
  for (ValueType& type : results) node.results.push_back(add_value(std::move(type)));
  nodes.push_back(std::move(node));
  return nodes.back();
}

const Weight* Program::find_weight(ValueId id) const {
  for (const Weight& weight : weights) {
    if (weight.value == id) return &weight;
  }
  return nullptr;
}

const Weight* Program::find_weight(std::string_view name) const {
  for (const Weight& weight : weights) {
    if (weight.name == name) return &weight;
  }
  return nullptr;
}

std::optional<ValueId> Program::find_value(std::string_view name) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == name) return ValueId{static_cast<int32_t>(i)};
  }
  return std::nullopt;
}

}  // namespace lissome
