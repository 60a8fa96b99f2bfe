// Tensors of this thread are counted while somebody listens.
#include "lissome/train/budget/facts/thread_allocations.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

using namespace lissome;

TEST_CASE("live and most bytes of tensors are counted, from where the counting begins") {
  constexpr int64_t kBytes = 4096 * 4;
  const at::Tensor before = at::ones({4096});
  ThreadAllocations allocations;
  CHECK(allocations.counter().live() == 0);
  const at::Tensor kept = at::ones({4096});
  CHECK(allocations.counter().live() >= kBytes);
  {
    const at::Tensor temporary = at::ones({4096});
  }
  CHECK(allocations.counter().live() < 2 * kBytes);
  CHECK(allocations.counter().peak() >= 2 * kBytes);
}
