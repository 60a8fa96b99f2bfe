// Views of purify(); see purify_views.h.
#include "lissome/program/purify/purify_views.h"

#include <algorithm>
#include <unordered_set>

namespace lissome {
namespace {

using Names = std::unordered_set<std::string_view>;

// Same elements in the same order under other sizes: going back is a reshape.
const Names kReshapes = {"aten::view",           "aten::unsqueeze",  "aten::squeeze",       "aten::squeeze.dim",
                         "aten::squeeze.dims",   "aten::view_as",    "aten::unflatten.int", "aten::_unsafe_view",
                         "aten::_reshape_alias", "aten::atleast_1d", "aten::atleast_2d",    "aten::atleast_3d"};
// Reshapes that copy where strides ask for it.
const Names kMaybeReshapes = {"aten::reshape", "aten::reshape_as", "aten::flatten.using_ints", "aten::ravel"};
// The very same elements and sizes.
const Names kSame = {"aten::alias",    "aten::detach",       "aten::lift",       "aten::lift_fresh",
                     "aten::positive", "aten::resolve_conj", "aten::resolve_neg"};
const Names kDropouts = {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout",
                         "aten::feature_alpha_dropout"};
const Names kOtherViews = {"aten::permute",
                           "aten::transpose.int",
                           "aten::t",
                           "aten::movedim.int",
                           "aten::movedim.intlist",
                           "aten::moveaxis.int",
                           "aten::moveaxis.intlist",
                           "aten::swapaxes",
                           "aten::swapdims",
                           "aten::mT",
                           "aten::numpy_T",
                           "aten::select.int",
                           "aten::slice.Tensor",
                           "aten::narrow",
                           "aten::diagonal",
                           "aten::expand",
                           "aten::expand_as",
                           "aten::broadcast_to",
                           "aten::unbind.int",
                           "aten::split.Tensor",
                           "aten::split_with_sizes",
                           "aten::split.sizes",
                           "aten::chunk",
                           "aten::tensor_split.sections",
                           "aten::tensor_split.indices",
                           "aten::hsplit.int",
                           "aten::vsplit.int",
                           "aten::dsplit.int",
                           "aten::unfold",
                           "aten::as_strided",
                           "aten::view.dtype",
                           "aten::view_as_real",
                           "aten::view_as_complex",
                           "aten::imag",
                           "aten::adjoint",
                           "aten::mH",
                           "aten::matrix_H",
                           "lissome::getitem"};
const Names kSelfInverse = {"aten::transpose.int", "aten::t",  "aten::swapaxes",
                            "aten::swapdims",      "aten::mT", "aten::numpy_T"};

bool is_complex(Dtype dtype) { return dtype == Dtype::c32 || dtype == Dtype::c64 || dtype == Dtype::c128; }

const ValueType& type_of_argument(const Program& program, const Node& node, size_t position) {
  static const ValueType kUnknown;
  const Argument& argument = node.arguments.at(position);
  return argument.is_value() ? program.value(argument.value()).type : kUnknown;
}

bool has_literal(const Node& node, std::string_view name, bool wanted) {
  const bool* flag = node.argument(name).get<bool>();
  return flag != nullptr && *flag == wanted;
}

Sharing find_cast_sharing(const Program& program, const Node& node) {
  const ValueType& from = type_of_argument(program, node, 0);
  const ValueType& to = program.value(node.results[0]).type;
  if (from.kind != ValueKind::tensor || to.kind != ValueKind::tensor) return Sharing::unknown;
  if (from.dtype != to.dtype) return Sharing::copy;
  if (node.op.argument_index("copy") >= 0 && has_literal(node, "copy", true)) return Sharing::copy;
  if (node.op.argument_index("memory_format") < 0) return Sharing::alias;
  const Argument& format = node.argument("memory_format");
  const MemoryFormat* literal = format.get<MemoryFormat>();
  const bool kept = format.is_none() || (literal != nullptr && *literal == MemoryFormat::preserve);
  return kept ? Sharing::alias : Sharing::unknown;
}

Sharing find_dropout_sharing(const Node& node) {
  if (has_literal(node, "train", false)) return Sharing::alias;
  const double* rate = node.argument("p").get<double>();
  return rate != nullptr && *rate == 0 ? Sharing::alias : Sharing::copy;
}

}  // namespace

Sharing find_sharing(const Program& program, const Node& node, const Contiguity& contiguity) {
  const std::string& name = node.op.name();
  if (kReshapes.contains(name) || kSame.contains(name) || kOtherViews.contains(name)) return Sharing::alias;
  if (kDropouts.contains(name)) return find_dropout_sharing(node);
  if (kMaybeReshapes.contains(name) || name == "aten::contiguous") {
    const bool dense = node.arguments[0].is_value() && contiguity.is_known(node.arguments[0].value());
    const bool plain = kMaybeReshapes.contains(name) ||
                       (node.argument("memory_format").get<MemoryFormat>() != nullptr &&
                        *node.argument("memory_format").get<MemoryFormat>() == MemoryFormat::contiguous);
    return dense && plain ? Sharing::alias : Sharing::unknown;
  }
  if (name.starts_with("aten::to.") || name == "aten::type_as") return find_cast_sharing(program, node);
  if (name == "aten::native_dropout") return Sharing::copy;
  if (name == "aten::real" || name == "aten::conj") return Sharing::alias;
  if (name == "aten::conj_physical") {
    return is_complex(type_of_argument(program, node, 0).dtype) ? Sharing::copy : Sharing::alias;
  }
  if (name == "aten::einsum" && node.argument("tensors").is_list() && node.argument("tensors").list().size() > 1) {
    return Sharing::copy;
  }
  return Sharing::unknown;
}

namespace {

// Sizes of a file may be any numbers: nothing where a sum or a product has more than 63 bits.
std::optional<int64_t> add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::nullopt : std::optional(sum);
}
std::optional<int64_t> multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional(product);
}

std::optional<Argument> last_of(const Argument& start, const Argument& length, Program& program) {
  const int64_t* first = start.get<int64_t>();
  const int64_t* count = length.get<int64_t>();
  if (first != nullptr && count != nullptr) {
    const std::optional<int64_t> end = add(*first, *count);
    if (!end) return std::nullopt;
    return *first < 0 && *end == 0 ? INT64_MAX : *end;
  }
  program.add_node(Op::find("lissome::sym_add"), {start, length}, {ValueType{ValueKind::integer}});
  return program.nodes.back().result();
}

// Nodes that put one item of a list of views back.
struct ItemWriter {
  Program& program;
  const Node& view;
  int64_t item;
  ValueId base, changed;

  ValueId scatter(const Argument& dim, int64_t start, int64_t end) const {
    return program
        .add_node(Op::find("aten::slice_scatter"), {base, changed, dim, start, end, 1}, {program.value(base).type},
                  view.origin)
        .result();
  }

  std::optional<int64_t> size_along(const Argument& dim) const {
    const ValueType& type = program.value(base).type;
    const int64_t* axis = dim.get<int64_t>();
    if (axis == nullptr || !type.sized) return std::nullopt;
    const auto rank = static_cast<int64_t>(type.sizes.size());
    const int64_t place = *axis < 0 ? *axis + rank : *axis;
    return place < 0 || place >= rank ? std::nullopt : type.sizes[static_cast<size_t>(place)].constant();
  }

  // One of the parts of equal size.
  std::optional<ValueId> write_part(const Argument& dim, int64_t size) const {
    const std::optional<int64_t> start = multiply(item, size);
    const std::optional<int64_t> end = start ? add(*start, size) : std::nullopt;
    return end ? std::optional(scatter(dim, *start, *end)) : std::nullopt;
  }

  std::optional<ValueId> write_split_of_sizes(const ArgumentList& sizes, const Argument& dim) const {
    int64_t start = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i) {
      const int64_t* size = sizes[static_cast<size_t>(i)].get<int64_t>();
      const std::optional<int64_t> end = size != nullptr ? add(start, *size) : std::nullopt;
      if (!end) return std::nullopt;
      if (i == item) return scatter(dim, start, *end);
      start = *end;
    }
    return std::nullopt;
  }

  std::optional<ValueId> write() const {
    const std::string& name = view.op.name();
    if (item < 0) return std::nullopt;
    if (name == "aten::unbind.int") {
      return program
          .add_node(Op::find("aten::select_scatter"), {base, changed, view.arguments[1], item},
                    {program.value(base).type}, view.origin)
          .result();
    }
    if (name == "aten::split.Tensor") {
      const int64_t* size = view.arguments[1].get<int64_t>();
      return size != nullptr ? write_part(view.arguments[2], *size) : std::nullopt;
    }
    if ((name == "aten::split_with_sizes" || name == "aten::split.sizes") && view.arguments[1].is_list()) {
      return write_split_of_sizes(view.arguments[1].list(), view.arguments[2]);
    }
    if (name == "aten::chunk") {
      const int64_t* chunks = view.arguments[1].get<int64_t>();
      const auto size = size_along(view.arguments[2]);
      if (chunks == nullptr || *chunks <= 0 || !size) return std::nullopt;
      return write_part(view.arguments[2], *size / *chunks + (*size % *chunks != 0 ? 1 : 0));
    }
    return std::nullopt;
  }
};

std::optional<ArgumentList> invert_permutation(const Argument& dims) {
  if (!dims.is_list()) return std::nullopt;
  const auto rank = static_cast<int64_t>(dims.list().size());
  ArgumentList inverse(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t* dim = dims.list()[static_cast<size_t>(i)].get<int64_t>();
    if (dim == nullptr || *dim < -rank || *dim >= rank) return std::nullopt;
    Argument& place = inverse[static_cast<size_t>(*dim < 0 ? *dim + rank : *dim)];
    if (place.get<int64_t>() != nullptr) return std::nullopt;  // a dimension that stands twice is no permutation
    place = i;
  }
  return inverse;
}

bool same_sizes(const Program& program, ValueId left, ValueId right) {
  const ValueType& a = program.value(left).type;
  const ValueType& b = program.value(right).type;
  return a.sized && b.sized && a.sizes == b.sizes;
}

// Op and arguments of the node that puts the view back into its base.
struct Inverse {
  std::string_view op;
  ArgumentList arguments;
};

std::optional<Inverse> find_complex_inverse(const Program& program, const Node& view, ValueId base, ValueId changed) {
  const std::string& name = view.op.name();
  if (name == "aten::view_as_real") return Inverse{"aten::view_as_complex", {changed}};
  if (name == "aten::view_as_complex") return Inverse{"aten::view_as_real", {changed}};
  if (name == "aten::conj") return Inverse{"aten::conj_physical", {changed}};
  if (name == "aten::view.dtype") return Inverse{"aten::view.dtype", {changed, program.value(base).type.dtype}};
  return std::nullopt;
}

std::optional<Inverse> find_inverse(Program& program, const Node& view, ValueId base, ValueId changed) {
  const std::string& name = view.op.name();
  const ArgumentList& arguments = view.arguments;
  if (kReshapes.contains(name) || kMaybeReshapes.contains(name)) return Inverse{"aten::reshape_as", {changed, base}};
  if (kSelfInverse.contains(name)) {
    ArgumentList same = arguments;
    same[0] = changed;
    return Inverse{view.op.name(), std::move(same)};
  }
  if (name == "aten::permute") {
    auto inverse = invert_permutation(arguments[1]);
    return inverse ? std::optional(Inverse{"aten::permute", {changed, std::move(*inverse)}}) : std::nullopt;
  }
  if (name.starts_with("aten::movedim.") || name.starts_with("aten::moveaxis.")) {
    return Inverse{view.op.name(), {changed, arguments[2], arguments[1]}};
  }
  if (name == "aten::select.int") return Inverse{"aten::select_scatter", {base, changed, arguments[1], arguments[2]}};
  if (name == "aten::slice.Tensor") {
    return Inverse{"aten::slice_scatter", {base, changed, arguments[1], arguments[2], arguments[3], arguments[4]}};
  }
  if (name == "aten::narrow") {
    std::optional<Argument> end = last_of(arguments[2], arguments[3], program);
    if (!end) return std::nullopt;
    return Inverse{"aten::slice_scatter", {base, changed, arguments[1], arguments[2], std::move(*end), 1}};
  }
  if (name == "aten::diagonal") {
    return Inverse{"aten::diagonal_scatter", {base, changed, arguments[1], arguments[2], arguments[3]}};
  }
  return find_complex_inverse(program, view, base, changed);
}

}  // namespace

std::optional<ValueId> write_through_view(Program& program, const Node& view, std::optional<int64_t> item, ValueId base,
                                          ValueId changed) {
  if (item) return ItemWriter{program, view, *item, base, changed}.write();
  const std::string& name = view.op.name();
  const bool real_of_real = (name == "aten::real" || name == "aten::conj" || name == "aten::conj_physical") &&
                            !is_complex(program.value(base).type.dtype);
  const bool full = (name == "aten::expand" || name == "aten::expand_as" || name == "aten::broadcast_to") &&
                    same_sizes(program, base, changed);
  if (name == "aten::detach" && is_floating(program.value(base).type.dtype)) {
    // The value is what was written, and the gradient passes as if nothing had been: use_recordable_forms() sees to
    // that.
    const ValueType type = program.value(base).type;
    const ValueId apart = program.add_node(Op::find("aten::detach_copy"), {changed}, {type}, view.origin).result();
    return program.add_node(Op::find("aten::copy"), {base, apart}, {type}, view.origin).result();
  }
  if (kSame.contains(name) || kDropouts.contains(name) || name == "aten::contiguous" || name == "aten::type_as" ||
      name.starts_with("aten::to.") || real_of_real || full) {
    return changed;
  }
  if (name == "aten::real" || name == "aten::imag") {
    const bool is_real = name == "aten::real";
    ValueType part = program.value(changed).type;
    const ValueId other =
        program.add_node(Op::find(is_real ? "aten::imag" : "aten::real"), {base}, {part}, view.origin).result();
    ArgumentList parts = is_real ? ArgumentList{changed, other} : ArgumentList{other, changed};
    return program.add_node(Op::find("aten::complex"), std::move(parts), {program.value(base).type}, view.origin)
        .result();
  }
  auto inverse = find_inverse(program, view, base, changed);
  if (!inverse) return std::nullopt;
  return program.add_node(Op::find(inverse->op), std::move(inverse->arguments), {program.value(base).type}, view.origin)
      .result();
}

namespace {

// Ops whose results are always row-major, whatever their inputs.
const Names kDense = {"aten::linear",    "aten::matmul",        "aten::mm",
                      "aten::bmm",       "aten::addmm",         "aten::embedding",
                      "aten::zeros",     "aten::ones",          "aten::full",
                      "aten::arange",    "aten::arange.start",  "aten::arange.start_step",
                      "aten::rand",      "aten::randn",         "aten::empty.memory_format",
                      "aten::new_zeros", "aten::new_ones",      "aten::new_full",
                      "aten::new_empty", "aten::scalar_tensor", "aten::eye",
                      "aten::linspace",  "aten::one_hot",       "aten::layer_norm"};
// Ops whose results are row-major when all their tensors are.
const Names kFollowing = {"aten::add.Tensor",
                          "aten::sub.Tensor",
                          "aten::mul.Tensor",
                          "aten::div.Tensor",
                          "aten::add.Scalar",
                          "aten::sub.Scalar",
                          "aten::mul.Scalar",
                          "aten::div.Scalar",
                          "aten::relu",
                          "aten::gelu",
                          "aten::silu",
                          "aten::sigmoid",
                          "aten::tanh",
                          "aten::exp",
                          "aten::log",
                          "aten::sqrt",
                          "aten::rsqrt",
                          "aten::neg",
                          "aten::abs",
                          "aten::pow.Tensor_Scalar",
                          "aten::clone",
                          "aten::zeros_like",
                          "aten::ones_like",
                          "aten::full_like",
                          "aten::rand_like",
                          "aten::randn_like",
                          "aten::empty_like",
                          "aten::cat",
                          "aten::stack",
                          "aten::softmax.int",
                          "aten::_softmax",
                          "aten::log_softmax.int",
                          "aten::where.self",
                          "aten::masked_fill.Scalar",
                          "aten::conv1d",
                          "aten::conv2d",
                          "aten::conv3d",
                          "aten::convolution",
                          "aten::batch_norm",
                          "aten::group_norm",
                          "aten::max_pool2d",
                          "aten::avg_pool2d",
                          "aten::adaptive_avg_pool2d",
                          "aten::hardtanh",
                          "aten::leaky_relu",
                          "aten::elu",
                          "aten::clamp",
                          "aten::dropout",
                          "aten::sum.dim_IntList",
                          "aten::mean.dim",
                          "aten::to.dtype",
                          "aten::_to_copy",
                          "aten::contiguous",
                          "aten::lift_fresh_copy",
                          "aten::detach",
                          "aten::alias",
                          "aten::reshape",
                          "aten::view",
                          "aten::flatten.using_ints",
                          "aten::unsqueeze",
                          "aten::squeeze",
                          "aten::squeeze.dim",
                          "aten::squeeze.dims",
                          "aten::_unsafe_view",
                          "aten::unflatten.int",
                          "aten::hardswish",
                          "aten::hardsigmoid",
                          "aten::sin",
                          "aten::cos",
                          "aten::index_put",
                          "aten::copy",
                          "aten::fill.Scalar",
                          "aten::masked_fill.Tensor"};

bool is_leading_slice(const Node& node) {
  const bool select = node.is("aten::select.int"), slice = node.is("aten::slice.Tensor");
  if (!select && !slice) return false;
  const int64_t* dim = node.arguments[1].get<int64_t>();
  const int64_t* step = slice ? node.arguments[4].get<int64_t>() : nullptr;
  return dim != nullptr && *dim == 0 && (select || (step != nullptr && *step == 1));
}

}  // namespace

Contiguity::Contiguity(const Program& program) : known_(program.values.size(), false) {
  for (const ProgramInput& input : program.inputs) known_[static_cast<size_t>(input.value)] = true;
  for (const Weight& weight : program.weights) {
    known_[static_cast<size_t>(weight.value)] = weight.tensor.defined() && weight.tensor.is_contiguous();
  }
  for (const Node& node : program.nodes) {
    bool all = true;
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId id) {
        const ValueKind kind = program.value(id).type.kind;
        all &= kind == ValueKind::integer || kind == ValueKind::floating || kind == ValueKind::boolean ||
               known_[static_cast<size_t>(id)];
      });
    }
    std::string name = node.op.name();
    // In-place forms keep what they write into as it is.
    const bool in_place = node.op.has_schema() && !node.arguments.empty() && node.arguments[0].is_value() &&
                          !find_effects(program, node).writes.empty() && node.results.size() == 1;
    const bool dense = in_place
                           ? known_[static_cast<size_t>(node.arguments[0].value())]
                           : kDense.contains(name) || (all && (kFollowing.contains(name) || is_leading_slice(node)));
    for (const ValueId result : node.results) {
      if (result != ValueId::none) known_[static_cast<size_t>(result)] = dense;
    }
  }
}

}  // namespace lissome
