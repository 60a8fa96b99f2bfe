// See candidate_table.cpp.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/recurrent/recurrent_candidates.h"

namespace lissome {
namespace {

constexpr std::array kLstm = {Candidate{"lstm", refuse_recurrent, emit_recurrent}};
constexpr std::array kGru = {Candidate{"gru", refuse_recurrent, emit_recurrent}};
constexpr std::array kRecurrentLayer = {Candidate{"recurrent_layer", refuse_recurrent_layer, emit_recurrent_layer}};

constexpr std::array kRecurrentLists = {
    CandidateList{"aten::lstm.input", kLstm},
    CandidateList{"aten::gru.input", kGru},
    CandidateList{"lissome::lstm_layer", kRecurrentLayer},
    CandidateList{"lissome::gru_layer", kRecurrentLayer},
};

}  // namespace

std::span<const CandidateList> recurrent_candidates() { return kRecurrentLists; }

}  // namespace lissome
