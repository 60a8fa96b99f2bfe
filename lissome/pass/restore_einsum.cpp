// "bhqd,bhkd->bhqk": batch letters stand in all three, rows in the left and the result, columns in the right and the
// result, and what is summed in both sides alone. Groups of several letters are flattened into one dimension.
#include "lissome/pass/restore_einsum.h"

#include <algorithm>
#include <map>
#include <string>

namespace lissome {
namespace {

struct Letters {
  std::string left, right, result;
  std::string batch, rows, columns, summed;
};

bool has(const std::string& text, char letter) { return text.find(letter) != std::string::npos; }

bool has_plain_letters(const std::string& part) {
  for (size_t i = 0; i < part.size(); ++i) {
    const bool letter = (part[i] >= 'a' && part[i] <= 'z') || (part[i] >= 'A' && part[i] <= 'Z');
    if (!letter || part.find(part[i], i + 1) != std::string::npos) return false;
  }
  return true;
}

// Only what has an arrow, two operands, and no letter that one side sums for itself.
std::optional<Letters> read_equation(const Argument& argument) {
  const auto* text = argument.get<std::string>();
  if (text == nullptr) return std::nullopt;
  std::string equation = *text;
  std::erase(equation, ' ');
  const size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) return std::nullopt;
  Letters letters;
  letters.left = equation.substr(0, comma);
  letters.right = equation.substr(comma + 1, arrow - comma - 1);
  letters.result = equation.substr(arrow + 2);
  if (!has_plain_letters(letters.left) || !has_plain_letters(letters.right) || !has_plain_letters(letters.result)) {
    return std::nullopt;
  }
  for (const char letter : letters.result) {
    const bool left = has(letters.left, letter), right = has(letters.right, letter);
    if (!left && !right) return std::nullopt;
    (left && right ? letters.batch : left ? letters.rows : letters.columns) += letter;
  }
  for (const char letter : letters.left) {
    if (has(letters.result, letter)) continue;
    if (!has(letters.right, letter)) return std::nullopt;
    letters.summed += letter;
  }
  for (const char letter : letters.right) {
    if (!has(letters.result, letter) && !has(letters.left, letter)) return std::nullopt;
  }
  return letters;
}

// Sizes by letter; nothing when two operands disagree (a size of one would broadcast) or a rank is another.
std::optional<std::map<char, Dimension>> read_sizes(const Letters& letters, const ValueType& left,
                                                    const ValueType& right) {
  if (!is_sized_float(left) || left.dtype != right.dtype || !right.sized) return std::nullopt;
  if (left.sizes.size() != letters.left.size() || right.sizes.size() != letters.right.size()) return std::nullopt;
  std::map<char, Dimension> sizes;
  for (size_t i = 0; i < letters.left.size(); ++i) sizes.emplace(letters.left[i], left.sizes[i]);
  for (size_t i = 0; i < letters.right.size(); ++i) {
    const auto [entry, fresh] = sizes.emplace(letters.right[i], right.sizes[i]);
    if (!fresh && !(entry->second == right.sizes[i])) return std::nullopt;
  }
  return sizes;
}

// Builds the nodes of one einsum in front of it.
class EinsumBuilder {
 public:
  EinsumBuilder(Rewriter& rewriter, int position, const std::map<char, Dimension>& sizes)
      : rewriter_(rewriter),
        position_(position),
        sizes_(sizes),
        dtype_(rewriter.type_of(rewriter.node(position).result()).dtype) {}

  std::vector<Dimension> sizes_of(const std::string& letters) const {
    std::vector<Dimension> sizes;
    for (const char letter : letters) sizes.push_back(sizes_.at(letter));
    return sizes;
  }

  Dimension product_of(const std::string& letters) const {
    Dimension product(1);
    for (const char letter : letters) {
      product = Dimension::combine(Dimension::Operation::multiply, product, sizes_.at(letter));
    }
    return product;
  }

  // The operand with its letters in another order.
  Argument permute(const Argument& operand, const std::string& from, const std::string& to) {
    if (from == to) return operand;
    ArgumentList order;
    for (const char letter : to) order.emplace_back(static_cast<int64_t>(from.find(letter)));
    return insert("aten::permute", {operand, order}, sizes_of(to));
  }

  Argument reshape(const Argument& operand, const std::vector<Dimension>& sizes) {
    if (rewriter_.type_of(operand).sizes == sizes) return operand;
    return insert("aten::reshape", {operand, *literal_sizes(sizes)}, sizes);
  }

  Argument multiply(const Argument& left, const Argument& right, const std::vector<Dimension>& sizes) {
    return insert("aten::matmul", {left, right}, sizes);
  }

 private:
  Argument insert(std::string_view op, ArgumentList arguments, std::vector<Dimension> sizes) {
    const std::shared_ptr<const Origin> origin = rewriter_.node(position_).origin;
    return rewriter_.insert_before(position_, Op::find(op), std::move(arguments),
                                   {tensor_type(dtype_, std::move(sizes))}, origin);
  }

  Rewriter& rewriter_;
  int position_;
  const std::map<char, Dimension>& sizes_;
  Dtype dtype_;
};

std::vector<Dimension> join_sizes(std::vector<Dimension> first, std::initializer_list<Dimension> rest) {
  first.insert(first.end(), rest);
  return first;
}

}  // namespace

bool restore_einsum(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  if (!node.is("aten::einsum") || !node.argument("tensors").is_list() || node.argument("tensors").list().size() != 2) {
    return false;
  }
  const auto letters = read_equation(node.argument("equation"));
  if (!letters || letters->rows.empty() || letters->columns.empty() || letters->summed.empty()) return false;
  const Argument left = rewriter.resolve(node.argument("tensors").list()[0]);
  const Argument right = rewriter.resolve(node.argument("tensors").list()[1]);
  const auto sizes = read_sizes(*letters, rewriter.type_of(left), rewriter.type_of(right));
  if (!sizes || !is_sized_float(rewriter.type_of(node.result()))) return false;

  EinsumBuilder build(rewriter, position, *sizes);
  // Without a batch the rows need not be flattened: the right side is one matrix for all of them.
  const bool flat = !letters->batch.empty() && letters->rows.size() > 1;
  const std::vector<Dimension> batch = build.sizes_of(letters->batch), rows = build.sizes_of(letters->rows);
  std::vector<Dimension> leading = batch;
  if (flat) {
    leading.push_back(build.product_of(letters->rows));
  } else {
    leading.insert(leading.end(), rows.begin(), rows.end());
  }
  const Dimension summed = build.product_of(letters->summed), columns = build.product_of(letters->columns);
  const std::string product = letters->batch + letters->rows + letters->columns;
  const auto left_sizes = join_sizes(leading, {summed}), right_sizes = join_sizes(batch, {summed, columns});
  const auto product_sizes = build.sizes_of(product);
  if (!literal_sizes(left_sizes) || !literal_sizes(right_sizes) || !literal_sizes(product_sizes)) return false;

  const Argument a =
      build.reshape(build.permute(left, letters->left, letters->batch + letters->rows + letters->summed), left_sizes);
  const Argument b = build.reshape(
      build.permute(right, letters->right, letters->batch + letters->summed + letters->columns), right_sizes);
  const Argument c = build.reshape(build.multiply(a, b, join_sizes(leading, {columns})), product_sizes);
  rewriter.replace_value(node.result(), build.permute(c, product, letters->result));
  return true;
}

}  // namespace lissome
