// Arguments of serialized nodes: every kind of torch's schema, each by its own word.
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include "lissome/program/pt2/graph.h"
#include "lissome/program/pt2/tensors.h"

namespace lissome {
namespace {

Argument read_layout(const Json& value) {
  switch (json_integer(value, "layout")) {
    case 1: return Layout::sparse_coo;
    case 2: return Layout::sparse_csr;
    case 3: return Layout::sparse_csc;
    case 4: return Layout::sparse_bsr;
    case 5: return Layout::sparse_bsc;
    case 6: return Layout::mkldnn;
    case 7: return Layout::strided;
    default: throw_error(ErrorKind::invalid_input, "layout ", print_json(value), " is none that torch.export writes");
  }
}

Argument read_memory_format(const Json& value) {
  switch (json_integer(value, "memory format")) {
    case 1: return MemoryFormat::contiguous;
    case 2: return MemoryFormat::channels_last;
    case 3: return MemoryFormat::channels_last_3d;
    case 4: return MemoryFormat::preserve;
    default:
      throw_error(ErrorKind::invalid_input, "memory format ", print_json(value), " is none that torch.export writes");
  }
}

Argument read_device(const Json& value) {
  const std::string& type = text_member(value, "type");
  std::string name = type;
  if (const Json* index = find_json_member(value, "index")) {
    name += ":" + std::to_string(json_integer(*index, "device index"));
  }
  try {
    return Device{c10::Device(name).str()};
  } catch (const c10::Error&) {
    throw_error(ErrorKind::invalid_input, quote(name), " is no device");
  }
}

template <typename Read>
Argument read_list(const Json& value, std::string_view what, Read read) {
  ArgumentList items;
  for (const Json& item : json_list(value, what)) items.push_back(read(item));
  return items;
}

Argument read_integer(const Json& value) { return json_integer(value, "as_int"); }
Argument read_float(const Json& value) { return json_number(value, "as_float"); }
Argument read_boolean(const Json& value) { return json_boolean(value, "as_bool"); }
Argument read_string(const Json& value) { return json_text(value, "as_string"); }

std::optional<Argument> read_plain_list(std::string_view kind, const Json& value) {
  if (kind == "as_ints") return read_list(value, kind, read_integer);
  if (kind == "as_floats") return read_list(value, kind, read_float);
  if (kind == "as_bools") return read_list(value, kind, read_boolean);
  if (kind == "as_strings") return read_list(value, kind, read_string);
  if (kind == "as_int_lists")
    return read_list(value, kind, [](const Json& item) { return read_list(item, "as_int_lists", read_integer); });
  if (kind == "as_float_lists")
    return read_list(value, kind, [](const Json& item) { return read_list(item, "as_float_lists", read_float); });
  return std::nullopt;
}

}  // namespace

Argument read_literal(std::string_view kind, const Json& value) {
  if (kind == "as_none") return {};
  if (kind == "as_int") return read_integer(value);
  if (kind == "as_float") return read_float(value);
  if (kind == "as_bool") return read_boolean(value);
  if (kind == "as_string") return read_string(value);
  if (kind == "as_scalar_type") return dtype_of(pt2_scalar_type(json_integer(value, "dtype")));
  if (kind == "as_layout") return read_layout(value);
  if (kind == "as_memory_format") return read_memory_format(value);
  if (kind == "as_device") return read_device(value);
  if (kind == "as_operator") return read_string(value);
  if (kind == "as_complex")
    return std::complex<double>(json_number(json_member(value, "real"), "real"),
                                json_number(json_member(value, "imag"), "imag"));
  if (auto list = read_plain_list(kind, value)) return std::move(*list);
  if (kind == "as_custom_obj")
    throw_error(ErrorKind::unsupported, "the custom object ", quote(text_member(value, "name")), " of class ",
                quote(text_member(value, "class_fqn")), " cannot be loaded: its code is not in the file");
  throw_error(ErrorKind::unsupported, "arguments of kind ", quote(kind), " are unknown");
}

// {"as_name": "sym_size_int"} or {"as_int": 3}
Argument GraphReader::read_sym_argument(const Json& value) {
  const auto [kind, inner] = json_union(value, "symbolic argument");
  if (kind == "as_name") return resolve(json_text(inner, "as_name"));
  return read_literal(kind, inner);
}

Argument GraphReader::read_argument(const Json& argument) {
  const auto [kind, value] = json_union(argument, "argument");
  const auto read_tensor = [this](const Json& item) { return resolve(text_member(item, "name")); };
  const auto read_optional = [&](const Json& item) -> Argument {
    const auto [tag, inner] = json_union(item, "optional tensor");
    return tag == "as_none" ? Argument() : read_tensor(inner);
  };
  const auto read_sym = [this](const Json& item) { return read_sym_argument(item); };
  if (kind == "as_tensor") return read_tensor(value);
  if (kind == "as_tensors") return read_list(value, kind, read_tensor);
  if (kind == "as_optional_tensor") return read_optional(value);
  if (kind == "as_optional_tensors") return read_list(value, kind, read_optional);
  if (kind == "as_nested_tensors")
    return read_list(value, kind, [&](const Json& item) { return read_list(item, "as_nested_tensors", read_tensor); });
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return read_sym(value);
  if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools")
    return read_list(value, kind, read_sym);
  if (kind == "as_custom_obj") {
    const auto& known = frames_.front().arguments;
    const auto found = known.find(text_member(value, "name"));
    if (found != known.end()) return found->second;
  }
  return read_literal(kind, value);
}

Argument fit_literal(Argument argument, const c10::Argument& expected) {
  const c10::Type* type = expected.real_type().get();
  if (type->kind() == c10::TypeKind::OptionalType && !argument.is_none())
    type = type->castRaw<c10::OptionalType>()->getElementType().get();
  if (type->kind() == c10::TypeKind::FloatType && argument.get<int64_t>() != nullptr)
    return static_cast<double>(*argument.get<int64_t>());
  if (type->kind() != c10::TypeKind::ListType || argument.is_none()) return argument;
  const auto element = type->castRaw<c10::ListType>()->getElementType()->kind();
  if (!argument.is_list() && expected.N()) argument = ArgumentList(static_cast<size_t>(*expected.N()), argument);
  if (element == c10::TypeKind::FloatType && argument.is_list()) {
    ArgumentList items = argument.list();
    for (Argument& item : items) {
      if (const int64_t* integer = item.get<int64_t>()) item = static_cast<double>(*integer);
    }
    return items;
  }
  return argument;
}

}  // namespace lissome
