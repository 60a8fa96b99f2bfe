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

  // Groups of letters that are flattened or taken apart: sizes that no literal can tell are read off the operands.
  Argument reshape(const Argument& operand, const std::vector<std::string>& groups) {
    std::vector<Dimension> sizes;
    for (const std::string& group : groups) sizes.push_back(product_of(group));
    if (rewriter_.type_of(operand).sizes == sizes) return operand;
    std::optional<ArgumentList> shape = literal_sizes(sizes);
    if (!shape) {
      shape.emplace();
      for (const std::string& group : groups) shape->push_back(read_size(group));
    }
    return insert("aten::reshape", {operand, *shape}, sizes);
  }

  // What holds each letter's size, for read_size().
  void set_operand(const Argument& operand, const std::string& letters) {
    for (size_t i = 0; i < letters.size(); ++i) places_.try_emplace(letters[i], operand, static_cast<int64_t>(i));
  }

  Argument multiply(const Argument& left, const Argument& right, const std::vector<std::string>& groups) {
    std::vector<Dimension> sizes;
    for (const std::string& group : groups) sizes.push_back(product_of(group));
    return insert("aten::matmul", {left, right}, std::move(sizes));
  }

 private:
  Argument insert(std::string_view op, ArgumentList arguments, std::vector<Dimension> sizes) {
    return insert(op, std::move(arguments), tensor_type(dtype_, std::move(sizes)));
  }

  Argument insert(std::string_view op, ArgumentList arguments, ValueType type) {
    const std::shared_ptr<const Origin> origin = rewriter_.node(position_).origin;
    return rewriter_.insert_before(position_, Op::find(op), std::move(arguments), {std::move(type)}, origin);
  }

  Argument read_size(const std::string& letters) {
    if (const auto number = product_of(letters).constant()) return *number;
    ValueType integer;
    integer.kind = ValueKind::integer;
    Argument product;
    for (const char letter : letters) {
      const auto& [operand, place] = places_.at(letter);
      const auto number = sizes_.at(letter).constant();
      const Argument size = number ? Argument(*number) : insert("aten::sym_size.int", {operand, place}, integer);
      product = product.is_none() ? size : insert("lissome::sym_mul", {product, size}, integer);
    }
    return product;
  }

  Rewriter& rewriter_;
  int position_;
  const std::map<char, Dimension>& sizes_;
  Dtype dtype_;
  std::map<char, std::pair<Argument, int64_t>> places_;  // an operand and its dimension
};

std::vector<std::string> take_apart(const std::string& letters) {
  std::vector<std::string> groups;
  for (const char letter : letters) groups.emplace_back(1, letter);
  return groups;
}

std::vector<std::string> join_groups(std::vector<std::string> first, std::initializer_list<std::string> rest) {
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
  const std::vector<std::string> batch = take_apart(letters->batch);
  const std::vector<std::string> leading =
      flat ? join_groups(batch, {letters->rows}) : take_apart(letters->batch + letters->rows);
  const std::string product = letters->batch + letters->rows + letters->columns;
  build.set_operand(left, letters->left);
  build.set_operand(right, letters->right);

  const Argument a = build.reshape(build.permute(left, letters->left, letters->batch + letters->rows + letters->summed),
                                   join_groups(leading, {letters->summed}));
  const Argument b =
      build.reshape(build.permute(right, letters->right, letters->batch + letters->summed + letters->columns),
                    join_groups(batch, {letters->summed, letters->columns}));
  const Argument c = build.reshape(build.multiply(a, b, join_groups(leading, {letters->columns})), take_apart(product));
  rewriter.replace_value(node.result(), build.permute(c, product, letters->result));
  return true;
}

}  // namespace lissome
