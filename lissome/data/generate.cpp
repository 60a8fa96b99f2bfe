// generate_inputs: something sound to run a model on when the user has no data at hand.
#include <complex>
#include <type_traits>
#include <utility>

#include "lissome/data.h"
#include "lissome/data/random.h"

namespace lissome {
namespace {

template <typename T>
T draw_integer(Random& random, const DataSignature& input) {
  if (!input.range && sizeof(T) == 1) return static_cast<T>(random.next());
  const auto [least, most] = input.range.value_or(std::pair<int64_t, int64_t>(0, 1));
  const uint64_t width = static_cast<uint64_t>(most) - static_cast<uint64_t>(least) + 1;
  return static_cast<T>(static_cast<uint64_t>(least) + random.next_below(width));
}

template <typename T>
T draw_value(Random& random, const DataSignature& input) {
  if constexpr (std::is_same_v<T, bool>) {
    return (random.next() >> 63) != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return draw_integer<T>(random, input);
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    using Part = typename T::value_type;
    const auto real = static_cast<Part>(random.next_normal());
    return {real, static_cast<Part>(random.next_normal())};
  } else {
    return static_cast<T>(static_cast<float>(random.next_normal()));
  }
}

template <typename T>
void check_range(const DataSignature& input) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (!input.range) return;
    const auto [least, most] = *input.range;
    LISSOME_CHECK(least <= most && std::in_range<T>(least) && std::in_range<T>(most), "range ", least, " to ", most,
                  " of ", quote(input.name));
  }
}

}  // namespace

std::vector<NamedArray> generate_inputs(std::span<const DataSignature> inputs, std::span<const Sizes> sizes,
                                        uint64_t seed) {
  LISSOME_CHECK(sizes.size() == inputs.size(), sizes.size(), " sizes for ", inputs.size(), " inputs");
  Random random(seed);
  std::vector<NamedArray> arrays;
  for (const DataSignature& input : inputs) {
    Array array = make_array(input.dtype, sizes[arrays.size()]);
    const int64_t count = array.elements();
    dispatch(input.dtype, [&]<typename T>() {
      check_range<T>(input);
      T* data = array.data<T>();
      for (int64_t i = 0; i < count; ++i) data[i] = draw_value<T>(random, input);
    });
    arrays.push_back({input.name, std::move(array)});
  }
  return arrays;
}

}  // namespace lissome
