// See candidate_table.cpp.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/move/move_candidates.h"

namespace lissome {
namespace {

constexpr std::array kConcat = {Candidate{"concat", refuse_concat, emit_concat, false}};
constexpr std::array kPiece = {Candidate{"view", refuse_piece, emit_piece, false}};
constexpr std::array kReshape = {Candidate{"view", refuse_reshape, emit_reshape, false}};
constexpr std::array kPermute = {Candidate{"view", refuse_permute, emit_permute, false}};
constexpr std::array kSlice = {Candidate{"view", refuse_slice, emit_slice, false}};
constexpr std::array kExpand = {Candidate{"view", refuse_expand, emit_expand, false}};
constexpr std::array kEmbeddingGradient = {
    Candidate{"embedding_gradient", refuse_embedding_gradient, emit_embedding_gradient},
};
constexpr std::array kGather = {Candidate{"gather", refuse_gather, emit_gather}};
constexpr std::array kFindLargest = {Candidate{"find_largest", refuse_find_largest, emit_find_largest}};
constexpr std::array kShuffle = {Candidate{"copy", refuse_shuffle, emit_shuffle, false}};
constexpr std::array kPad = {Candidate{"pad", refuse_pad, emit_pad}};
constexpr std::array kCumulate = {Candidate{"cumulate", refuse_cumulate, emit_cumulate}};
constexpr std::array kEmbedding = {Candidate{"embedding", refuse_embedding, emit_embedding}};

constexpr std::array kMoveLists = {
    CandidateList{"aten::cat", kConcat},
    CandidateList{"lissome::getitem", kPiece},
    CandidateList{"aten::reshape", kReshape},
    CandidateList{"aten::view", kReshape},
    CandidateList{"aten::_unsafe_view", kReshape},
    CandidateList{"aten::flatten.using_ints", kReshape},
    CandidateList{"aten::unsqueeze", kReshape},
    CandidateList{"aten::squeeze.dim", kReshape},
    CandidateList{"aten::squeeze.dims", kReshape},
    CandidateList{"aten::squeeze", kReshape},
    CandidateList{"aten::view_as", kReshape},
    CandidateList{"aten::reshape_as", kReshape},
    CandidateList{"aten::unflatten.int", kReshape},
    CandidateList{"aten::transpose.int", kPermute},
    CandidateList{"aten::permute", kPermute},
    CandidateList{"aten::slice.Tensor", kSlice},
    CandidateList{"aten::select.int", kSlice},
    CandidateList{"aten::expand", kExpand},
    CandidateList{"aten::expand_as", kExpand},
    CandidateList{"aten::pixel_shuffle", kShuffle},
    CandidateList{"aten::pixel_unshuffle", kShuffle},
    CandidateList{"aten::pad", kPad},
    CandidateList{"aten::constant_pad_nd", kPad},
    CandidateList{"aten::cumsum", kCumulate},
    CandidateList{"aten::embedding", kEmbedding},
    CandidateList{"aten::index.Tensor", kGather},
    CandidateList{"aten::index_select", kGather},
    CandidateList{"aten::gather", kGather},
    CandidateList{"aten::argmax", kFindLargest},
    CandidateList{"aten::embedding_dense_backward", kEmbeddingGradient},
};

}  // namespace

std::span<const CandidateList> move_candidates() { return kMoveLists; }

}  // namespace lissome
