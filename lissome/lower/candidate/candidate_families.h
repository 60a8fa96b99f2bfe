// The lists of candidates: for each op its rows in the order in which they are tried, native kernels first, then what
// libtorch reaches.
#pragma once

#include "lissome/lower/candidate/candidate.h"

namespace lissome {

constexpr Candidate make_libtorch_row(std::string_view name, decltype(Candidate::refuse) refuse,
                                      decltype(Candidate::emit) emit) {
  return {.name = name, .refuse = refuse, .emit = emit, .libtorch = true};
}

constexpr Candidate make_joining_row(std::string_view name, std::string_view apart, decltype(Candidate::refuse) refuse,
                                     decltype(Candidate::emit) emit, bool guesses) {
  return {.name = name, .refuse = refuse, .emit = emit, .apart = apart, .guesses = guesses};
}

// One function a file *_candidates.cpp: `pool_candidates()` stands in pool_candidates.cpp.
#define LISSOME_LIST(name) std::span<const CandidateList> name();
#include "lissome/lower/candidate_lists.inc"
#undef LISSOME_LIST

}  // namespace lissome
