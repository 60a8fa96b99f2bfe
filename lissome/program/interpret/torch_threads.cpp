#include <ATen/Parallel.h>

#include "lissome/program.h"

namespace lissome {

TorchThreads::TorchThreads(int threads) : before_(at::get_num_threads()) {
  if (threads > 0 && threads != before_) at::set_num_threads(threads);
}

TorchThreads::~TorchThreads() {
  if (at::get_num_threads() != before_) at::set_num_threads(before_);
}

}  // namespace lissome
