// See check_types() in the face. Named sizes are bound to numbers, and each op of ATen that has a form for tensors
// without elements (the meta device) is called with what the program says of its operands. The others are called with a
// few zeros: those that work element by element, or row by row, for sizes that stand for the real ones, and our own,
// whose references check their arguments, and what is small, for the real ones. Of large layers the sizes follow from
// their formulas. Numbers that nodes compute of sizes are followed. Nothing is computed of the model's data.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "lissome/program.h"
#include "lissome/program/check/meta_call.h"
#include "lissome/program/check/op_among.h"
#include "lissome/program/check/result_sizes.h"
#include "lissome/program/convert.h"
#include "lissome/program/interpret/interpreter.h"

namespace lissome {
namespace {

// Of one operand or result that is called with zeros: beyond it the call would cost as much as the model.
constexpr int64_t kMostElements = int64_t{1} << 22, kFewElements = int64_t{1} << 14;

struct Unknown {};  // thrown where it is left open what an op would do

// Without a form for the meta device, and with the same meaning for any sizes that are equal where these are.
constexpr std::array kByRow = {"aten::embedding", "aten::index_select", "aten::flip",
                               "aten::roll",      "aten::batch_norm",   "aten::_native_batch_norm_legit_no_training"};
constexpr std::array kSqueezes = {"aten::squeeze"};  // their ranks depend on sizes
constexpr std::array kPools = {"lissome::max_pool2d_u8", "lissome::avg_pool2d_u8"};
constexpr std::array kConvolutions = {"aten::convolution",  "aten::_convolution",   "aten::conv1d",
                                      "aten::conv2d",       "aten::conv3d",         "lissome::conv_act",
                                      "lissome::conv_int8", "lissome::conv_int8_u8"};

// Fits what exports ask of sizes most often, to be even or a multiple of a window, and is rarely a size of its own. The
// other is a multiple of 64, 5 and 7: expressions of sizes may be equal for sizes alone that the model takes, such as
// multiples of 7.
constexpr int64_t kSize = 24, kOtherSize = 6720;

// What names stand for: those that inputs decide, and all. The others depend on data, and what holds between them is
// not known, so that ranks and dtypes alone follow from a guess.
struct Sizing {
  DimensionBindings declared, guessed;
  bool fits = true;  // the model takes inputs of these sizes; else all that follows from them is a guess
};

void guess_others(const Program& program, int64_t wanted, DimensionBindings& bindings) {
  for (const Value& value : program.values) {
    for (const Dimension& size : value.type.sizes) {
      for (const std::string& name : size.names()) bindings.try_emplace(name, wanted);
    }
  }
  for (const Node& node : program.nodes) {
    for (const auto& body : node.bodies) guess_others(*body, wanted, bindings);
  }
}

size_t count_unmet(const Program& program, const DimensionBindings& sizes, size_t enough) {
  size_t unmet = 0;
  for (const SizeRequirement& requirement : program.requirements) {
    if (requirement.slack.try_evaluate(sizes).value_or(-1) < 0 && ++unmet >= enough) break;
  }
  return unmet;
}

// Moves one size after the other to what meets more requirements, as near as there is. Returns whether all are met.
bool meet_requirements(const Program& program, DimensionBindings& sizes) {
  constexpr int64_t kMostLooks = 400'000, kFarthest = 4096;  // the first bounds the time: a tenth of a second
  const auto looks = static_cast<int64_t>(program.requirements.size() * program.dimensions.size());
  const int64_t farthest = std::clamp<int64_t>(kMostLooks / std::max<int64_t>(looks, 1), 1, kFarthest);
  size_t unmet = count_unmet(program, sizes, SIZE_MAX);
  for (const NamedDimension& dimension : program.dimensions) {
    if (unmet == 0) break;
    int64_t& size = sizes[dimension.name];
    const int64_t usual = size;
    int64_t best = usual;
    for (int64_t more = 1; more <= farthest && unmet > 0; ++more) {
      for (const int64_t other : {usual + more, usual - more}) {
        if (other < std::max<int64_t>(dimension.minimum, 1) || other > dimension.maximum) continue;
        size = other;
        const size_t left = count_unmet(program, sizes, unmet);
        if (left < unmet) unmet = left, best = other;
      }
    }
    size = best;
  }
  return unmet == 0;
}

Sizing bind_dimensions(const Program& program, int64_t wanted) {
  Sizing sizing;
  for (const NamedDimension& dimension : program.dimensions)
    sizing.declared[dimension.name] = std::min(std::max({wanted, dimension.minimum, int64_t{1}}), dimension.maximum);
  sizing.fits = meet_requirements(program, sizing.declared);
  sizing.guessed = sizing.declared;
  guess_others(program, wanted, sizing.guessed);
  return sizing;
}

// A number that a node computed of sizes.
struct Number {
  c10::IValue value;
  bool exact;     // follows from sizes that are numbers in the file; else it holds for the bound sizes
  bool is_guess;  // follows from sizes that depend on data
};
using Numbers = std::map<ValueId, Number>;

bool is_number(const ValueType& type) {
  return type.kind == ValueKind::integer || type.kind == ValueKind::floating || type.kind == ValueKind::boolean;
}

bool is_autocast(const Node& node) {
  return std::ranges::any_of(node.arguments, [](const Argument& argument) {
    const auto* text = argument.get<std::string>();
    return text != nullptr && text->starts_with("autocast");
  });
}

enum class Form : uint8_t {
  without_elements,
  zeros,
  a_few,      // zeros, of what has few elements
  few_zeros,  // of each size that is not small another small one
};

// What is called in place of one node, in one form.
class Call {
 public:
  Call(const Program& program, const Sizing& sizing, const Numbers& numbers, Form form)
      : program_(program), sizing_(sizing), numbers_(numbers), form_(form) {}

  // Whether sizes or numbers that were asked for depend on data.
  bool is_guess() const { return is_guess_; }
  Form form() const { return form_; }
  // Whether all that were asked for are numbers in the file.
  bool is_exact() const { return is_exact_; }
  // Whether a number was asked for that holds for the bound sizes alone.
  bool has_bound_number() const { return has_bound_number_; }

  std::vector<c10::IValue> run(const Node& node) {
    std::vector<c10::IValue> stack;
    const auto make = [&](ValueId id) { return make_operand(id); };
    for (const Argument& argument : node.arguments) stack.push_back(resolve_argument(argument, make));
    for (const ValueId result : node.results) {
      if (result == ValueId::none || is_number(program_.value(result).type)) continue;
      if (form_ == Form::zeros || form_ == Form::a_few) static_cast<void>(find_sizes(program_.value(result).type));
    }
    const at::NoGradGuard no_gradients;
    if (form_ != Form::without_elements) return Interpreter(InterpretOptions()).run_node(node, std::move(stack));
    if (!call_without_elements(node.op, stack)) throw Unknown();
    return stack;
  }

  // Throws Unknown where they are not known, or would hold too much.
  Sizes find_sizes(const ValueType& type) {
    if (type.kind != ValueKind::tensor || !type.sized) throw Unknown();
    Sizes sizes;
    for (const Dimension& size : type.sizes) {
      const std::optional<int64_t> number = evaluate(size);
      if (!number || *number < 0) throw Unknown();
      sizes.push_back(shrink(*number));
    }
    const std::optional<int64_t> elements = count_bytes(Dtype::u8, sizes);
    const int64_t most = form_ == Form::a_few ? kFewElements : kMostElements;
    if (!elements || (form_ != Form::without_elements && *elements > most)) throw Unknown();
    return sizes;
  }

  std::optional<Sizes> try_to_find_sizes(ValueId id) {
    try {
      return find_sizes(program_.value(id).type);
    } catch (const Unknown&) {
      return std::nullopt;
    }
  }

 private:
  std::optional<int64_t> evaluate(const Dimension& size) {
    if (!size.constant()) is_exact_ = false, is_guess_ = is_guess_ || !sizing_.fits;
    if (const auto number = size.try_evaluate(sizing_.declared)) return number;
    is_guess_ = true;
    return size.try_evaluate(sizing_.guessed);
  }

  int64_t shrink(int64_t size) {
    constexpr int64_t kSmall = 4;
    if (form_ != Form::few_zeros || size < kSmall) return size;
    return small_.emplace(size, kSmall + static_cast<int64_t>(small_.size())).first->second;
  }

  c10::IValue make_operand(ValueId id) {
    const ValueType& type = program_.value(id).type;
    if (const auto number = numbers_.find(id); number != numbers_.end() && form_ != Form::few_zeros) {
      is_guess_ = is_guess_ || number->second.is_guess;
      is_exact_ = is_exact_ && number->second.exact;
      has_bound_number_ = has_bound_number_ || !number->second.exact;
      return number->second.value;
    }
    const Weight* weight = program_.find_weight(id);
    if (weight != nullptr && form_ == Form::a_few) static_cast<void>(find_sizes(type));
    if (weight != nullptr && (form_ == Form::zeros || form_ == Form::a_few || weight->tensor.layout() != at::kStrided))
      return weight->tensor;
    if (weight != nullptr && form_ == Form::without_elements) {
      const at::Tensor& tensor = weight->tensor;
      return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
    }
    if (type.kind == ValueKind::integer && type.sizes.size() == 1 && form_ != Form::few_zeros) {
      if (const auto number = evaluate(type.sizes.front())) return *number;
    }
    const Sizes sizes = find_sizes(type);
    const auto options = at::TensorOptions().dtype(scalar_type_of(type.dtype));
    return form_ == Form::without_elements ? at::empty(sizes, options.device(at::kMeta)) : at::zeros(sizes, options);
  }

  const Program& program_;
  const Sizing& sizing_;
  const Numbers& numbers_;
  const Form form_;
  bool is_guess_ = false, is_exact_ = true, has_bound_number_ = false;
  std::map<int64_t, int64_t> small_;
};

class TypeChecker {
 public:
  // `doubt` takes the first refusal that follows from numbers which hold for the bound sizes alone.
  TypeChecker(const Program& program, const Sizing& sizing, std::string& doubt)
      : program_(program), sizing_(sizing), doubt_(doubt) {}

  void check() {
    for (const Node& node : program_.nodes) {
      if (node.op.has_schema()) check_node(node);
      if (node.is("lissome::getitem")) check_element(node);
      if (is_autocast(node)) continue;  // its ops cast what they read
      for (const auto& body : node.bodies) TypeChecker(*body, sizing_, doubt_).check();
    }
  }

 private:
  struct MadeList {
    std::vector<c10::IValue> elements;
    Call call;
  };

  void check_node(const Node& node) {
    if (is_among(kConvolutions, node.op)) check_convolution(node);
    if (node.op.name().starts_with("lissome::")) {
      check_scales(node);
      check_window(node);
      call(node, Form::zeros);
      return;
    }
    const bool by_element = node.op.handle().hasTag(at::Tag::pointwise) || is_among(kByRow, node.op);
    if (has_meta_form(node.op) && call(node, Form::without_elements)) return;
    if ((by_element && call(node, Form::few_zeros)) || check_formula(node)) return;
    const bool is_pure = !node.op.schema().is_mutable() && !node.op.handle().hasTag(at::Tag::nondeterministic_seeded);
    if (is_pure && !depends_on_data(node)) call(node, Form::a_few);
  }

  // Whether its sizes follow from elements that are computed, for which zeros say nothing.
  bool depends_on_data(const Node& node) const {
    if (!find_effects(program_, node).shape_from_data) return false;
    bool computed = false;
    for (const Argument& argument : node.arguments)
      for_each_value(argument, [&](ValueId id) { computed = computed || program_.find_weight(id) == nullptr; });
    return computed;
  }

  // One tensor of a list that a node made.
  void check_element(const Node& node) {
    const auto* index = node.arguments.at(1).get<int64_t>();
    if (!node.arguments[0].is_value() || index == nullptr) return;
    const auto found = lists_.find(node.arguments[0].value());
    if (found == lists_.end()) return;
    MadeList& list = found->second;
    const auto count = static_cast<int64_t>(list.elements.size());
    if (*index >= count || *index < -count) {
      if (!may_differ(list.call))
        refuse(node, "element " + std::to_string(*index) + " of a list of " + std::to_string(count));
      return;
    }
    const c10::IValue& made = list.elements[static_cast<size_t>(*index < 0 ? *index + count : *index)];
    if (made.isTensor() && made.toTensor().defined()) check_result(node, 0, made.toTensor(), list.call);
  }

  // False for nodes without a formula.
  bool check_formula(const Node& node) {
    Call one(program_, sizing_, numbers_, Form::without_elements);
    const auto sizes = infer_result_sizes(node, [&](ValueId id) { return one.try_to_find_sizes(id); });
    if (!sizes || node.results.empty() || node.results[0] == ValueId::none) return sizes.has_value();
    const ValueType& type = program_.value(node.results[0]).type;
    const std::optional<Sizes> stated = one.try_to_find_sizes(node.results[0]);
    if (stated && !one.is_guess() && *stated != *sizes) refuse_sizes(node, type, dtype_name(type.dtype), *sizes, one);
    return true;
  }

  // False where there is no such form.
  bool call(const Node& node, Form form) {
    Call one(program_, sizing_, numbers_, form);
    std::optional<std::vector<c10::IValue>> results = try_to_run(node, one);
    if (!results) return false;
    if (results->size() == 1 && (*results)[0].isTensorList()) {
      const c10::IValue list = (*results)[0];
      if (node.results.size() == 1) {
        lists_.emplace(node.results[0], MadeList{list.toListRef().vec(), one});
        return true;
      }
      results->assign(list.toListRef().begin(), list.toListRef().end());
    }
    for (size_t i = 0; i < node.results.size() && i < results->size(); ++i) {
      const c10::IValue& made = (*results)[i];
      if (node.results[i] == ValueId::none) continue;
      if (made.isTensor() && made.toTensor().defined()) check_result(node, i, made.toTensor(), one);
      const bool is_value = made.isInt() || made.isDouble() || made.isBool();
      if (is_value && form != Form::a_few) numbers_[node.results[i]] = {made, one.is_exact(), one.is_guess()};
    }
    return true;
  }

  // Whether other sizes than the bound ones, or other elements than zeros, may be taken where these are refused.
  static bool may_differ(const Call& one) {
    return one.is_guess() || one.has_bound_number() || one.form() == Form::a_few;
  }

  static std::optional<std::vector<c10::IValue>> try_to_run(const Node& node, Call& one) {
    try {
      return one.run(node);
    } catch (const Unknown&) {
    } catch (const c10::NotImplementedError&) {
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported && !may_differ(one)) throw;
    } catch (const c10::Error& error) {
      if (!may_differ(one) && !is_missing_form(error.what_without_backtrace()))
        refuse(node, error.what_without_backtrace());
    } catch (const std::exception& error) {
      if (!may_differ(one) && !is_missing_form(error.what())) refuse(node, error.what());
    }
    return std::nullopt;
  }

  // Some operands are read at once, so they have to be on the CPU. In a Python process torch has forms for the meta
  // device that are written in Python, with errors of their own, and where a Ctrl-C arrives too: who called sees to it.
  static bool is_missing_form(std::string_view message) {
    constexpr std::array kKinds = {"on meta",          "meta tensor",        "NotImplemented",
                                   "DataDependent",    "DynamicOutputShape", "UnsupportedOperator",
                                   "KeyboardInterrupt"};
    return std::ranges::any_of(kKinds, [&](const char* kind) { return message.find(kind) != std::string_view::npos; });
  }

  [[noreturn]] static void refuse(const Node& node, const std::string& why) {
    throw_error(ErrorKind::invalid_input, describe_node(node), ": ", why);
  }

  // Of what may be too large to be called: lowering reads one scale, and one number of the bias, for each output.
  void check_scales(const Node& node) const {
    const auto find = [&](const char* name) -> const at::Tensor* {
      const int position = node.op.argument_index(name);
      if (position < 0 || !node.arguments[static_cast<size_t>(position)].is_value()) return nullptr;
      const Weight* weight = program_.find_weight(node.arguments[static_cast<size_t>(position)].value());
      return weight == nullptr ? nullptr : &weight->tensor;
    };
    const at::Tensor *weight = find("weight"), *scales = find("weight_scales"), *bias = find("bias");
    if (weight == nullptr || weight->dim() < 2 || node.is("lissome::linear_group")) return;
    const bool layer = node.is("lissome::lstm_layer") || node.is("lissome::gru_layer");
    const bool transposed =
        node.op.name().find("transposed") != std::string::npos ||
        (node.op.argument_index("transposed") >= 0 && node.argument("transposed") == Argument(true));
    if (node.is("lissome::conv_act") && transposed) return;  // outputs times groups
    const int64_t outputs = layer ? weight->size(0) * weight->size(1) : weight->size(transposed ? 1 : 0);
    if (scales != nullptr && scales->numel() != outputs)
      refuse(node,
             "there are " + std::to_string(scales->numel()) + " scales for " + std::to_string(outputs) + " outputs");
    if (bias != nullptr && !layer && bias->numel() != outputs)
      refuse(node,
             "the bias has " + std::to_string(bias->numel()) + " numbers for " + std::to_string(outputs) + " outputs");
  }

  // Of layers of ours, over two dimensions unless the weight says otherwise.
  void check_window(const Node& node) const {
    const bool pool = is_among(kPools, node.op);
    size_t spatial = 2;
    if (!pool) {
      if (!is_among(kConvolutions, node.op) || !node.argument("weight").is_value()) return;
      const ValueType& weight = program_.value(node.argument("weight").value()).type;
      if (!weight.sized || weight.sizes.size() < 3) return;  // check_convolution() says so
      spatial = weight.sizes.size() - 2;
    }
    for (const char* name : {"kernel_size", "stride", "padding", "dilation", "output_padding"}) {
      const int position = node.op.argument_index(name);
      if (position < 0 || !node.arguments[static_cast<size_t>(position)].is_list()) continue;
      const ArgumentList& numbers = node.arguments[static_cast<size_t>(position)].list();
      const std::string_view word = name;
      const bool by_default = pool && word == "stride" && numbers.empty();  // as large as the kernel
      const bool both_ends = !pool && word == "padding" && numbers.size() == 2 * spatial;
      const int64_t least = word == "padding" || word == "output_padding" ? 0 : 1;
      bool fits = by_default || both_ends || numbers.size() == 1 || numbers.size() == spatial;
      for (const Argument& number : numbers) {
        const auto* value = number.get<int64_t>();
        fits = fits && (value == nullptr || (*value >= least && *value <= INT32_MAX));
      }
      if (!fits)
        refuse(node, "'" + std::string(name) + "' is not a size for each of " + std::to_string(spatial) +
                         " dimensions, or out of range");
    }
  }

  // Without a form of its own in libtorch alone.
  void check_convolution(const Node& node) const {
    const Argument &input = node.arguments[0], &weight = node.argument("weight");
    if (!input.is_value() || !weight.is_value()) return;
    const ValueType &x = program_.value(input.value()).type, &w = program_.value(weight.value()).type,
                    &y = program_.value(node.result()).type;
    if (!x.sized || !w.sized || !y.sized) return;
    const auto* groups = node.argument("groups").get<int64_t>();
    const bool unbatched = x.sizes.size() + 1 == w.sizes.size();
    if (y.sizes.size() != x.sizes.size() || (x.sizes.size() != w.sizes.size() && !unbatched) || w.sizes.size() < 3)
      refuse(node, "input, weight and result have the ranks " + std::to_string(x.sizes.size()) + ", " +
                       std::to_string(w.sizes.size()) + " and " + std::to_string(y.sizes.size()));
    if (groups == nullptr) return;
    const auto channels = x.sizes[unbatched ? 0 : 1].constant(), first = w.sizes[0].constant(),
               second = w.sizes[1].constant();
    const bool transposed = node.op.argument_index("transposed") >= 0 && node.argument("transposed") == Argument(true);
    bool fits = *groups >= 1 && (!first || *first % *groups == 0);
    if (fits && channels && first && second)
      fits = transposed ? *channels == *first : *second <= *channels && *second * *groups == *channels;
    if (!fits) refuse(node, "input and weight do not fit " + std::to_string(*groups) + " groups");
  }

  void check_result(const Node& node, size_t i, const at::Tensor& made, Call& one) const {
    const ValueType& type = program_.value(node.results[i]).type;
    if (type.kind != ValueKind::tensor) return;
    // Of statistics behind a first result in bf16 libtorch's two devices disagree.
    bool fits = i > 0 || scalar_type_of(type.dtype) == made.scalar_type();
    if (type.sized && !(one.is_guess() && is_among(kSqueezes, node.op))) {
      fits = fits && static_cast<int64_t>(type.sizes.size()) == made.dim();
      try {
        const Sizes sizes = one.find_sizes(type);
        fits = fits && (one.is_guess() || made.sizes() == sizes);
      } catch (const Unknown&) {  // the rank is what is known
      }
    }
    if (!fits) refuse_sizes(node, type, dtype_name(dtype_of(made.scalar_type())), made.sizes().vec(), one);
  }

  void refuse_sizes(const Node& node, const ValueType& type, std::string_view dtype, const Sizes& made,
                    const Call& one) const {
    std::vector<std::string> stated;
    for (const Dimension& size : type.sizes) stated.push_back(size.print());
    const std::string why = "the result is " + std::string(dtype) + " of " + std::to_string(made.size()) +
                            " dimensions, " + format_sizes(made) + " for sizes like these; the file says " +
                            std::string(dtype_name(type.dtype)) + "[" + join(stated, ", ") + "]";
    if (!one.has_bound_number()) refuse(node, why);
    if (doubt_.empty()) doubt_ = describe_node(node) + ": " + why;
  }

  const Program& program_;
  const Sizing& sizing_;
  std::string& doubt_;
  Numbers numbers_;
  std::map<ValueId, MadeList> lists_;
};

}  // namespace

void check_types(const Program& program) {
  for (const int64_t size : {kSize, kOtherSize}) {
    std::string doubt;
    const Sizing sizing = bind_dimensions(program, size);
    TypeChecker(program, sizing, doubt).check();
    if (doubt.empty()) return;
    if (size == kOtherSize) throw Error(ErrorKind::invalid_input, doubt);
  }
}

}  // namespace lissome
