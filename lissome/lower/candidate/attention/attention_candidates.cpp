// See candidate_table.cpp.
#include <array>

#include "lissome/lower/candidate/attention/attention_candidates.h"
#include "lissome/lower/candidate/candidate_families.h"
#include "lissome/lower/candidate/candidate_libtorch.h"

namespace lissome {
namespace {

constexpr std::array kAttention = {
    Candidate{"attention", refuse_attention, emit_attention},
    Candidate{"attention_bf16", refuse_attention_bf16, emit_attention},
    make_libtorch_row("flash", refuse_flash_attention, emit_flash_attention),
    make_libtorch_row("math", refuse_math_attention, emit_math_attention),
};
constexpr std::array kAttentionInt8 = {Candidate{"attention_u8s8", refuse_attention, emit_attention}};
constexpr std::array kAttentionTraining = {
    Candidate{"attention", refuse_attention, emit_attention},
    Candidate{"attention_bf16", refuse_attention_bf16, emit_attention},
};
constexpr std::array kAttentionGradient = {
    Candidate{"attention_gradient", refuse_attention_gradient, emit_attention_gradient},
    Candidate{"attention_gradient_bf16", refuse_attention_gradient_bf16, emit_attention_gradient},
};

constexpr std::array kAttentionLists = {
    CandidateList{"aten::scaled_dot_product_attention", kAttention},
    CandidateList{"lissome::attention_int8", kAttentionInt8},
    CandidateList{"aten::_scaled_dot_product_flash_attention_for_cpu", kAttentionTraining},
    CandidateList{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", kAttentionGradient},
};

}  // namespace

std::span<const CandidateList> attention_candidates() { return kAttentionLists; }

}  // namespace lissome
