// Tries expressions from simple to less simple; see fit_sizes.h.
#include "lissome/program/shape/fit_sizes.h"

#include <algorithm>
#include <array>
#include <set>

#include "lissome/base.h"

namespace lissome {
namespace {

using Operation = Dimension::Operation;

constexpr int64_t kLargestDivisor = 64;  // strides of convolutions and pools, one after the other
constexpr size_t kLargestDivided = 2;    // names in a product that is divided

// A product of names, at every sample.
struct Product {
  std::vector<std::string> names;
  std::vector<int64_t> values;
};

int64_t divide_down(int64_t left, int64_t right) { return left / right - (left % right < 0 ? 1 : 0); }

Dimension add(Dimension left, int64_t right) { return Dimension::combine(Operation::add, std::move(left), right); }

Dimension multiply_names(const Product& product) {
  Dimension result = 1;
  for (const std::string& name : product.names) {
    result = Dimension::combine(Operation::multiply, std::move(result), Dimension::named(name));
  }
  return result;
}

bool explains(const Dimension& expression, const std::vector<SizeSample>& samples) {
  return std::all_of(samples.begin(), samples.end(),
                     [&](const SizeSample& sample) { return expression.try_evaluate(sample.sizes) == sample.number; });
}

// k*m + b through the first two samples that differ in m, if the others lie on it.
std::optional<Dimension> fit_line(const Product& product, const std::vector<SizeSample>& samples) {
  const int64_t start = product.values.front(), first = samples.front().number;
  const auto other =
      std::find_if(product.values.begin(), product.values.end(), [&](int64_t value) { return value != start; });
  if (other == product.values.end()) return std::nullopt;
  const int64_t run = *other - start;
  const int64_t rise = samples[static_cast<size_t>(other - product.values.begin())].number - first;
  if (rise % run != 0) return std::nullopt;
  const int64_t slope = rise / run;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (slope * (product.values[i] - start) != samples[i].number - first) return std::nullopt;
  }
  return add(Dimension::combine(Operation::multiply, slope, multiply_names(product)), first - slope * start);
}

// (m + b)//k + c, or with sign -1 (b - m)//k + c
std::optional<Dimension> fit_division(const Product& product, int64_t sign, const std::vector<SizeSample>& samples) {
  for (int64_t divisor = 2; divisor <= kLargestDivisor; ++divisor) {
    for (int64_t offset = 0; offset < divisor; ++offset) {
      const auto divide = [&](size_t i) { return divide_down(sign * product.values[i] + offset, divisor); };
      const int64_t shift = samples.front().number - divide(0);
      bool fits = true;
      for (size_t i = 1; i < samples.size() && fits; ++i) fits = divide(i) + shift == samples[i].number;
      if (!fits) continue;
      const Dimension divided = add(Dimension::combine(Operation::multiply, sign, multiply_names(product)), offset);
      return add(Dimension::combine(Operation::floor_divide, divided, divisor), shift);
    }
  }
  return std::nullopt;
}

// Min(k*m + b, c), where c is seen at two sizes at the least.
std::optional<Dimension> fit_minimum(const Product& product, const std::vector<SizeSample>& samples) {
  const auto smaller = [](const SizeSample& left, const SizeSample& right) { return left.number < right.number; };
  const int64_t most = std::max_element(samples.begin(), samples.end(), smaller)->number;
  Product rising{product.names, {}};
  std::vector<SizeSample> below;
  std::set<int64_t> bounded;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].number == most) {
      bounded.insert(product.values[i]);
    } else {
      below.push_back(samples[i]), rising.values.push_back(product.values[i]);
    }
  }
  if (bounded.size() < 2 || below.empty()) return std::nullopt;
  const auto line = fit_line(rising, below);
  if (!line) return std::nullopt;
  Dimension result = Dimension::combine(Operation::minimum, *line, most);
  return explains(result, samples) ? std::optional(std::move(result)) : std::nullopt;
}

// `product` times `name`; nothing where that overflows.
std::optional<Product> extend(const Product& product, const std::string& name, const std::vector<SizeSample>& samples) {
  Product longer = product;
  longer.names.push_back(name);
  for (size_t i = 0; i < samples.size(); ++i) {
    if (__builtin_mul_overflow(longer.values[i], samples[i].sizes.at(name), &longer.values[i])) return std::nullopt;
  }
  return longer;
}

// Products of one to three names, short ones first.
std::vector<Product> list_products(const std::vector<SizeSample>& samples) {
  std::vector<std::string> names;
  for (const auto& [name, size] : samples.front().sizes) names.push_back(name);
  std::array<std::vector<std::pair<size_t, Product>>, 4> by_length;  // each with the position after its last name
  by_length[0].push_back({0, {{}, std::vector<int64_t>(samples.size(), 1)}});
  std::vector<Product> products;
  for (size_t length = 1; length < by_length.size(); ++length) {
    for (const auto& [start, shorter] : by_length[length - 1]) {
      for (size_t i = start; i < names.size(); ++i) {
        auto longer = extend(shorter, names[i], samples);
        if (!longer) continue;
        products.push_back(*longer);
        const bool twice = !shorter.names.empty() && shorter.names.back() == names[i];
        by_length[length].emplace_back(twice ? i + 1 : i, std::move(*longer));
      }
    }
  }
  return products;
}

}  // namespace

std::optional<Dimension> fit_size(const std::vector<SizeSample>& samples) {
  LISSOME_CHECK(!samples.empty(), "no samples");
  if (Dimension constant = samples.front().number; explains(constant, samples)) return constant;
  const std::vector<Product> products = list_products(samples);
  for (const Product& product : products) {
    if (auto line = fit_line(product, samples)) return line;
  }
  for (const Product& product : products) {
    if (product.names.size() > kLargestDivided) break;
    for (const int64_t sign : {1, -1}) {
      if (auto division = fit_division(product, sign, samples)) return division;
    }
  }
  for (const Product& product : products) {
    if (product.names.size() > 1) break;
    if (auto minimum = fit_minimum(product, samples)) return minimum;
  }
  return std::nullopt;
}

}  // namespace lissome
