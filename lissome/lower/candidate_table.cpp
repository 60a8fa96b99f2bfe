// The ordered lists: native kernels first, then what libtorch reaches. A kernel's row here is its only mention in
// lowering.
#include <algorithm>
#include <array>

#include "lissome/lower/candidate_rows.h"

namespace lissome {
namespace {

constexpr std::array kLinear = {
    Candidate{"linear_f32", refuse_linear_f32, emit_linear_f32},
    Candidate{"mkldnn_linear", refuse_mkldnn_linear, emit_mkldnn_linear},
};
constexpr std::array kConv = {
    Candidate{"conv_f32", refuse_conv_f32, emit_conv_f32},
    Candidate{"mkldnn_conv", refuse_mkldnn_conv, emit_mkldnn_conv},
};
constexpr std::array kLinearInt8 = {
    Candidate{"linear_u8s8", refuse_linear_u8s8, emit_linear_u8s8},
    Candidate{"onednn_linear_int8", refuse_onednn_linear_int8, emit_onednn_linear_int8},
};
constexpr std::array kConvInt8 = {
    Candidate{"conv_u8s8", refuse_conv_u8s8, emit_conv_u8s8},
    Candidate{"onednn_conv_int8", refuse_onednn_conv_int8, emit_onednn_conv_int8},
};
constexpr std::array kLinearDynamic = {
    Candidate{"linear_dynamic_u8s8", refuse_linear_dynamic, emit_linear_dynamic},
};
constexpr std::array kQuantize = {
    Candidate{"quantize", refuse_quantize, emit_quantize},
};
constexpr std::array kDequantize = {
    Candidate{"dequantize", refuse_dequantize, emit_dequantize},
};

constexpr std::array kLists = {
    CandidateList{"aten::linear", kLinear},
    CandidateList{"lissome::linear_act", kLinear},
    CandidateList{"aten::convolution", kConv},
    CandidateList{"lissome::conv_act", kConv},
    CandidateList{"lissome::linear_int8", kLinearInt8},
    CandidateList{"lissome::linear_int8_u8", kLinearInt8},
    CandidateList{"lissome::conv_int8", kConvInt8},
    CandidateList{"lissome::conv_int8_u8", kConvInt8},
    CandidateList{"lissome::linear_dynamic_int8", kLinearDynamic},
    CandidateList{"lissome::quantize", kQuantize},
    CandidateList{"lissome::dequantize", kDequantize},
};

}  // namespace

std::span<const CandidateList> candidate_lists() { return kLists; }

std::span<const Candidate> find_candidates(const Op& op) {
  for (const CandidateList& list : kLists) {
    if (op.is(list.op)) return list.rows;
  }
  return {};
}

std::vector<std::string> list_kernel_names() {
  std::vector<std::string> names = {std::string(kReferenceKernel)};
  for (const CandidateList& list : kLists) {
    for (const Candidate& row : list.rows) {
      if (std::find(names.begin(), names.end(), row.name) == names.end()) names.emplace_back(row.name);
    }
  }
  return names;
}

}  // namespace lissome
