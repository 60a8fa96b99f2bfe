// Joining and cutting: concatenation, and the pieces of split, chunk and unbind as views of what is cut.
#include <algorithm>

#include "lissome/lower/candidate/move/move_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/move/copy_steps.h"
#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {
namespace {

// Old rule: a tensor of sizes [0] joins anything and adds nothing.
bool is_nothing(const PlanBuilder& builder, const Argument& piece, size_t rank) {
  const std::vector<Dimension>& sizes = builder.type(piece.value()).sizes;
  return rank != 1 && sizes.size() == 1 && sizes[0] == Dimension(0);
}

std::vector<ValueId> list_pieces(const PlanBuilder& builder, const Node& node) {
  std::vector<ValueId> pieces;
  const size_t rank = builder.type(node.result()).sizes.size();
  for (const Argument& piece : node.argument("tensors").list()) {
    if (!is_nothing(builder, piece, rank)) pieces.push_back(piece.value());
  }
  return pieces;
}

}  // namespace

std::string refuse_concat(const PlanBuilder& builder, const Node& node) {
  const Dtype dtype = builder.type(node.result()).dtype;
  const Argument& tensors = node.argument("tensors");
  if (!tensors.is_list()) return "the list is computed";
  bool all_held = true;
  std::string refusal = refuse_tensor(builder, Argument(node.result()), dtype);
  for (const Argument& piece : tensors.list()) {
    if (refusal.empty()) refusal = refuse_tensor(builder, piece, dtype);
    all_held = all_held && (!piece.is_value() || builder.is_held(piece.value()));
  }
  if (!refusal.empty()) return refusal;
  const size_t rank = builder.type(node.result()).sizes.size();
  if (read_dim(node.argument("dim"), rank) < 0) return "the dimension is computed";
  const size_t pieces = list_pieces(builder, node).size();
  if (pieces == 0 || pieces > static_cast<size_t>(kConcatPieces)) return "it joins " + std::to_string(pieces);
  if (item_size(dtype) > 8 || rank > static_cast<size_t>(kMoveRank)) return "no copy takes it, should one be needed";
  return all_held ? "the reference library holds all operands" : "";
}

namespace {

// The piece gives each run of the result one of its own, so that it is read where it lies.
bool joins_runs(const PlanBuilder& builder, ValueId piece, int64_t dim, Format format) {
  return builder.lies_in(piece, format) && builder.has_even_runs(piece) && builder.is_innermost(piece, dim);
}

}  // namespace

void emit_concat(PlanBuilder& builder, const Node& node) {
  const std::vector<ValueId> pieces = list_pieces(builder, node);
  const Format format = builder.shared_format(pieces);
  ConcatStep step;
  step.dim = read_dim(node.argument("dim"), builder.type(node.result()).sizes.size());
  for (const ValueId id : pieces)
    step.add_piece(joins_runs(builder, id, step.dim, format) ? builder.use(id) : builder.use_dense(id, node, format));
  step.y = {builder.make(node.result(), Storage::arena, format)};
  builder.add_step(step, node);
}

namespace {

// What a list-making node cuts, and where piece `index` begins; `dim` is -1 when it is not of that form.
struct Cut {
  ValueId x = ValueId::none;
  int64_t dim = -1, start = 0;
  bool selects = false;  // unbind: the dimension is gone
};

const Node* find_producer(const PlanBuilder& builder, ValueId id) {
  for (const Node& node : builder.program().nodes) {
    if (std::find(node.results.begin(), node.results.end(), id) != node.results.end()) return &node;
  }
  return nullptr;
}

Cut find_cut(const PlanBuilder& builder, const Node& getitem) {
  const Argument& list = getitem.arguments[0];
  const auto* index = getitem.arguments[1].get<int64_t>();
  const Node* node = list.is_value() ? find_producer(builder, list.value()) : nullptr;
  if (node == nullptr || !index || *index < 0) return {};
  const bool unbinds = node->is("aten::unbind.int"), lists = node->is("aten::split_with_sizes"),
             splits = node->is("aten::split.Tensor") || node->is("aten::split.sizes");
  const bool chunks = node->is("aten::chunk");
  if (!unbinds && !lists && !splits && !chunks) return {};
  const Argument& x = node->arguments[0];
  if (!x.is_value() || !builder.type(x.value()).sized) return {};
  const std::vector<Dimension>& sizes = builder.type(x.value()).sizes;
  Cut cut{x.value(), read_dim(node->argument("dim"), sizes.size()), 0, unbinds};
  if (cut.dim < 0) return {};
  if (unbinds) {
    cut.start = *index;
    return cut;
  }
  const Argument& how = node->arguments[1];
  if (chunks) {
    const auto size = sizes[static_cast<size_t>(cut.dim)].constant();
    const auto* count = how.get<int64_t>();
    if (!size || !count || *count <= 0) return {};
    const int64_t each = *size / *count + (*size % *count != 0 ? 1 : 0);
    if (__builtin_mul_overflow(each, *index, &cut.start)) return {};
  } else if (const auto* each = how.get<int64_t>()) {
    if (__builtin_mul_overflow(*each, *index, &cut.start)) return {};
  } else {
    const auto each_size = read_integers(how);
    if (!each_size || *index >= static_cast<int64_t>(each_size->size())) return {};
    for (int64_t i = 0; i < *index; ++i) {
      if (__builtin_add_overflow(cut.start, (*each_size)[static_cast<size_t>(i)], &cut.start)) return {};
    }
  }
  return cut;
}

}  // namespace

std::string refuse_piece(const PlanBuilder& builder, const Node& node) {
  const Cut cut = find_cut(builder, node);
  if (cut.dim < 0) return "it takes from no list of pieces";
  if (builder.is_held(cut.x)) return "the reference library holds the operand";
  const ValueType& type = builder.type(cut.x);
  if (item_size(type.dtype) > 8 || type.sizes.size() > static_cast<size_t>(kMoveRank)) {
    return "no copy takes it, should one be needed";
  }
  return first_refusal({refuse_tensor(builder, Argument(cut.x), type.dtype),
                        refuse_tensor(builder, Argument(node.result()), type.dtype)});
}

void emit_piece(PlanBuilder& builder, const Node& node) {
  const Cut cut = find_cut(builder, node);
  ViewStep part;
  part.x = {builder.use(cut.x)};
  part.form = cut.selects ? "select" : "slice";
  part.dim = cut.dim;
  (cut.selects ? part.index : part.start) = cut.start;
  builder.add_view(std::move(part), node, node.result());
  const bool cuts_last = cut.dim + 1 == static_cast<int64_t>(builder.type(cut.x).sizes.size());
  builder.mark_part(node.result(), cut.selects ? std::vector<int64_t>{} : builder.memory_order(cut.x),
                    !(cuts_last && cut.selects) && builder.has_dense_rows(cut.x));
  if (!cut.selects && cuts_runs(builder, cut.x, cut.dim)) builder.mark_even_runs(node.result());
}

}  // namespace lissome
