#include "lissome/base/tensor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "lissome/base/dispatch.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

constexpr Dtype kAll[] = {Dtype::u8,   Dtype::i8,  Dtype::i16, Dtype::i32,     Dtype::i64, Dtype::f16,
                          Dtype::bf16, Dtype::f32, Dtype::f64, Dtype::boolean, Dtype::c32, Dtype::c64,
                          Dtype::c128, Dtype::u16, Dtype::u32, Dtype::u64};

template <typename T>
Array make_values(Dtype dtype, const std::vector<T>& values) {
  Array array = make_array(dtype, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.data<T>());
  return array;
}

}  // namespace

TEST_CASE("every dtype has a name that leads back to it") {
  for (Dtype dtype : kAll) {
    CHECK(parse_dtype(dtype_name(dtype)) == dtype);
    CHECK(item_size(dtype) > 0);
    CHECK_FALSE((is_floating(dtype) && is_integral(dtype)));
    if (dtype != Dtype::c32)
      dispatch(dtype, [&]<typename T>() { CHECK(static_cast<int64_t>(sizeof(T)) == item_size(dtype)); });
  }
  CHECK_FALSE(parse_dtype("float").has_value());
  CHECK(is_floating(Dtype::bf16));
  CHECK_FALSE(is_integral(Dtype::boolean));
}

TEST_CASE("elements are counted with care") {
  CHECK(count_elements(Sizes{}) == 1);
  CHECK(count_elements(Sizes{2, 3}) == 6);
  CHECK(count_elements(Sizes{2, 0, 3}) == 0);
  EXPECT_ERROR(invalid_input, count_elements(Sizes{2, -1}), "[2, -1]", "negative");
  EXPECT_ERROR(invalid_input, count_elements(Sizes{int64_t{1} << 40, int64_t{1} << 40}), "overflow");
  EXPECT_ERROR(invalid_input, count_elements(Sizes{int64_t{1} << 40, 0, int64_t{1} << 40}), "overflow");
  EXPECT_ERROR(invalid_input, make_array(Dtype::f64, {INT64_MAX / 4}), "overflows");
  EXPECT_ERROR(over_budget, make_array(Dtype::f64, {int64_t{1} << 57}), "no memory");
}

TEST_CASE("arrays are zeroed and aligned") {
  for (int64_t size : {0, 1, 7, 100'000}) {
    const Array array = make_array(Dtype::f32, {size});
    CHECK(reinterpret_cast<uintptr_t>(array.storage.get()) % 64 == 0);
    CHECK(array.bytes() == size * 4);
    for (int64_t i = 0; i < size; ++i) REQUIRE(array.data<float>()[i] == 0);
  }
}

TEST_CASE("strided views are copied row by row") {
  const Array source = make_values<int32_t>(Dtype::i32, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto copy = [&](Sizes sizes, Sizes strides) {
    const Array array = copy_array({Dtype::i32, sizes, strides, source.storage.get()});
    return std::vector<int32_t>(array.data<int32_t>(), array.data<int32_t>() + array.elements());
  };
  CHECK(copy({2, 3}, {3, 1}) == std::vector<int32_t>{0, 1, 2, 3, 4, 5});
  CHECK(copy({3, 2}, {1, 3}) == std::vector<int32_t>{0, 3, 1, 4, 2, 5});
  CHECK(copy({2, 2}, {6, 2}) == std::vector<int32_t>{0, 2, 6, 8});
  CHECK(copy({2, 3}, {0, 1}) == std::vector<int32_t>{0, 1, 2, 0, 1, 2});
  CHECK(copy({2, 2, 2}, {1, 4, 2}) == std::vector<int32_t>{0, 2, 4, 6, 1, 3, 5, 7});
  CHECK(copy({}, {}) == std::vector<int32_t>{0});
  CHECK(copy({0, 3}, {3, 1}).empty());
  CHECK(TensorView{Dtype::i32, {1, 3}, {77, 1}, nullptr}.is_contiguous());
  CHECK_FALSE(TensorView{Dtype::i32, {2, 3}, {1, 2}, nullptr}.is_contiguous());
}

TEST_CASE("half-width floats: every value survives, and values between round to even") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    Float16 half;
    half.bits = static_cast<uint16_t>(bits);
    BFloat16 brain;
    brain.bits = half.bits;
    const float wide = half, wide_brain = brain;
    if (!std::isnan(wide))
      REQUIRE(Float16(wide).bits == bits);
    else
      REQUIRE(std::isnan(static_cast<float>(Float16(wide))));
    if (!std::isnan(wide_brain))
      REQUIRE(BFloat16(wide_brain).bits == bits);
    else
      REQUIRE(std::isnan(static_cast<float>(BFloat16(wide_brain))));
    // Against the compiler's own half-width floats.
    if (!std::isnan(wide)) REQUIRE(static_cast<float>(static_cast<_Float16>(wide)) == wide);
  }
  for (float value : {0.1f, 1.0f / 3, 65519.99f, 65520.0f, 6.0e-8f, 2.9e-8f, 2.98023223876953125e-8f, 1e-10f, 0.000061f,
                      1e38f, -0.0f})
    CHECK(static_cast<float>(Float16(value)) == static_cast<float>(static_cast<_Float16>(value)));
  CHECK(BFloat16(1.00390625f).bits == 0x3F80);  // halfway, to even
  CHECK(BFloat16(1.01171875f).bits == 0x3F82);
  CHECK(std::isinf(static_cast<float>(BFloat16(std::numeric_limits<float>::max()))));
}

TEST_CASE("casts keep values or refuse") {
  const Array whole = make_values<int64_t>(Dtype::i64, {-1, 0, 255, 300});
  CHECK(cast_array(whole.view(), Dtype::f32).data<float>()[3] == 300);
  CHECK(cast_array(whole.view(), Dtype::boolean).data<bool>()[1] == false);
  CHECK(cast_array(whole.view(), Dtype::i16).data<int16_t>()[0] == -1);
  EXPECT_ERROR(invalid_input, cast_array(whole.view(), Dtype::u8), "-1", "does not fit");
  const Array real = make_values<double>(Dtype::f64, {-1.9, 2.9, 0.1});
  CHECK(cast_array(real.view(), Dtype::i32).data<int32_t>()[0] == -1);
  CHECK(static_cast<float>(cast_array(real.view(), Dtype::bf16).data<BFloat16>()[2]) ==
        doctest::Approx(0.1).epsilon(0.01));
  for (double wrong : {std::nan(""), 1e300, -1e300, 9223372036854775808.0})
    EXPECT_ERROR(invalid_input, cast_array(make_values<double>(Dtype::f64, {wrong}).view(), Dtype::i64),
                 "does not fit");
  CHECK(cast_array(make_values<double>(Dtype::f64, {-9223372036854775808.0}).view(), Dtype::i64).data<int64_t>()[0] ==
        INT64_MIN);
  EXPECT_ERROR(invalid_input, cast_array(make_values<double>(Dtype::f64, {-1.0}).view(), Dtype::u8), "does not fit");
  CHECK(cast_array(make_values<double>(Dtype::f64, {-0.5}).view(), Dtype::u8).data<uint8_t>()[0] == 0);
  EXPECT_ERROR(unsupported, cast_array(make_array(Dtype::c64, {1}).view(), Dtype::f32), "c64");
}

TEST_CASE("strides are row-major, and refused where they overflow") {
  CHECK((contiguous_strides(Sizes{2, 3, 4}) == Sizes{12, 4, 1}));
  CHECK((contiguous_strides(Sizes{2, 0, 4}) == Sizes{4, 4, 1}));
  CHECK((contiguous_strides(Sizes{INT64_MAX, INT64_MAX}) == Sizes{INT64_MAX, 1}));  // the first size is no stride
  EXPECT_ERROR(invalid_input, contiguous_strides(Sizes{1, INT64_MAX, 2}), "overflow");
}
