// The one representation of a model. A program is a list of nodes in topological order over values; weights and state
// are values that come with a tensor. Everything here is plain data: uses, lifetimes, shapes and effects are computed
// beside it (program/purify) and thrown away after a change.
#pragma once

#include <ATen/core/Tensor.h>

#include <complex>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "lissome/base.h"
#include "lissome/program/op.h"
#include "lissome/program/shape/dimension.h"
#include "lissome/program/shape/requirement.h"

namespace lissome {

enum class ValueId : int32_t { none = -1 };  // index into Program::values

enum class ValueKind : uint8_t { tensor, integer, floating, boolean, string, list, none, any };

// What is known of a value. For tensors: dtype and sizes, where known (`sized`). Strides are not part of a type.
struct ValueType {
  ValueKind kind = ValueKind::any;
  Dtype dtype = Dtype::f32;
  bool sized = false;
  std::vector<Dimension> sizes;

  bool operator==(const ValueType& other) const = default;
};

struct Value {
  std::string name;  // as printed after %, unique in its program: "3", "relu_1", "x"
  ValueType type;
};

// Distinct words for arguments that are enums in Python and plain ints in a schema. Printed as f32, strided,
// channels_last, cpu.
enum class Layout : uint8_t { strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, mkldnn };
enum class MemoryFormat : uint8_t { contiguous, preserve, channels_last, channels_last_3d };
struct Device {
  std::string name;  // "cpu", "cuda:0"
  bool operator==(const Device&) const = default;
};

struct Argument;
using ArgumentList = std::vector<Argument>;

// One argument of a node: a value, a literal, or a list of arguments. std::monostate is none.
struct Argument {
  using Data = std::variant<std::monostate, ValueId, int64_t, double, bool, std::string, std::complex<double>, Dtype,
                            Layout, MemoryFormat, Device, ArgumentList>;
  Data data;

  Argument() = default;
  template <typename T>
    requires std::is_constructible_v<Data, T&&> && (!std::is_same_v<std::remove_cvref_t<T>, Argument>)
  Argument(T&& value) : data(std::forward<T>(value)) {}  // NOLINT: a literal is an argument
  Argument(int value) : data(static_cast<int64_t>(value)) {}
  Argument(const char* value) : data(std::string(value)) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(data); }
  bool is_value() const { return std::holds_alternative<ValueId>(data); }
  ValueId value() const { return is_value() ? std::get<ValueId>(data) : ValueId::none; }
  bool is_list() const { return std::holds_alternative<ArgumentList>(data); }
  const ArgumentList& list() const { return std::get<ArgumentList>(data); }
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&data);
  }
  bool operator==(const Argument& other) const = default;
};

// Where a node comes from, in the user's words. Shared by all nodes that came from the same call.
struct Origin {
  std::string source;       // "encoder.py:88"; empty when unknown
  std::string code;         // the text of that line
  std::string module;       // "encoder.layer.0.attention"
  std::string module_type;  // "BertAttention"
};

class Program;

// `arguments` stand in schema order with every default written out, so that position i is schema argument i.
struct Node {
  Op op;
  ArgumentList arguments;
  std::vector<ValueId> results;                        // one per schema return; a list result is one value of kind list
  std::vector<std::shared_ptr<const Program>> bodies;  // of control ops
  std::shared_ptr<const Origin> origin;

  bool is(std::string_view name) const { return op.is(name); }
  // By schema name; internal error when the schema has no such argument.
  const Argument& argument(std::string_view name) const;
  Argument& argument(std::string_view name);
  ValueId result() const { return results.at(0); }
};

enum class WeightRole : uint8_t { parameter, buffer, constant };

// A value with a tensor. Tied parameters share storage: aliases keep their own names and the same at::Tensor storage.
struct Weight {
  ValueId value = ValueId::none;
  std::string name;  // PyTorch's name: "encoder.layer.0.weight"
  WeightRole role = WeightRole::parameter;
  at::Tensor tensor;
  bool trains = true;      // of a parameter: its requires_grad in PyTorch
  bool persistent = true;  // of a buffer: whether PyTorch's state dict holds it
};

// Inputs and outputs are flat; their names come from the tree they were given in: "ids", "options.mask", "output.0".
struct ProgramInput {
  ValueId value = ValueId::none;
  std::string name;
};
struct ProgramOutput {
  Argument value;  // a value or a literal (none, 3, ...)
  std::string name;
};

// `target <- value` when the program has run: the only way in which a pure program changes state.
struct StateWrite {
  ValueId target = ValueId::none;  // a weight (buffer) or an input
  ValueId value = ValueId::none;
};

// How the flat inputs and outputs nest in the caller's call, for callers that have a tree (Python): JSON as the
// importer found it; empty means flat.
struct CallTree {
  std::string inputs;
  std::string outputs;
};

class Program {
 public:
  std::vector<NamedDimension> dimensions;
  std::vector<SizeRequirement> requirements;  // what their sizes satisfy in every call
  std::vector<ProgramInput> inputs;
  std::vector<Weight> weights;
  std::vector<Node> nodes;
  std::vector<ProgramOutput> outputs;
  std::vector<StateWrite> writes;
  std::vector<Value> values;  // by ValueId
  CallTree call_tree;
  bool training = false;  // holds nodes that behave as in training (dropout, batch statistics)

  const Value& value(ValueId id) const { return values.at(static_cast<size_t>(id)); }
  Value& value(ValueId id) { return values.at(static_cast<size_t>(id)); }
  // A new value; the name is made unique by a suffix, an empty name becomes the next number.
  ValueId add_value(ValueType type, std::string name = {});
  ValueId add_input(std::string name, ValueType type);
  ValueId add_weight(std::string name, at::Tensor tensor, WeightRole role);
  // Appends a node whose results get fresh values; missing trailing arguments are filled from the schema's defaults.
  Node& add_node(Op op, ArgumentList arguments, std::vector<ValueType> results,
                 std::shared_ptr<const Origin> origin = nullptr);

  const Weight* find_weight(ValueId id) const;  // null when the value is no weight
  const Weight* find_weight(std::string_view name) const;
  std::optional<ValueId> find_value(std::string_view name) const;
  // Gives a value another name, made unique like that of a new one.
  void rename_value(ValueId id, std::string name);

 private:
  std::string make_unique_name(std::string name);

  std::unordered_map<std::string, int> names_;  // name -> index of the value that was given it
  size_t named_ = 0;                            // values before this are in names_
  int64_t next_number_ = 0;
};

// The arguments of `op` with defaults appended. Throws internal when a required argument is missing.
ArgumentList complete_arguments(const Op& op, ArgumentList arguments);

// The schema's default of argument `index`; nothing when it is required.
std::optional<Argument> default_argument(const Op& op, size_t index);

// Calls `visit(ValueId)` for every value that the argument holds, lists included.
template <typename Visit>
void for_each_value(const Argument& argument, Visit&& visit) {
  if (argument.is_value()) visit(argument.value());
  if (argument.is_list()) {
    for (const Argument& item : argument.list()) for_each_value(item, visit);
  }
}

// The argument with `map(ValueId)`, an Argument or ValueId, in place of every value that it holds, lists included.
template <typename Map>
Argument map_values(const Argument& argument, Map&& map) {
  if (argument.is_value()) return map(argument.value());
  if (!argument.is_list()) return argument;
  ArgumentList items;
  items.reserve(argument.list().size());
  for (const Argument& item : argument.list()) items.push_back(map_values(item, map));
  return items;
}

Dtype dtype_of(at::ScalarType type);  // unsupported for quantized and bit types
at::ScalarType scalar_type_of(Dtype dtype);
Layout layout_of(at::Layout layout);
at::Layout torch_layout_of(Layout layout);
MemoryFormat memory_format_of(at::MemoryFormat format);
at::MemoryFormat torch_memory_format_of(MemoryFormat format);

}  // namespace lissome
