// A size that is read off an intermediate value, although an input has it too, keeps that value alive and counts as one
// of its readers: a convolution whose height is asked for would not fuse with its activation.
#include <map>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// A size of an input: scale * name + offset.
struct InputSize {
  Argument input;
  int64_t dim = 0, scale = 1, offset = 0;
};

class SizeMover {
 public:
  explicit SizeMover(Program& program) : rewriter_(program) {
    for (const ProgramInput& input : program.inputs) {
      const ValueType& type = program.value(input.value).type;
      if (type.kind != ValueKind::tensor || !type.sized) continue;
      inputs_.insert(input.value);
      for (size_t i = 0; i < type.sizes.size(); ++i) note_size(input.value, static_cast<int64_t>(i), type.sizes[i]);
    }
  }

  int run() {
    for (int position = 0; position < rewriter_.node_count(); ++position) move(position);
    return rewriter_.finish();
  }

 private:
  void note_size(ValueId input, int64_t dim, const Dimension& size) {
    exact_.emplace(size.print(), InputSize{input, dim, 1, 0});
    const std::vector<std::string> names = size.names();
    if (names.size() != 1) return;
    const auto at_zero = size.try_evaluate({{names[0], 0}}), at_one = size.try_evaluate({{names[0], 1}});
    if (!at_zero || !at_one || *at_one <= *at_zero) return;
    const int64_t scale = *at_one - *at_zero;
    const Dimension line = Dimension::combine(
        Dimension::Operation::add,
        Dimension::combine(Dimension::Operation::multiply, Dimension(scale), Dimension::named(names[0])), *at_zero);
    if (line == size) linear_.emplace(names[0], InputSize{input, dim, scale, *at_zero});
  }

  ValueId insert(int position, std::string_view op, ArgumentList arguments, ValueType type) {
    return rewriter_.insert_before(position, Op::find(op), std::move(arguments), {std::move(type)},
                                   rewriter_.node(position).origin);
  }

  // The size as a value that comes before `position`; it is made once.
  Argument find_size(int position, const InputSize& size, const std::string& key) {
    const auto [entry, fresh] = made_.try_emplace(key);
    if (!fresh) return entry->second;
    const ValueType result = rewriter_.type_of(rewriter_.node(position).result());
    ValueType integer;
    integer.kind = ValueKind::integer;
    const bool shifted = size.offset != 0, scaled = size.scale != 1;
    ValueId value =
        insert(position, "aten::sym_size.int", {size.input, size.dim}, shifted || scaled ? integer : result);
    if (shifted) value = insert(position, "lissome::sym_sub", {value, size.offset}, scaled ? integer : result);
    if (scaled) value = insert(position, "lissome::sym_floordiv", {value, size.scale}, result);
    return entry->second = value;
  }

  void move(int position) {
    const Node& node = rewriter_.node(position);
    if (!node.is("aten::sym_size.int") && !node.is("aten::size.int")) return;
    const Argument self = rewriter_.resolve(node.argument("self"));
    const auto* dim = node.argument("dim").get<int64_t>();
    const ValueType& type = rewriter_.type_of(self);
    if (dim == nullptr || type.kind != ValueKind::tensor || !type.sized || inputs_.contains(self.value())) return;
    const auto rank = static_cast<int64_t>(type.sizes.size());
    const int64_t place = *dim < 0 ? *dim + rank : *dim;
    if (place < 0 || place >= rank) return;
    const Dimension& size = type.sizes[static_cast<size_t>(place)];
    if (size.constant()) return;  // a number: see fold_constants
    const std::string key = size.print();
    const auto exact = exact_.find(key), linear = linear_.find(key);
    if (exact == exact_.end() && linear == linear_.end()) return;
    rewriter_.replace_value(node.result(),
                            find_size(position, exact != exact_.end() ? exact->second : linear->second, key));
  }

  Rewriter rewriter_;
  std::unordered_set<ValueId> inputs_;
  std::map<std::string, InputSize> exact_, linear_;  // by printed size, by name
  std::map<std::string, Argument> made_;
};

}  // namespace

int move_size_reads(Program& program) { return SizeMover(program).run(); }

}  // namespace lissome
