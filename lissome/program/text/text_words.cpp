// Tables of the words of program text.
#include "lissome/program/text/text_words.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace lissome {
namespace {

template <typename Enum>
struct Word {
  Enum value;
  std::string_view word;
};

constexpr std::array<Word<ValueKind>, 6> kValueKinds = {{{ValueKind::integer, "int"},
                                                         {ValueKind::floating, "float"},
                                                         {ValueKind::boolean, "bool"},
                                                         {ValueKind::string, "str"},
                                                         {ValueKind::list, "list"},
                                                         {ValueKind::none, "none"}}};
constexpr std::array<Word<WeightRole>, 3> kWeightRoles = {
    {{WeightRole::parameter, "parameter"}, {WeightRole::buffer, "buffer"}, {WeightRole::constant, "constant"}}};
constexpr std::array<Word<Layout>, 7> kLayouts = {{{Layout::strided, "strided"},
                                                   {Layout::sparse_coo, "sparse_coo"},
                                                   {Layout::sparse_csr, "sparse_csr"},
                                                   {Layout::sparse_csc, "sparse_csc"},
                                                   {Layout::sparse_bsr, "sparse_bsr"},
                                                   {Layout::sparse_bsc, "sparse_bsc"},
                                                   {Layout::mkldnn, "mkldnn"}}};
constexpr std::array<Word<MemoryFormat>, 4> kMemoryFormats = {{{MemoryFormat::contiguous, "contiguous"},
                                                               {MemoryFormat::preserve, "preserve"},
                                                               {MemoryFormat::channels_last, "channels_last"},
                                                               {MemoryFormat::channels_last_3d, "channels_last_3d"}}};

template <typename Enum, size_t size>
std::string_view word_of(const std::array<Word<Enum>, size>& table, Enum value) {
  for (const auto& row : table) {
    if (row.value == value) return row.word;
  }
  throw_error(ErrorKind::internal, "no word for value ", static_cast<int>(value));
}

template <typename Enum, size_t size>
std::optional<Enum> find_word(const std::array<Word<Enum>, size>& table, std::string_view word) {
  for (const auto& row : table) {
    if (row.word == word) return row.value;
  }
  return std::nullopt;
}

bool same_number(double left, double right) {
  return std::bit_cast<int64_t>(left) == std::bit_cast<int64_t>(right) || (std::isnan(left) && std::isnan(right));
}

}  // namespace

std::string_view value_kind_word(ValueKind kind) { return word_of(kValueKinds, kind); }
std::optional<ValueKind> find_value_kind(std::string_view word) { return find_word(kValueKinds, word); }
std::string_view weight_role_word(WeightRole role) { return word_of(kWeightRoles, role); }
std::optional<WeightRole> find_weight_role(std::string_view word) { return find_word(kWeightRoles, word); }
std::string_view layout_word(Layout layout) { return word_of(kLayouts, layout); }
std::string_view memory_format_word(MemoryFormat format) { return word_of(kMemoryFormats, format); }

bool is_device_word(std::string_view word) {
  const size_t colon = word.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view number = word.substr(colon + 1);
    if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos) return false;
  }
  constexpr std::array<std::string_view, 5> kDevices = {"cpu", "cuda", "meta", "mps", "xpu"};
  return std::find(kDevices.begin(), kDevices.end(), word.substr(0, colon)) != kDevices.end();
}

std::optional<Argument> find_literal(std::string_view word) {
  if (word == "none") return Argument();
  if (word == "true") return Argument(true);
  if (word == "false") return Argument(false);
  if (word == "inf") return Argument(std::numeric_limits<double>::infinity());
  if (word == "nan") return Argument(std::numeric_limits<double>::quiet_NaN());
  if (word == "_") return Argument(ValueId::none);
  if (const auto dtype = parse_dtype(word)) return Argument(*dtype);
  if (const auto layout = find_word(kLayouts, word)) return Argument(*layout);
  if (const auto format = find_word(kMemoryFormats, word)) return Argument(*format);
  if (is_device_word(word)) return Argument(Device{std::string(word)});
  return std::nullopt;
}

std::string usual_output_name(size_t position) { return "output." + std::to_string(position); }

bool same_literal(const Argument& left, const Argument& right) {
  if (left.data.index() != right.data.index()) return false;
  if (const auto* number = left.get<double>()) return same_number(*number, *right.get<double>());
  if (const auto* number = left.get<std::complex<double>>()) {
    const auto& other = *right.get<std::complex<double>>();
    return same_number(number->real(), other.real()) && same_number(number->imag(), other.imag());
  }
  if (!left.is_list()) return left == right;
  return std::equal(left.list().begin(), left.list().end(), right.list().begin(), right.list().end(), same_literal);
}

}  // namespace lissome
