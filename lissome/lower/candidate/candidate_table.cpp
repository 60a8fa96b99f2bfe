// All lists of candidates, and what is found in them by op.
#include <algorithm>
#include <array>

#include "lissome/lower/candidate/candidate_families.h"

namespace lissome {

std::span<const CandidateList> candidate_lists() {
  static const std::vector<CandidateList> lists = [] {
    std::vector<CandidateList> all;
    for (const auto family : {
#define LISSOME_LIST(name) name,
#include "lissome/lower/candidate_lists.inc"
#undef LISSOME_LIST
         }) {
      const std::span<const CandidateList> mine = family();
      all.insert(all.end(), mine.begin(), mine.end());
    }
    return all;
  }();
  return lists;
}

std::span<const Candidate> find_candidates(const Op& op) {
  for (const CandidateList& list : candidate_lists()) {
    if (op.is(list.op)) return list.rows;
  }
  return {};
}

std::vector<std::string> list_kernel_names() {
  std::vector<std::string> names = {std::string(kReferenceKernel), std::string(kOwnKernel)};
  for (const CandidateList& list : candidate_lists()) {
    for (const Candidate& row : list.rows) {
      if (std::find(names.begin(), names.end(), row.name) == names.end()) names.emplace_back(row.name);
    }
  }
  return names;
}

}  // namespace lissome
