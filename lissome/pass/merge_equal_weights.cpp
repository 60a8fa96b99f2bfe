// One copy of weights that are the same bit by bit.
#include <algorithm>
#include <cstring>
#include <map>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

bool same_bytes(const at::Tensor& left, const at::Tensor& right) {
  if (left.is_same(right)) return true;
  const at::Tensor a = left.contiguous().resolve_conj().resolve_neg(),
                   b = right.contiguous().resolve_conj().resolve_neg();
  return a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

bool is_comparable(const Rewriter& rewriter, const Weight& weight) {
  return rewriter.is_constant(weight.value) && weight.tensor.layout() == at::kStrided && weight.tensor.is_cpu();
}

}  // namespace

int merge_equal_weights(Program& program) {
  Rewriter rewriter(program);
  // Candidates share dtype and sizes; only those are compared.
  std::map<std::pair<Dtype, Sizes>, std::vector<const Weight*>> distinct;
  for (const Weight& weight : program.weights) {
    if (!is_comparable(rewriter, weight) || rewriter.use_count(weight.value) == 0) continue;
    auto& group = distinct[{dtype_of(weight.tensor.scalar_type()), weight.tensor.sizes().vec()}];
    const auto same = std::find_if(group.begin(), group.end(),
                                   [&](const Weight* other) { return same_bytes(other->tensor, weight.tensor); });
    if (same == group.end()) {
      group.push_back(&weight);
    } else {
      rewriter.replace_value(weight.value, (*same)->value);
    }
  }
  return rewriter.finish();
}

}  // namespace lissome
