#include <ATen/ops/equal.h>

#include <map>
#include <tuple>

#include <algorithm>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {

int merge_equal_weights(Program& program) {
  Rewriter rewriter(program);
  // Candidates share dtype and sizes; only those are compared byte by byte.
  std::map<std::pair<Dtype, Sizes>, std::vector<size_t>> groups;
  for (size_t i = 0; i < program.weights.size(); ++i) {
    const at::Tensor& tensor = program.weights[i].tensor;
    if (!is_constant(program, program.weights[i].value) || tensor.layout() != at::kStrided) continue;
    groups[{dtype_of(tensor.scalar_type()), tensor.sizes().vec()}].push_back(i);
  }
  for (const auto& [type, members] : groups) {
    std::vector<size_t> distinct;
    for (size_t member : members) {
      const Weight& weight = program.weights[member];
      const auto same = std::find_if(distinct.begin(), distinct.end(), [&](size_t other) {
        return at::equal(program.weights[other].tensor, weight.tensor);
      });
      if (same == distinct.end()) {
        distinct.push_back(member);
      } else if (rewriter.use_count(weight.value) > 0) {
        rewriter.replace_value(weight.value, program.weights[*same].value);
      }
    }
  }
  return rewriter.finish();
}

}  // namespace lissome
