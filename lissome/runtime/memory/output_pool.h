// Memory of outputs that nobody holds any more, for the outputs of later runs: touching fresh pages of several MB costs
// more than some models compute. A pool has at most as many blocks as were held at once, and gives up those of other
// sizes as soon as a run makes other outputs.
#pragma once

#include <cstdint>
#include <memory>

namespace lissome {

class OutputPool {
 public:
  OutputPool();
  // So many bytes at an address that is a multiple of 64, not cleared. They return here when the last copy of the
  // pointer goes, on any thread, and to the C library once the pool is gone. Throws over_budget.
  std::shared_ptr<void> take(int64_t bytes);

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};

}  // namespace lissome
