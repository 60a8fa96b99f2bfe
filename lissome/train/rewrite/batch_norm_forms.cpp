// See batch_norm_forms.h.
#include "lissome/train/rewrite/batch_norm_forms.h"

#include <algorithm>
#include <iterator>

namespace lissome {
namespace {

constexpr BatchNormForm kForms[] = {{"aten::_native_batch_norm_legit_functional", 3, 4},
                                    {"aten::_batch_norm_with_update_functional", 4, 5},
                                    {"aten::_native_batch_norm_legit.no_stats"},
                                    {"aten::native_batch_norm"},
                                    {"aten::batch_norm"},
                                    {"aten::cudnn_batch_norm"}};

}  // namespace

const BatchNormForm* find_batch_norm_form(const Node& node) {
  const auto* found = std::ranges::find_if(kForms, [&](const BatchNormForm& form) { return node.is(form.op); });
  return found == std::end(kForms) ? nullptr : found;
}

bool normalizes_by_batch(const Node& node) {
  if (find_batch_norm_form(node) == nullptr) return false;
  return node.op.argument_index("training") < 0 || node.argument("training") == Argument(true);
}

}  // namespace lissome
