// See candidate_table.cpp.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/pool/pool_candidates.h"

namespace lissome {
namespace {

constexpr std::array kMaxPoolPlaces = {
    Candidate{"max_pool_indices", refuse_max_pool_indices, emit_max_pool_indices, false}};
constexpr std::array kMaxPoolGradient = {
    Candidate{"max_pool_gradient", refuse_max_pool_gradient, emit_max_pool_gradient, false},
};
constexpr std::array kAverageInt8 = {Candidate{"average_pool_u8", refuse_average_u8, emit_average_u8}};
constexpr std::array kPool = {Candidate{"pool", refuse_pool, emit_pool}};

constexpr std::array kPoolLists = {
    CandidateList{"aten::max_pool2d_with_indices", kMaxPoolPlaces},
    CandidateList{"aten::max_pool2d_with_indices_backward", kMaxPoolGradient},
    CandidateList{"aten::max_pool1d", kPool},
    CandidateList{"aten::max_pool2d", kPool},
    CandidateList{"lissome::max_pool2d_u8", kPool},
    CandidateList{"lissome::avg_pool2d_u8", kAverageInt8},
    CandidateList{"aten::avg_pool1d", kPool},
    CandidateList{"aten::avg_pool2d", kPool},
};

}  // namespace

std::span<const CandidateList> pool_candidates() { return kPoolLists; }

}  // namespace lissome
