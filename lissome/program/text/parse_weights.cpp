// Tensors for declared weights. Sizes and strides come from text that may be hostile: products are checked for overflow
// and the whole for a bound before anything is allocated.
#include "lissome/program/text/parse_weights.h"

#include <ATen/ops/as_strided.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "lissome/program.h"
#include "lissome/program/syntax/literal.h"
#include "lissome/program/syntax/program_lexer.h"
#include "lissome/program/text/text_words.h"

namespace lissome {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 33;  // of zeros made for weights without a tensor

Sizes constant_sizes(const WeightText& weight) {
  Sizes sizes;
  if (weight.type.kind != ValueKind::tensor || !weight.type.sized) {
    refuse_text(weight.text.place, "@" + write_name(weight.text.name) + " needs a type with sizes, such as f32[64, 3]");
  }
  for (const Dimension& size : weight.type.sizes) {
    const auto constant = size.constant();
    if (!constant || *constant < 0) {
      refuse_text(weight.text.place,
                  "@" + write_name(weight.text.name) + " has a size that is no number: " + size.print());
    }
    sizes.push_back(*constant);
  }
  return sizes;
}

// Elements of the storage up to the last one that the weight reads.
int64_t count_extent(const WeightText& weight, const Sizes& sizes, const Sizes& strides) {
  int64_t last = weight.text.offset;
  if (count_elements(sizes) == 0) return last;
  const auto refuse = [&] {
    refuse_text(weight.text.place, "@" + write_name(weight.text.name) + " has strides or an offset out of range");
  };
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t span = 0;
    if (strides[i] < 0 || __builtin_mul_overflow(sizes[i] - 1, strides[i], &span) ||
        __builtin_add_overflow(last, span, &last)) {
      refuse();
    }
  }
  if (last < 0 || last == INT64_MAX) refuse();
  return last + 1;
}

struct Storage {
  int64_t elements = 0;
  Dtype dtype = Dtype::f32;
  at::Tensor tensor;
};

double read_number(const TextArgument& text) {
  if (text.kind == TextArgument::Kind::integer) return static_cast<double>(text.integer);
  if (text.kind == TextArgument::Kind::floating) return text.floating;
  refuse_text(text.place, "a weight is filled with a number or a list of numbers");
}

// `= 0.5` everywhere, or `= [1, 2, 3]` in row-major order.
void fill(at::Tensor& tensor, const TextArgument& text) {
  if (text.kind != TextArgument::Kind::list) {
    tensor.fill_(read_number(text));
    return;
  }
  std::vector<double> numbers;
  for (const TextArgument& item : text.items) numbers.push_back(read_number(item));
  if (static_cast<int64_t>(numbers.size()) != tensor.numel()) {
    refuse_text(text.place,
                std::to_string(numbers.size()) + " numbers for " + std::to_string(tensor.numel()) + " elements");
  }
  tensor.copy_(at::tensor(numbers, at::kDouble).view(tensor.sizes()));
}

void check_given(const WeightText& weight, const Sizes& sizes, const at::Tensor& tensor) {
  if (dtype_of(tensor.scalar_type()) == weight.type.dtype && tensor.sizes() == at::IntArrayRef(sizes)) return;
  refuse_text(weight.text.place, "@" + write_name(weight.text.name) + " is declared as " +
                                     std::string(dtype_name(weight.type.dtype)) + format_sizes(sizes) +
                                     ", its tensor is " + std::string(dtype_name(dtype_of(tensor.scalar_type()))) +
                                     format_sizes(tensor.sizes()));
}

}  // namespace

std::string body_scope(const std::string& scope, size_t node, size_t body) {
  return scope + std::to_string(node) + "." + std::to_string(body) + "/";
}

namespace {

void list_weights(const Program& program, const std::string& scope,
                  std::vector<std::pair<std::string, at::Tensor>>& weights) {
  for (const Weight& weight : program.weights) weights.emplace_back(scope + weight.name, weight.tensor);
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const auto& bodies = program.nodes[i].bodies;
    for (size_t j = 0; j < bodies.size(); ++j) list_weights(*bodies[j], body_scope(scope, i, j), weights);
  }
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> list_weights_by_scope(const Program& program) {
  std::vector<std::pair<std::string, at::Tensor>> weights;
  list_weights(program, "", weights);
  return weights;
}

std::vector<at::Tensor> make_weights(const std::vector<WeightText>& weights, const GivenTensors& given,
                                     const std::string& scope) {
  std::unordered_map<std::string, size_t> root_of;  // weight -> the first of those that it is tied to
  std::vector<Storage> storages(weights.size());
  std::vector<Sizes> sizes(weights.size()), strides(weights.size());
  const auto find_root = [&](size_t i) {
    const TextWeight& text = weights[i].text;
    if (text.tied.empty()) return i;
    const auto root = root_of.find(text.tied);
    if (root == root_of.end()) refuse_text(text.place, "@" + write_name(text.tied) + " is not declared before");
    return root->second;
  };

  std::vector<size_t> roots(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const TextWeight& text = weights[i].text;
    sizes[i] = constant_sizes(weights[i]);
    strides[i] = text.strides.value_or(contiguous_strides(sizes[i]));
    if (strides[i].size() != sizes[i].size() || text.offset < 0) {
      refuse_text(text.place, "@" + write_name(text.name) + " needs one stride a size and no negative offset");
    }
    roots[i] = find_root(i);
    root_of.emplace(text.name, roots[i]);
    Storage& storage = storages[roots[i]];
    if (roots[i] == i) storage.dtype = weights[i].type.dtype;
    if (storage.dtype != weights[i].type.dtype) refuse_text(text.place, "tied weights must have one dtype");
    storage.elements = std::max(storage.elements, count_extent(weights[i], sizes[i], strides[i]));
  }

  int64_t free_bytes = kMaxBytes;
  std::vector<at::Tensor> result;
  for (size_t i = 0; i < weights.size(); ++i) {
    const TextWeight& text = weights[i].text;
    if (const auto found = given.by_name.find(scope + text.name); found != given.by_name.end()) {
      check_given(weights[i], sizes[i], found->second);
      result.push_back(found->second);
      continue;
    }
    if (given.complete) refuse_text(text.place, "@" + write_name(text.name) + " has no tensor in the file");
    const auto options = at::TensorOptions().dtype(scalar_type_of(weights[i].type.dtype));
    if (!text.layout.empty()) {
      const auto layout = find_literal(text.layout);
      if (!layout || !layout->get<Layout>()) refuse_text(text.place, "'" + text.layout + "' is no layout");
      result.push_back(at::zeros(sizes[i], options.layout(torch_layout_of(*layout->get<Layout>()))));
      continue;
    }
    Storage& storage = storages[roots[i]];
    if (!storage.tensor.defined()) {
      if (storage.elements > free_bytes / item_size(storage.dtype)) {
        refuse_text(text.place,
                    "the weights up to @" + write_name(text.name) + " are larger than " + format_bytes(kMaxBytes));
      }
      free_bytes -= storage.elements * item_size(storage.dtype);
      storage.tensor = at::zeros({storage.elements}, options);
    }
    result.push_back(at::as_strided(storage.tensor, sizes[i], strides[i], text.offset));
    if (text.fill) fill(result.back(), *text.fill);
  }
  return result;
}

}  // namespace lissome
