#include "lissome/kernel/interpolate.h"

#include "lissome/kernel/row_check.h"

using namespace lissome;

TEST_CASE("interpolate agrees with the portable form") {
  TestNumbers numbers(41);
  for (int i = 0; i < 80; ++i) {
    InterpolateCall call;
    call.batch = numbers.between(1, 2), call.channels = numbers.between(1, 70);
    call.height = numbers.between(1, 9), call.width = numbers.between(1, 9);
    call.out_height = numbers.between(1, 20), call.out_width = numbers.between(1, 20);
    call.scale_height = static_cast<float>(call.height) / static_cast<float>(call.out_height);
    call.scale_width = static_cast<float>(call.width) / static_cast<float>(call.out_width);
    call.bilinear = i % 2 == 0, call.aligned_corners = i % 4 == 0;
    const auto x = numbers.reals(call.batch * call.height * call.width * call.channels);
    call.x = x.data();
    check_rows("interpolate", call, call.batch * call.out_height * call.out_width * call.channels, 1e-6f,
               [](InterpolateCall& filled, float* y) { filled.y = y; });
  }
}
