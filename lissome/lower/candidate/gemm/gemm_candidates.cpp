// See candidate_table.cpp.
#include <array>

#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/candidate_libtorch.h"
#include "lissome/lower/candidate/gemm/gemm_candidates.h"

namespace lissome {
namespace {

constexpr std::array kLinear = {
    Candidate{"linear_f32", refuse_linear_f32, emit_linear_f32},
    Candidate{"matmul_f32", refuse_linear_matmul, emit_linear_matmul},
    Candidate{"linear_bf16", refuse_linear_bf16, emit_linear_bf16},
    Candidate{"matmul_bf16", refuse_linear_matmul_bf16, emit_linear_matmul},
    make_libtorch_row("mkldnn_linear", refuse_mkldnn_linear, emit_mkldnn_linear),
};
constexpr std::array kLinearCasts = {Candidate{"matmul_bf16", refuse_linear_casts, emit_linear_matmul}};
constexpr std::array kLinearInt8 = {
    Candidate{"linear_u8s8", refuse_linear_u8s8, emit_linear_u8s8},
    make_libtorch_row("onednn_linear_int8", refuse_onednn_linear_int8, emit_onednn_linear_int8),
};
constexpr std::array kLinearDynamic = {
    Candidate{"linear_dynamic_u8s8", refuse_linear_dynamic, emit_linear_dynamic},
};
constexpr std::array kLinearGroup = {Candidate{"linear_group", refuse_linear_group, emit_linear_group}};
constexpr std::array kEmbeddingGroup = {Candidate{"gather_groups", refuse_embedding_group, emit_embedding_group}};
constexpr std::array kMatmul = {
    Candidate{"matmul_f32", refuse_matmul, emit_matmul},
    Candidate{"matmul_bf16", refuse_matmul_bf16, emit_matmul},
};
constexpr std::array kAddProducts = {Candidate{"matmul_f32", refuse_add_products, emit_add_products}};

constexpr std::array kGemmLists = {
    CandidateList{"aten::linear", kLinear},
    CandidateList{"lissome::linear_act", kLinear},
    CandidateList{"lissome::linear_bf16", kLinearCasts},
    CandidateList{"lissome::linear_int8", kLinearInt8},
    CandidateList{"lissome::linear_int8_u8", kLinearInt8},
    CandidateList{"lissome::linear_dynamic_int8", kLinearDynamic},
    CandidateList{"lissome::linear_group", kLinearGroup},
    CandidateList{"lissome::embedding_group", kEmbeddingGroup},
    CandidateList{"aten::matmul", kMatmul},
    CandidateList{"aten::mm", kMatmul},
    CandidateList{"aten::bmm", kMatmul},
    CandidateList{"lissome::add_products", kAddProducts},
};

}  // namespace

std::span<const CandidateList> gemm_candidates() { return kGemmLists; }

}  // namespace lissome
