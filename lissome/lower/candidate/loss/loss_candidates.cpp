// See candidate_table.cpp.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/loss/loss_candidates.h"

namespace lissome {
namespace {

constexpr std::array kNllLoss = {Candidate{"nll_loss", refuse_nll_loss, emit_nll_loss}};

constexpr std::array kLossLists = {
    CandidateList{"aten::nll_loss_forward", kNllLoss},
    CandidateList{"aten::nll_loss2d_forward", kNllLoss},
};

}  // namespace

std::span<const CandidateList> loss_candidates() { return kLossLists; }

}  // namespace lissome
