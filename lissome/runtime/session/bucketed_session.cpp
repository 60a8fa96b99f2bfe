#include "lissome/runtime/session/bucketed_session.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "lissome/base.h"

namespace lissome {
namespace {

// By its own name, or as "ids.1": dimension 1 of input ids.
int find_dimension(const Plan& plan, const std::string& name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < plan.dimensions.size(); ++i) {
    if (plan.dimensions[i].name == name) return static_cast<int>(i);
    names.push_back(plan.dimensions[i].name);
  }
  for (const PlanInput& input : plan.inputs) {
    const std::vector<SizeExpression>& sizes = plan.value(input.value).sizes;
    for (size_t k = 0; k < sizes.size(); ++k) {
      const int dimension = sizes[k].single_dimension();
      const bool plain = dimension >= 0 && sizes[k].text() == names[static_cast<size_t>(dimension)];
      if (plain && name == input.name + "." + std::to_string(k)) return dimension;
    }
  }
  throw_error(ErrorKind::usage, "buckets: the model has no dimension ", quote(name), "; it has ",
              names.empty() ? "none that vary" : join(names, ", ") + ", and INPUT.1 is dimension 1 of an input");
}

bool depends_on(const SizeExpression& size, size_t dimension, size_t dimensions) {
  DimensionValues others(dimensions, 2);
  others[dimension] = -1;
  return !size.evaluate(others);
}

// Which sizes of the value are the dimension itself; unsupported where one is computed from it.
std::vector<bool> find_axes(const Plan& plan, PlanValueId value, int dimension, const std::string& what) {
  if (!is_value(value)) return {};
  const PlanValue& planned = plan.value(value);
  const std::string& name = plan.dimensions[static_cast<size_t>(dimension)].name;
  if (!planned.sized) throw_error(ErrorKind::unsupported, "buckets: the sizes of ", what, " are not known beforehand");
  std::vector<bool> axes;
  for (const SizeExpression& size : planned.sizes) {
    axes.push_back(size.text() == name);
    if (!axes.back() && depends_on(size, static_cast<size_t>(dimension), plan.dimensions.size()))
      throw_error(ErrorKind::unsupported, "buckets: ", what, " has a size ", size.text(), ", computed from ",
                  quote(name));
  }
  return axes;
}

bool has_axis(const std::vector<bool>& axes) { return std::find(axes.begin(), axes.end(), true) != axes.end(); }

template <typename T>
void fill_all(Array& array, double value) {
  std::fill_n(array.data<T>(), array.elements(), static_cast<T>(value));
}

// bfloat16 is the upper half of a float.
void fill_bf16(Array& array, double value) {
  const auto number = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  std::fill_n(array.data<uint16_t>(), array.elements(), static_cast<uint16_t>(bits >> 16));
}

void fill(Array& array, double value, const std::string& name) {
  const bool whole = value == std::floor(value) && std::abs(value) < 9e15;
  if (!is_floating(array.dtype) && !whole)
    throw_error(ErrorKind::usage, "buckets: input ", quote(name), " is ", dtype_name(array.dtype), ", its pad is ",
                value);
  switch (array.dtype) {
    case Dtype::f32: return fill_all<float>(array, value);
    case Dtype::f64: return fill_all<double>(array, value);
    case Dtype::bf16: return fill_bf16(array, value);
    case Dtype::i64: return fill_all<int64_t>(array, value);
    case Dtype::i32: return fill_all<int32_t>(array, value);
    case Dtype::i16: return fill_all<int16_t>(array, value);
    case Dtype::i8: return fill_all<int8_t>(array, value);
    case Dtype::u8: return fill_all<uint8_t>(array, value);
    case Dtype::boolean: return fill_all<bool>(array, value != 0);
    default: throw_error(ErrorKind::unsupported, "buckets: input ", quote(name), " is ", dtype_name(array.dtype));
  }
}

// A dense part into the first places of something larger.
const std::byte* copy_part(std::span<const int64_t> part, std::span<const int64_t> strides, int64_t item,
                           const std::byte* from, std::byte* to) {
  if (part.size() <= 1) {
    const int64_t bytes = part.empty() ? item : part[0] * item;
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return from + bytes;
  }
  for (int64_t i = 0; i < part[0]; ++i)
    from = copy_part(part.subspan(1), strides.subspan(1), item, from, to + i * strides[0] * item);
  return from;
}

double read_number(const Array& array, int64_t i) {
  switch (array.dtype) {
    case Dtype::f32: return array.data<float>()[i];
    case Dtype::f64: return array.data<double>()[i];
    case Dtype::bf16: {
      const uint32_t bits = uint32_t{array.data<uint16_t>()[i]} << 16;
      float number = 0;
      std::memcpy(&number, &bits, sizeof number);
      return number;
    }
    default: return 0;
  }
}

}  // namespace

double find_difference(const Array& wanted, const Array& seen) {
  if (wanted.sizes != seen.sizes || wanted.dtype != seen.dtype) return HUGE_VAL;
  if (!wanted.storage || wanted.bytes() == 0 ||
      std::memcmp(wanted.storage.get(), seen.storage.get(), static_cast<size_t>(wanted.bytes())) == 0) {
    return 0;
  }
  if (wanted.dtype != Dtype::f32 && wanted.dtype != Dtype::f64 && wanted.dtype != Dtype::bf16) return HUGE_VAL;
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    const double left = read_number(wanted, i), right = read_number(seen, i);
    if (left == right || (std::isnan(left) && std::isnan(right))) continue;
    if (!std::isfinite(left) || !std::isfinite(right)) return HUGE_VAL;
    difference = std::max(difference, std::abs(left - right));
  }
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    const double number = std::abs(read_number(wanted, i));
    if (std::isfinite(number)) largest = std::max(largest, number);
  }
  return largest > 0 ? difference / largest : difference > 0 ? HUGE_VAL : 0;
}

BucketedSession::BucketedSession(Session session, BucketOptions options, std::span<const TensorView> sample)
    : session_(std::move(session)), options_(std::move(options)) {
  check_options();
  check_sample(sample);
}

void BucketedSession::check_options() {
  const Plan& plan = session_.plan();
  const int dimension = find_dimension(plan, options_.dimension);
  const PlanDimension& named = plan.dimensions[static_cast<size_t>(dimension)];
  options_.dimension = named.name;
  std::sort(options_.sizes.begin(), options_.sizes.end());
  if (options_.sizes.empty()) throw_error(ErrorKind::usage, "buckets: no size of ", quote(named.name), " is given");
  for (const int64_t size : options_.sizes) {
    if (size < named.minimum || size > named.maximum)
      throw_error(ErrorKind::usage, "buckets: ", named.name, " is ", named.minimum, " to ", named.maximum, ", not ",
                  size);
  }
  if (!plan.writes.empty())
    throw_error(ErrorKind::unsupported, "buckets: the model keeps state, which would remember what is padded");
  std::map<std::string, double> pads = options_.pads;
  for (const PlanInput& input : plan.inputs) {
    input_axes_.push_back(find_axes(plan, input.value, dimension, "input " + quote(input.name)));
    const auto pad = pads.find(input.name);
    if (has_axis(input_axes_.back()) && pad == pads.end()) {
      throw_error(ErrorKind::usage, "buckets: what pads input ", quote(input.name),
                  " is not given; it has the dimension ", quote(named.name));
    }
    pads_.push_back(pad == pads.end() ? 0 : pad->second);
    if (has_axis(input_axes_.back())) pads.erase(pad);
  }
  if (!pads.empty())
    throw_error(ErrorKind::usage, "buckets: no input ", quote(pads.begin()->first), " has the dimension ",
                quote(named.name));
  for (const PlanOutput& output : plan.outputs)
    output_axes_.push_back(find_axes(plan, output.value, dimension, "output " + quote(output.name)));
}

void BucketedSession::check_sample(std::span<const TensorView> sample) {
  const std::vector<Array> wanted = session_.run(sample);
  const int64_t size = find_size(sample);
  if (size >= options_.sizes.back()) {
    throw_error(ErrorKind::usage, "buckets: the sample has ", options_.dimension, " ", size,
                ", so it proves nothing of padding up to ", options_.sizes.back(), ": give a smaller one");
  }
  for (const int64_t bucket : options_.sizes) {
    if (bucket <= size) continue;
    const std::vector<Array> seen = run_in(bucket, size, sample);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double difference = find_difference(wanted[i], seen[i]);
      seen_difference_ = std::max(seen_difference_, difference);
      if (difference <= options_.most_difference) continue;
      throw_error(ErrorKind::unsupported, "buckets: padding ", options_.dimension, " from ", size, " to ", bucket,
                  " changes output ", quote(session_.plan().outputs[i].name), " by ", difference,
                  " of its largest element, at most ", options_.most_difference,
                  " is allowed: the model takes notice of what is padded");
    }
  }
}

int64_t BucketedSession::find_size(std::span<const TensorView> inputs) const {
  for (size_t i = 0; i < inputs.size() && i < input_axes_.size(); ++i) {
    for (size_t k = 0; k < input_axes_[i].size() && k < inputs[i].sizes.size(); ++k) {
      if (input_axes_[i][k]) return inputs[i].sizes[k];
    }
  }
  return 0;
}

std::vector<Array> BucketedSession::run_in(int64_t bucket, int64_t size, std::span<const TensorView> inputs) {
  std::vector<Array> padded(inputs.size());
  std::vector<TensorView> views(inputs.begin(), inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!has_axis(input_axes_[i])) continue;
    Sizes sizes = inputs[i].sizes;
    for (size_t k = 0; k < sizes.size(); ++k) sizes[k] = input_axes_[i][k] ? bucket : sizes[k];
    padded[i] = make_array(inputs[i].dtype, sizes);
    fill(padded[i], pads_[i], session_.plan().inputs[i].name);
    copy_part(inputs[i].sizes, contiguous_strides(sizes), item_size(inputs[i].dtype),
              static_cast<const std::byte*>(inputs[i].data), padded[i].data<std::byte>());
    views[i] = padded[i].view();
  }
  std::vector<Array> outputs = session_.run(views);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!has_axis(output_axes_[i])) continue;
    TensorView part = outputs[i].view();
    for (size_t k = 0; k < part.sizes.size(); ++k) part.sizes[k] = output_axes_[i][k] ? size : part.sizes[k];
    outputs[i] = copy_array(part);
  }
  return outputs;
}

std::vector<Array> BucketedSession::run(std::span<const TensorView> inputs) {
  const int64_t size = find_size(inputs);
  const auto bucket = std::lower_bound(options_.sizes.begin(), options_.sizes.end(), size);
  // What does not fit the plan is refused by the session, in the caller's own sizes.
  const bool fits = inputs.size() == input_axes_.size() && [&] {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].sizes.size() != input_axes_[i].size() || !inputs[i].is_contiguous()) return false;
      for (size_t k = 0; k < input_axes_[i].size(); ++k) {
        if (input_axes_[i][k] && inputs[i].sizes[k] != size) return false;
      }
    }
    return true;
  }();
  if (!fits || bucket == options_.sizes.end() || *bucket == size) return session_.run(inputs);
  return run_in(*bucket, size, inputs);
}

}  // namespace lissome
