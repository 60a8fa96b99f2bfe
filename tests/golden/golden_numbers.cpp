// Contents of golden cases; see golden_numbers.h.
#include "golden_numbers.h"

#include <ATen/Context.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "../parity/agreement.h"

namespace lissome {
namespace {

constexpr uint64_t kSeed = 1234;
constexpr double kHalfError = 1e-2;  // of the largest element, in 16-bit floating point

const std::string* find_given(const GoldenCase& golden, const std::string& name) {
  for (const auto& [given, contents] : golden.given) {
    if (given == name) return &contents;
  }
  return nullptr;
}

at::Tensor draw(at::IntArrayRef sizes, at::ScalarType type, const std::string& name) {
  if (type == at::kBool) return at::randint(0, 2, sizes, at::kLong).to(type);
  if (!at::isFloatingType(type) && !at::isComplexType(type)) return at::randint(0, 4, sizes, at::kLong).to(type);
  if (at::isComplexType(type)) return at::randn(sizes, at::TensorOptions().dtype(at::kComplexDouble)).to(type);
  // Variances are positive.
  if (name.ends_with("var")) return at::rand(sizes, at::kDouble).add(0.5).to(type);
  return at::randn(sizes, at::kDouble).to(type);
}

at::Tensor read_contents(const std::string& text, at::IntArrayRef sizes, at::ScalarType type) {
  if (text.starts_with("[")) {
    std::vector<double> numbers;
    for (const std::string& item : split(text.substr(1, text.size() - 2), ',')) numbers.push_back(std::stod(item));
    return at::tensor(numbers, at::kDouble).reshape(sizes).to(type);
  }
  if (const size_t dots = text.find(".."); dots != std::string::npos) {
    const double low = std::stod(text.substr(0, dots)), high = std::stod(text.substr(dots + 2));
    if (!at::isFloatingType(type)) {
      return at::randint(static_cast<int64_t>(low), static_cast<int64_t>(high) + 1, sizes, at::kLong).to(type);
    }
    return at::rand(sizes, at::kDouble).mul(high - low).add(low).to(type);
  }
  return at::full(sizes, std::stod(text), at::kDouble).to(type);
}

at::Tensor make_contents(const GoldenCase& golden, const std::string& name, at::IntArrayRef sizes,
                         at::ScalarType type) {
  const std::string* given = find_given(golden, name);
  return given == nullptr || given->starts_with("@") ? draw(sizes, type, name) : read_contents(*given, sizes, type);
}

bool is_half(const c10::IValue& value) {
  return value.isTensor() &&
         (value.toTensor().scalar_type() == at::kHalf || value.toTensor().scalar_type() == at::kBFloat16);
}

std::string compare(const c10::IValue& before, const c10::IValue& after, const std::string& what) {
  Agreement agreement = compare_values(after, before, {});
  if (!agreement.agrees && is_half(before) && agreement.error < kHalfError) agreement.agrees = true;
  return agreement.agrees ? std::string() : what + ": " + agreement.reason + "\n";
}

std::vector<c10::IValue> run(const Program& program, const std::vector<c10::IValue>& inputs,
                             std::vector<at::Tensor>& written) {
  at::manual_seed(kSeed);
  InterpretOptions options;
  options.written = &written;
  return interpret(program, inputs, options);
}

}  // namespace

void fill_weights(Program& program, const GoldenCase& golden) {
  at::manual_seed(kSeed);
  for (Weight& weight : program.weights) {
    const bool filled = find_given(golden, "@" + weight.name) == nullptr && weight.tensor.ne(0).any().item<bool>();
    if (filled) continue;  // by the text itself: `= 0.5`
    weight.tensor.copy_(make_contents(golden, "@" + weight.name, weight.tensor.sizes(), weight.tensor.scalar_type()));
  }
  for (Weight& weight : program.weights) {
    const std::string* given = find_given(golden, "@" + weight.name);
    if (given == nullptr || !given->starts_with("@")) continue;
    const Weight* other = program.find_weight(std::string_view(*given).substr(1));
    if (other == nullptr) throw_error(ErrorKind::invalid_input, golden.place(), ": there is no weight ", *given);
    weight.tensor.copy_(other->tensor);
  }
}

std::vector<DimensionBindings> choose_bindings(const Program& program) {
  std::vector<DimensionBindings> rounds;
  for (const int64_t base : {3, 1, 6}) {
    DimensionBindings bindings;
    // Different sizes for different names, so that mixing them up shows.
    int64_t size = base;
    for (const NamedDimension& dimension : program.dimensions) {
      bindings[dimension.name] = std::clamp(size, std::max<int64_t>(dimension.minimum, 1), dimension.maximum);
      size += base == 1 ? 0 : 1;
    }
    if (rounds.empty() || !program.dimensions.empty()) rounds.push_back(std::move(bindings));
  }
  return rounds;
}

std::vector<c10::IValue> make_inputs(const Program& program, const GoldenCase& golden,
                                     const DimensionBindings& bindings) {
  at::manual_seed(kSeed + 1);
  std::vector<c10::IValue> inputs;
  for (const ProgramInput& input : program.inputs) {
    const ValueType& type = program.value(input.value).type;
    if (type.kind == ValueKind::integer) {
      inputs.emplace_back(type.sizes.empty() ? int64_t{2} : type.sizes.front().evaluate(bindings));
    } else if (type.kind == ValueKind::floating) {
      inputs.emplace_back(0.75);
    } else {
      Sizes sizes;
      for (const Dimension& size : type.sizes) sizes.push_back(size.evaluate(bindings));
      inputs.emplace_back(make_contents(golden, "%" + input.name, sizes, scalar_type_of(type.dtype)));
    }
  }
  return inputs;
}

std::string find_disagreement(const Program& before, const Program& after, const std::vector<c10::IValue>& inputs) {
  std::vector<at::Tensor> written_before, written_after;
  const auto expected = run(before, inputs, written_before);
  const auto seen = run(after, inputs, written_after);
  if (expected.size() != seen.size() || written_before.size() != written_after.size()) {
    return "another number of outputs or writes\n";
  }
  std::string report;
  for (size_t i = 0; i < seen.size(); ++i) report += compare(expected[i], seen[i], "output " + std::to_string(i));
  for (size_t i = 0; i < written_after.size(); ++i) {
    report += compare(written_before[i], written_after[i], "write " + std::to_string(i));
  }
  return report;
}

}  // namespace lissome
