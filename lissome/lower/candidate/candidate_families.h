// The lists of candidates, one a family: for each op its rows in the order in which they are tried, native kernels
// first, then what libtorch reaches.
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

std::span<const CandidateList> attention_candidates();
std::span<const CandidateList> conv_candidates();
std::span<const CandidateList> elementwise_candidates();
std::span<const CandidateList> gemm_candidates();
std::span<const CandidateList> interpolate_candidates();
std::span<const CandidateList> loss_candidates();
std::span<const CandidateList> move_candidates();
std::span<const CandidateList> norm_candidates();
std::span<const CandidateList> pool_candidates();
std::span<const CandidateList> recurrent_candidates();

}  // namespace lissome
