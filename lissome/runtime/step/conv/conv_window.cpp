#include "lissome/runtime/step/conv/conv_window.h"

namespace lissome {

void require_gradient_window(const StepBinder& binder, const Window& window) {
  binder.require(window.out_height > 0 && window.out_width > 0, "there are no pixels");
  require_few_phases(binder, window);
}

Sizes list_weight_sizes(int64_t first, int64_t second, const Window& window, size_t rank) {
  Sizes sizes = {first, second, window.kernel_height, window.kernel_width};
  if (rank == 3) sizes.erase(sizes.begin() + 2);
  return sizes;
}

void read_packed_window(const StepBinder& binder, const WindowFields& fields, const PlacedValue& weight,
                        Window& window) {
  const size_t rank = weight.sizes.size();
  binder.require(rank == 3 || rank == 4, "the weight must have 3 or 4 dimensions");
  binder.require(weight.elements() > 0, "the weight is empty");
  binder.require(weight.sizes[0] % fields.groups == 0, "channels do not divide into groups");
  binder.require_product({fields.groups, weight.sizes[1]});
  read_window_numbers(binder, fields, rank - 2, window);
  require_few_phases(binder, window);
  binder.require_sizes(weight, list_weight_sizes(weight.sizes[0], weight.sizes[1], window, rank));
}

}  // namespace lissome
