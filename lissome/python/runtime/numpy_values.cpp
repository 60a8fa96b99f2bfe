#include "lissome/python/runtime/numpy_values.h"

#include <algorithm>
#include <iterator>

namespace lissome {
namespace {

struct NumpyType {
  Dtype dtype;
  const char* code;  // kind and bytes, as numpy writes them
  bool stands_in;    // numpy has no such type: these are its bytes
};

constexpr NumpyType kTypes[] = {
    {Dtype::u8, "u1", false},         {Dtype::i8, "i1", false},        {Dtype::i16, "i2", false},
    {Dtype::i32, "i4", false},        {Dtype::i64, "i8", false},       {Dtype::f16, "f2", false},
    {Dtype::bf16, "u2", true},        {Dtype::f32, "f4", false},       {Dtype::f64, "f8", false},
    {Dtype::boolean, "b1", false},    {Dtype::c32, "u4", true},        {Dtype::c64, "c8", false},
    {Dtype::c128, "c16", false},      {Dtype::u16, "u2", false},       {Dtype::u32, "u4", false},
    {Dtype::u64, "u8", false},        {Dtype::f8_e4m3fn, "u1", true},  {Dtype::f8_e5m2, "u1", true},
    {Dtype::f8_e4m3fnuz, "u1", true}, {Dtype::f8_e5m2fnuz, "u1", true}};

const NumpyType& find_type(Dtype dtype) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NumpyType& row) { return row.dtype == dtype; });
}

// Made once: a dtype object costs a microsecond.
py::dtype numpy_dtype(Dtype dtype) {
  static std::vector<py::object>& made = *new std::vector<py::object>(std::size(kTypes));  // never given back
  const NumpyType& row = find_type(dtype);
  py::object& place = made[static_cast<size_t>(&row - kTypes)];
  if (!place) place = py::dtype(std::string(row.code));
  return py::reinterpret_borrow<py::dtype>(place);
}

Dtype read_dtype(const py::array& array) {
  const py::dtype dtype = array.dtype();
  const std::string code = dtype.kind() + std::to_string(dtype.itemsize());
  for (const NumpyType& row : kTypes) {
    if (!row.stands_in && row.code == code) return row.dtype;
  }
  throw_error(ErrorKind::invalid_input, "an input holds elements of type ", std::string(py::str(dtype)),
              ", which no model takes");
}

Dtype parse_dtype_name(const std::string& name) {
  const std::optional<Dtype> dtype = parse_dtype(name);
  if (!dtype) throw_error(ErrorKind::invalid_input, "there is no element type ", quote(name));
  return *dtype;
}

template <typename T>
Array make_number(Dtype dtype, T value) {
  Array array = make_array(dtype, {});
  *array.data<T>() = value;
  return array;
}

// Empty where the value is no number of Python's.
std::optional<Array> read_number(const py::handle& value) {
  if (PyBool_Check(value.ptr()) != 0) return make_number(Dtype::boolean, value.cast<bool>());
  if (PyFloat_Check(value.ptr()) != 0) return make_number(Dtype::f64, value.cast<double>());
  if (PyLong_Check(value.ptr()) == 0) return std::nullopt;
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0) throw_error(ErrorKind::invalid_input, "an input is an integer of more than 64 bits");
  return make_number(Dtype::i64, number);
}

py::object write_array(const Array& array) {
  auto* const owner = new std::shared_ptr<void>(array.storage);
  const py::capsule base(owner, [](void* pointer) { delete static_cast<std::shared_ptr<void>*>(pointer); });
  py::array made(numpy_dtype(array.dtype), array.sizes, {}, array.storage.get(), base);
  if (!find_type(array.dtype).stands_in) return made;
  return py::make_tuple(made, std::string(dtype_name(array.dtype)));
}

py::object write_output(const Plan& plan, size_t i, const Array& array) {
  if (!array.storage) return py::none();
  const PlanOutput& output = plan.outputs[i];
  if (is_value(output.value)) {
    // A value without a known type is a tensor: the plan knows the type of every number.
    const PlanKind kind = plan.value(output.value).kind;
    if (kind == PlanKind::tensor || kind == PlanKind::other) return write_array(array);
  }
  switch (array.dtype) {
    case Dtype::f64: return py::float_(*array.data<double>());
    case Dtype::boolean: return py::bool_(*array.data<bool>());
    default: return py::int_(*array.data<int64_t>());
  }
}

}  // namespace

GivenInputs::GivenInputs(const py::list& values) : numbers_(values.size()) {
  for (size_t i = 0; i < values.size(); ++i) {
    const py::handle value = values[i];
    if (py::isinstance<py::array>(value)) {
      views_.push_back(lend(py::reinterpret_borrow<py::array>(value), std::nullopt));
    } else if (py::isinstance<py::tuple>(value)) {
      const auto [array, name] = value.cast<std::pair<py::array, std::string>>();
      views_.push_back(lend(array, parse_dtype_name(name)));
    } else if (std::optional<Array> number = read_number(value)) {
      numbers_[i] = std::move(*number);
      views_.push_back(numbers_[i].view());
    } else {
      throw py::type_error(std::string("an input is a ") + Py_TYPE(value.ptr())->tp_name);
    }
  }
}

TensorView GivenInputs::lend(const py::array& given, std::optional<Dtype> dtype) {
  constexpr int kLendable = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  if (!dtype) dtype = read_dtype(given);
  py::array array = given;
  const char order = given.dtype().byteorder();
  if ((given.flags() & kLendable) != kLendable || (order != '=' && order != '|')) {
    array = py::module_::import("numpy").attr("require")(given, numpy_dtype(*dtype), "CA");
    ++copied_;
  }
  TensorView view;
  view.dtype = *dtype;
  view.sizes.assign(array.shape(), array.shape() + array.ndim());
  view.strides = contiguous_strides(view.sizes);
  view.data = const_cast<void*>(array.data());  // NOLINT: inputs are only read
  kept_.push_back(std::move(array));
  return view;
}

py::list write_outputs(const Plan& plan, std::vector<Array> arrays) {
  py::list results;
  for (size_t i = 0; i < arrays.size(); ++i) results.append(write_output(plan, i, arrays[i]));
  return results;
}

}  // namespace lissome
