// See merge_numbers.h. Names of expressions are the named dimensions and, for sizes that C++ code reads from tensors on
// the way, "size.7.2": the size at position 2 of value 7. The latter never leave this file.
#include "lissome/program/import/merge_numbers.h"

#include <algorithm>
#include <cmath>

namespace lissome {
namespace {

constexpr size_t kRememberedSizes = 12;  // of tensors: code reads those that it made lately

template <typename Number>
[[noreturn]] void refuse(std::string_view what, const std::vector<Number>& numbers) {
  std::ostringstream seen;
  for (const Number number : numbers) seen << (seen.tellp() == 0 ? "" : ", ") << number;
  throw_error(ErrorKind::unsupported, what, " takes the values ", seen.str(),
              " at different sizes or for different data, which is no simple function of sizes");
}

std::string_view find_operation(Dimension::Operation operation) {
  switch (operation) {
    case Dimension::Operation::add: return "lissome::sym_add";
    case Dimension::Operation::multiply: return "lissome::sym_mul";
    case Dimension::Operation::floor_divide: return "lissome::sym_floordiv";
    case Dimension::Operation::minimum: return "lissome::sym_min";
    default: throw_error(ErrorKind::internal, "a fitted size holds operation ", static_cast<int>(operation));
  }
}

// The integers that the numbers are but for rounding; nothing when one is none.
std::optional<std::vector<int64_t>> read_integers(const std::vector<double>& numbers) {
  std::vector<int64_t> integers;
  for (const double number : numbers) {
    const double whole = std::round(number);
    if (!(std::abs(whole) < 0x1p53) || std::abs(number - whole) > 1e-9 * std::abs(whole)) return std::nullopt;
    integers.push_back(static_cast<int64_t>(whole));
  }
  return integers;
}

}  // namespace

NumberMerger::NumberMerger(Program& program, std::vector<DimensionBindings> sizes)
    : program_(program), sizes_(std::move(sizes)) {}

void NumberMerger::add_size(ValueId tensor, int64_t position, const std::vector<int64_t>& seen) {
  if (std::all_of(seen.begin(), seen.end(), [&](int64_t size) { return size == seen.front(); })) return;
  for (const auto& [name, first] : sizes_.front()) {
    bool is_dimension = true;
    for (size_t i = 0; i < seen.size(); ++i) is_dimension &= sizes_[i].at(name) == seen[i];
    if (!is_dimension) continue;
    carriers_.try_emplace(name, Carrier{tensor, position});
    return;
  }
  std::erase_if(tensors_, [&](const auto& known) { return known.second == seen; });
  std::string name = "size." + std::to_string(static_cast<int>(tensor)) + "." + std::to_string(position);
  carriers_.try_emplace(name, Carrier{tensor, position});
  tensors_.emplace_back(std::move(name), seen);
  if (tensors_.size() > kRememberedSizes) tensors_.pop_front();
}

std::vector<SizeSample> NumberMerger::make_samples(const std::vector<int64_t>& numbers, bool with_tensors) const {
  std::vector<SizeSample> samples;
  for (size_t i = 0; i < numbers.size(); ++i) {
    samples.push_back({sizes_[i], numbers[i]});
    if (!with_tensors) continue;
    for (const auto& [name, seen] : tensors_) samples.back().sizes.emplace(name, seen[i]);
  }
  return samples;
}

std::optional<Dimension> NumberMerger::find_dimension(const std::vector<int64_t>& numbers) {
  const auto [known, is_new] = dimensions_.try_emplace(numbers);
  if (is_new) known->second = fit_size(make_samples(numbers, false));
  return known->second;
}

Argument NumberMerger::merge_integers(const std::vector<int64_t>& numbers) {
  if (const auto known = merged_.find(numbers); known != merged_.end()) return known->second;
  auto expression = find_dimension(numbers);
  if (!expression) expression = fit_size(make_samples(numbers, true));
  if (!expression) refuse("an integer", numbers);
  const Argument merged = compute(*expression);
  merged_.emplace(numbers, merged);
  return merged;
}

// Sizes enter floating-point numbers as they are, as a square root, or one divided by either; two divided by a size in
// the derivative of a variance.
Argument NumberMerger::merge_doubles(const std::vector<double>& numbers) {
  const bool same = std::all_of(numbers.begin(), numbers.end(), [&](double number) {
    return number == numbers.front() || (std::isnan(number) && std::isnan(numbers.front()));
  });
  if (same) return numbers.front();
  struct Form {
    double numerator;  // 0: not divided
    bool rooted;
  };
  for (const auto [numerator, rooted] : {Form{0, false}, {0, true}, {1, false}, {1, true}, {2, false}}) {
    std::vector<double> plain = numbers;
    for (double& number : plain) {
      if (numerator != 0) number = numerator / number;
      if (rooted) number = number < 0 ? std::nan("") : number * number;
    }
    const auto integers = read_integers(plain);
    if (!integers || !find_dimension(*integers)) continue;
    ValueId value = add_number("lissome::sym_float", {merge_integers(*integers)}, ValueKind::floating);
    if (rooted) value = add_number("lissome::sym_sqrt", {value}, ValueKind::floating);
    if (numerator != 0) value = add_number("lissome::sym_truediv", {numerator, value}, ValueKind::floating);
    return value;
  }
  refuse("a number", numbers);
}

ValueId NumberMerger::add_number(std::string_view op, ArgumentList arguments, ValueKind kind) {
  ValueType type;
  type.kind = kind;
  return program_.add_node(Op::find(op), std::move(arguments), {type}).result();
}

Argument NumberMerger::compute(const Dimension& expression) {
  if (const auto constant = expression.constant()) return *constant;
  const std::string text = expression.print();
  if (const auto known = computed_.find(text); known != computed_.end()) return known->second;
  ValueId id = ValueId::none;
  if (expression.operation() == Dimension::Operation::name) {
    const auto carrier = carriers_.find(expression.name());
    LISSOME_CHECK(carrier != carriers_.end(), "no tensor has the size ", expression.name());
    id = add_number("aten::sym_size.int", {carrier->second.tensor, carrier->second.position}, ValueKind::integer);
  } else {
    const auto [left, right] = expression.operands();
    const Argument first = compute(left), second = compute(right);
    id = add_number(find_operation(expression.operation()), {first, second}, ValueKind::integer);
  }
  computed_.emplace(text, id);
  return id;
}

}  // namespace lissome
