// The decomposed dialect writes a batched product as reshape, bmm, reshape, and einsum hides products behind letters.
// Both become matmul, which attention and the other patterns read.
#include <algorithm>
#include <string>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

const ValueType& type_of_value(Rewriter& rewriter, const Argument& argument) {
  return rewriter.program().value(argument.value()).type;
}

// The value before a reshape that flattened all but the last two dimensions into one.
std::optional<ValueId> find_batched(Rewriter& rewriter, const Argument& flat) {
  const Node* reshape = rewriter.producer(rewriter.resolve(flat), "aten::reshape");
  if (reshape == nullptr) return std::nullopt;
  const Argument source = rewriter.resolve(reshape->argument("self"));
  const ValueType& before = type_of_value(rewriter, source);
  const ValueType& after = rewriter.program().value(reshape->result()).type;
  if (!before.sized || !after.sized || before.sizes.size() < 4 || after.sizes.size() != 3) return std::nullopt;
  const bool same_matrix = std::equal(before.sizes.end() - 2, before.sizes.end(), after.sizes.end() - 2);
  return same_matrix ? std::optional(source.value()) : std::nullopt;
}

bool restore_batched(Rewriter& rewriter, int position) {
  const Node& outer = rewriter.node(position);
  if (!outer.is("aten::reshape")) return false;
  const Node* bmm = rewriter.producer(rewriter.resolve(outer.argument("self")), "aten::bmm");
  if (bmm == nullptr || !rewriter.has_one_use(bmm->result())) return false;
  const auto left = find_batched(rewriter, bmm->argument("self"));
  const auto right = find_batched(rewriter, bmm->argument("mat2"));
  if (!left || !right) return false;
  const ValueType& a = rewriter.program().value(*left).type;
  const ValueType& b = rewriter.program().value(*right).type;
  const ValueType& c = rewriter.program().value(outer.result()).type;
  const size_t rank = a.sizes.size();
  if (b.sizes.size() != rank || !c.sized || c.sizes.size() != rank) return false;
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (!(a.sizes[i] == b.sizes[i]) || !(a.sizes[i] == c.sizes[i])) return false;
  }
  if (!(c.sizes[rank - 2] == a.sizes[rank - 2]) || !(c.sizes[rank - 1] == b.sizes[rank - 1])) return false;
  rewriter.replace_node(position, Op::find("aten::matmul"), {*left, *right});
  return true;
}

struct Letters {
  std::string left, right, result;
};

std::optional<Letters> read_equation(const Argument& argument) {
  const auto* text = argument.get<std::string>();
  if (text == nullptr) return std::nullopt;
  std::string equation = *text;
  std::erase(equation, ' ');
  const size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || equation.find(',', comma + 1) != std::string::npos) {
    return std::nullopt;
  }
  Letters letters{equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1), equation.substr(arrow + 2)};
  for (const std::string& part : {letters.left, letters.right, letters.result}) {
    for (size_t i = 0; i < part.size(); ++i) {
      if (part[i] == '.' || part.find(part[i], i + 1) != std::string::npos) return std::nullopt;
    }
  }
  return letters;
}

bool has(const std::string& text, char letter) { return text.find(letter) != std::string::npos; }

ArgumentList find_order(const std::string& from, const std::string& to) {
  ArgumentList order;
  for (char letter : to) order.emplace_back(static_cast<int64_t>(from.find(letter)));
  return order;
}

ValueType permute_type(const ValueType& type, const ArgumentList& order) {
  ValueType permuted = type;
  for (size_t i = 0; i < order.size(); ++i) permuted.sizes[i] = type.sizes[static_cast<size_t>(*order[i].get<int64_t>())];
  return permuted;
}

// "bhqd,bhkd->bhqk": batch letters stand everywhere, one letter is summed, one is the left's and one the right's own.
bool convert_einsum(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  if (!node.is("aten::einsum") || !node.argument("tensors").is_list() || node.argument("tensors").list().size() != 2) return false;
  const auto letters = read_equation(node.argument("equation"));
  if (!letters) return false;
  std::string batch, rows, columns, summed;
  for (char letter : letters->result) {
    const bool left = has(letters->left, letter), right = has(letters->right, letter);
    (left && right ? batch : left ? rows : columns) += letter;
  }
  for (char letter : letters->left) {
    if (!has(letters->result, letter)) summed += letter;
  }
  for (char letter : letters->right) {
    if (!has(letters->result, letter) && !has(letters->left, letter)) return false;
  }
  if (rows.size() != 1 || columns.size() != 1 || summed.size() != 1 || !has(letters->right, summed[0])) return false;
  const Argument left = rewriter.resolve(node.argument("tensors").list()[0]);
  const Argument right = rewriter.resolve(node.argument("tensors").list()[1]);
  const ValueType left_type = type_of_value(rewriter, left), right_type = type_of_value(rewriter, right);
  const ValueType result_type = rewriter.program().value(node.result()).type;
  if (!left_type.sized || !right_type.sized || !result_type.sized) return false;
  if (left_type.sizes.size() != letters->left.size() || right_type.sizes.size() != letters->right.size()) return false;

  const Op permute = Op::find("aten::permute");
  const ArgumentList left_order = find_order(letters->left, batch + rows + summed);
  const ArgumentList right_order = find_order(letters->right, batch + summed + columns);
  const ValueId a = rewriter.insert_before(position, permute, {left, left_order}, {permute_type(left_type, left_order)}, node.origin);
  const ValueId b = rewriter.insert_before(position, permute, {right, right_order}, {permute_type(right_type, right_order)}, node.origin);
  const std::string product = batch + rows + columns;
  if (product == letters->result) {
    rewriter.replace_node(position, Op::find("aten::matmul"), {a, b});
    return true;
  }
  const ValueType product_type = permute_type(result_type, find_order(letters->result, product));
  const ValueId c = rewriter.insert_before(position, Op::find("aten::matmul"), {a, b}, {product_type}, node.origin);
  rewriter.replace_node(position, permute, {c, find_order(product, letters->result)});
  return true;
}

}  // namespace

int restore_matmul(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    restore_batched(rewriter, position) || convert_einsum(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome
