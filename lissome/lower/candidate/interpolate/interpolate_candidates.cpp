// See candidate_table.cpp.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/interpolate/interpolate_candidates.h"

namespace lissome {
namespace {

constexpr std::array kInterpolate = {
    Candidate{"interpolate", refuse_interpolate, emit_interpolate},
    Candidate{"interpolate_bf16", refuse_interpolate_bf16, emit_interpolate},
};

constexpr std::array kInterpolateLists = {
    CandidateList{"aten::upsample_nearest2d.vec", kInterpolate},
    CandidateList{"aten::upsample_nearest2d", kInterpolate},
    CandidateList{"aten::upsample_bilinear2d.vec", kInterpolate},
    CandidateList{"aten::upsample_bilinear2d", kInterpolate},
};

}  // namespace

std::span<const CandidateList> interpolate_candidates() { return kInterpolateLists; }

}  // namespace lissome
