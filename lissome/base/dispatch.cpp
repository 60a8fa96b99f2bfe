// Half-width floats in software, and casts between dtypes.
#include "lissome/base/dispatch.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace lissome {
namespace {

template <typename T>
constexpr bool is_complex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <typename T>
constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// Half-width floats compute as float.
template <typename T>
auto widen(T value) {
  if constexpr (is_half<T>)
    return static_cast<float>(value);
  else
    return value;
}

template <typename To, typename From>
bool fits(From value) {
  if constexpr (std::is_floating_point_v<From>) {
    // The bounds are powers of two (or 0), exact in every float type; NaN fits nowhere.
    const From above = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    const From truncated = std::trunc(value);
    return truncated < above && truncated >= (std::is_signed_v<To> ? -above : From{0});
  } else if constexpr (std::is_same_v<From, bool>) {
    return true;
  } else {
    return std::in_range<To>(value);
  }
}

template <typename To, typename From>
To cast_value(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (is_half<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<To>) {
    if (!fits<To>(value)) throw_error(ErrorKind::invalid_input, "the value ", +value, " does not fit.");
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

Float16::operator float() const {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = bits >> 10 & 31u, fraction = bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  // Zero and denormals: fraction * 2^-24 is exact.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

Float16::Float16(float value) {
  const auto raw = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(raw >> 16 & 0x8000u);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) {
    bits = static_cast<uint16_t>(sign | 0x7E00u | (raw >> 13 & 0x1FFu));
  } else if (magnitude >= 65520.0f) {  // halfway between the largest number and the next power of two
    bits = static_cast<uint16_t>(sign | 0x7C00u);
  } else if (magnitude < 0x1p-14f) {  // denormal: adding 0.5 leaves the rounded fraction in the low bits
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(magnitude + 0.5f) - std::bit_cast<uint32_t>(0.5f)));
  } else {
    const uint32_t rounded = (raw & 0x7FFFFFFFu) + 0xFFFu + (raw >> 13 & 1u);
    bits = static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
  }
}

Array cast_array(const TensorView& view, Dtype dtype) {
  Array source = copy_array(view);
  if (view.dtype == dtype) return source;
  Array result = make_array(dtype, view.sizes);
  const int64_t count = source.elements();
  dispatch(view.dtype, [&]<typename From>() {
    dispatch(dtype, [&]<typename To>() {
      if constexpr (is_complex<From> || is_complex<To>) {
        throw_error(ErrorKind::unsupported, "no cast from ", dtype_name(view.dtype), " to ", dtype_name(dtype), ".");
      } else {
        const From* from = source.data<From>();
        To* to = result.data<To>();
        for (int64_t i = 0; i < count; ++i) to[i] = cast_value<To>(widen(from[i]));
      }
    });
  });
  return result;
}

}  // namespace lissome
