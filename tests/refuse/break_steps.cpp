// Twins that break a rule of one step, as its schema has them: operands and results (count, dtype, kind, layout, order,
// position, sizes) and attributes (presence, type, range, names).
#include <algorithm>
#include <cmath>

#include "lissome/runtime/step/step_binder.h"
#include "lissome/runtime/step/step_schema.h"
#include "tests/refuse/twins.h"

namespace lissome {
namespace {

constexpr int64_t kHuge = int64_t{1} << 30, kLarger = int64_t{1} << 40;
constexpr Dtype kWrongDtypes[] = {Dtype::f64, Dtype::i16, Dtype::c64, Dtype::u8};

std::optional<Dtype> find_wrong_dtype(const DtypeSet& allowed) {
  for (const Dtype dtype : kWrongDtypes) {
    if (!allowed.holds(dtype)) return dtype;
  }
  return std::nullopt;
}

// How much of a size the other sizes of a step leave open.
enum class Fit : uint8_t {
  exact,
  rounds,      // a packed weight is rounded up to whole blocks: one number more may fit it, 64 never do
  slides,      // a window may leave some lines over: one line more or fewer may fit, not eight, not a single one
  broadcasts,  // 1 fits too
  holds,       // it must only be large enough: one of size 1 is not
  any,         // the step declares that it is open
};

struct FitRow {
  std::string_view kernels, values;  // " conv_f32 conv_bf16 "
  std::vector<size_t> dims;
  Fit fit;
};
const FitRow kFits[] = {
    {" conv_bf16 conv_f32 conv_u8s8 conv_data_f32 conv_weight_bf16 conv_weight_f32 depthwise_bf16 depthwise_f32 "
     "depthwise_transposed_bf16 depthwise_transposed_f32 depthwise_u8s8 grouped_bf16 grouped_f32 grouped_u8s8 "
     "inverted_f32 "
     "separable_f32 winograd_f32 winograd_u8s8 pool average_pool_u8 max_pool_indices max_pool_gradient ",
     " x y dx dy ",
     {2, 3},
     Fit::slides},
    {" col2im ", " columns ", {1, 2}, Fit::slides},
    {" col2im ", " y ", {2, 3}, Fit::slides},
    {" conv_bf16 inverted_f32 linear_bf16 linear_u8s8 conv_transposed_u8s8 ", " x ", {1}, Fit::rounds},
    {" linear_bf16 linear_u8s8 ", " x ", {2}, Fit::rounds},
    {" inverted_f32 separable_f32 ", " y ", {1}, Fit::rounds},
    {" pack_conv_f32 pack_conv_bf16 ", " weight ", {0, 1}, Fit::rounds},
    {" elementwise ", " operand ", {0, 1, 2, 3}, Fit::broadcasts},
    {" matmul_f32 matmul_bf16 ", " a b ", {0}, Fit::broadcasts},
};

bool names(std::string_view list, std::string_view word) {
  return list.find(" " + std::string(word) + " ") != std::string_view::npos;
}

Fit find_fit(std::string_view kernel, std::string_view value, size_t dim) {
  for (const FitRow& row : kFits) {
    const bool holds = std::count(row.dims.begin(), row.dims.end(), dim) > 0;
    if (holds && names(row.kernels, kernel) && names(row.values, value)) return row.fit;
  }
  return Fit::exact;
}

// By how much to change a size so that it fits no more.
std::vector<int64_t> list_changes(Fit fit, int64_t size) {
  switch (fit) {
    case Fit::exact: return {1, -1};
    case Fit::rounds: return {64};
    case Fit::slides: return size >= 5 ? std::vector<int64_t>{8, 1 - size} : std::vector<int64_t>{8};
    case Fit::broadcasts: return size == 2 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, -1};
    case Fit::holds: return size > 1 ? std::vector<int64_t>{1 - size} : std::vector<int64_t>{};
    case Fit::any: return {};
  }
  return {};
}

const ValueRule* find_rule(std::span<const ValueRule> rules, size_t position) {
  if (position < rules.size()) return &rules[position];
  return !rules.empty() && rules.back().presence == Presence::repeated ? &rules.back() : nullptr;
}

// Breaks one step of a seed.
class StepBreaker {
 public:
  StepBreaker(const Seed& seed, size_t position, Twins& twins)
      : seed_(seed),
        position_(position),
        step_(seed.plan.steps[position]),
        schema_(find_step_row(step_.kernel).schema),
        twins_(twins) {}

  void break_all() const {
    for (size_t i = 0; i < schema_.operands.size(); ++i) break_operand(i);
    for (size_t i = 0; i < step_.results.size(); ++i) break_result(i);
    break_counts();
    for (const AttributeRule& rule : schema_.attributes) break_attribute(rule);
    Twin unknown = make("attributes: unknown", {"no attribute 'no_such_attribute'"});
    at(unknown)["attributes"]["no_such_attribute"] = 1;
    add(std::move(unknown));
  }

 private:
  Fit find_fit_here(const ValueRule& rule, size_t dim) const {
    const bool slices = step_.kernel == "view" && step_.attributes.text("form", "") == "slice" &&
                        step_.attributes.integer("dim", -1) == static_cast<int64_t>(dim);
    if (slices) return rule.name == "x" ? Fit::holds : Fit::any;
    return (rule.open >> dim & 1) != 0 ? Fit::any : find_fit(step_.kernel, rule.name, dim);
  }

  // A fault that the plan's own check tells, which need not name the kernel.
  Twin make_plain(const std::string& rule, std::vector<std::string> words) const {
    return {step_.kernel + ": " + rule, std::move(words), seed_.json, {}, false};
  }
  Twin make(const std::string& rule, std::vector<std::string> words) const {
    words.push_back(step_.kernel);
    return make_plain(rule, std::move(words));
  }
  Json& at(Twin& twin) const { return twin.plan["steps"][position_]; }
  void add(Twin twin) const { twins_.add(seed_, std::move(twin)); }
  static std::string name_value(std::string_view what, const ValueRule& rule) {
    return std::string(what) + " '" + std::string(rule.name) + "'";
  }

  // ---- operands

  void set_operand(Twin& twin, size_t i, PlanValueId value) const {
    Json& operands = at(twin)["operands"];
    while (operands.size() <= i) operands.push_back(-1);
    operands[i] = value;
  }

  void break_operand(size_t i) const {
    const ValueRule& rule = schema_.operands[i];
    const std::string what = name_value("operand", rule);
    const bool given = i < step_.operands.size() && is_value(step_.operands[i]);
    if (rule.presence == Presence::absent) {
      Twin twin = make(what + ": given", {what + " is given"});
      set_operand(twin, i, add_constant(twin, Dtype::f32, {1}));
      return add(std::move(twin));
    }
    if (rule.presence != Presence::optional && given) {
      // Views are held against that before anything else.
      const bool views = step_.kernel == "view" && i == 0;
      Twin twin = make(what + ": missing", {views ? "is a view of nothing" : what + " is missing"});
      if (views) twin.words.pop_back();
      set_operand(twin, i, PlanValueId::none);
      add(std::move(twin));
    }
    if (const auto wrong = find_wrong_dtype(rule.dtypes)) {
      Twin twin = make(what + ": dtype", {what + " is " + std::string(dtype_name(*wrong))});
      set_operand(twin, i, add_constant(twin, *wrong, given ? seed_.sizes_of(step_.operands[i]) : Sizes{1}));
      add(std::move(twin));
    }
    if (!given) return;
    break_reference_to(i, what);
    break_operand_layout(i, rule, what);
    // What reload takes is made by offload: nothing stands for it.
    if (rule.name != "ticket") break_operand_sizes(i, rule, what);
  }

  // What an operand's number says.
  void break_reference_to(size_t i, const std::string& what) const {
    Twin outside = make_plain(what + ": position", {"there is no value"});
    set_operand(outside, i, static_cast<PlanValueId>(seed_.plan.values.size()));
    add(std::move(outside));
    Twin before = make_plain(what + ": order", {"is used before it is made"});
    set_operand(before, i, step_.results[0]);
    add(std::move(before));
    const auto value = static_cast<size_t>(step_.operands[i]);
    Twin number = make_plain(what + ": kind", {"integer"});
    number.plan["values"][value]["kind"] = "integer";
    add(std::move(number));
    if (!seed_.plan.values[value].sized || seed_.plan.values[value].array >= 0) return;
    Twin unsized = make_plain(what + ": sizes stated", {"has no"});
    unsized.plan["values"][value].erase("dtype");
    unsized.plan["values"][value].erase("sizes");
    add(std::move(unsized));
  }

  // The same values from one element, by strides of 0.
  void break_operand_layout(size_t i, const ValueRule& rule, const std::string& what) const {
    const PlanValueId value = step_.operands[i];
    const Sizes sizes = seed_.sizes_of(value);
    const bool shows = rule.layout == ValueLayout::dense_rows
                           ? !sizes.empty() && sizes.back() > 1
                           : count_elements(sizes) > 1 && rule.layout != ValueLayout::any;
    if (!shows) return;
    Twin twin = make(what + ": layout", {what, "is not dense"});
    const Dtype dtype = seed_.plan.value(value).dtype;
    const PlanValueId element = add_constant(twin, dtype, Sizes(sizes.size(), 1));
    const PlanValueId spread =
        add_value(twin, {{"name", "twin.spread"}, {"storage", "view"}, {"dtype", dtype_name(dtype)}, {"sizes", sizes}});
    set_operand(twin, i, spread);
    Json& steps = twin.plan["steps"];
    steps.insert(
        steps.begin() + static_cast<std::ptrdiff_t>(position_),
        Json{{"kernel", "view"}, {"attributes", {{"form", "expand"}}}, {"operands", {element}}, {"results", {spread}}});
    add(std::move(twin));
  }

  // A constant in the operand's place runs where its sizes are the same (the control), not where one of them is off.
  void break_operand_sizes(size_t i, const ValueRule& rule, const std::string& what) const {
    const PlanValueId value = step_.operands[i];
    const PlanValue& planned = seed_.plan.value(value);
    const Sizes sizes = seed_.sizes_of(value);
    const auto replace = [&](const std::string& fault, const Sizes& wanted, bool runs) {
      Twin twin = make(what + ": " + fault, {});
      const PlanValueId constant = add_constant(twin, planned.dtype, wanted);
      if (planned.format != Format::row_major) {
        twin.plan["values"][static_cast<size_t>(constant)]["format"] = format_name(planned.format);
      }
      set_operand(twin, i, constant);
      twin.runs = runs;
      add(std::move(twin));
    };
    replace("control", sizes, true);
    // Rows that are summed alone may be as many as they like.
    const bool is_alone = step_.kernel == "channel_sums" && rule.name == "dy" && !is_value(step_.operands[0]);
    const ValueRule& as = is_alone ? schema_.operands[0] : rule;
    for (size_t d = 0; d < sizes.size(); ++d) {
      for (const int64_t by : list_changes(find_fit_here(as, d), sizes[d])) {
        Sizes other = sizes;
        other[d] += by;
        replace("size " + std::to_string(d) + (by > 0 ? " larger" : " smaller"), other, false);
      }
    }
    break_product(what, value);
  }

  void break_product(const std::string& what, PlanValueId value) const {
    const Storage storage = seed_.plan.value(value).storage;
    if (storage == Storage::constant || storage == Storage::state) return;
    for (const Sizes& sizes : {Sizes{kHuge, kHuge, 0}, Sizes{kLarger, kLarger}}) {
      Twin twin = make_plain(what + ": product of sizes", {"is larger than"});
      if (sizes[0] == kLarger) twin.rule += " that overflows";
      twin.plan["values"][static_cast<size_t>(value)]["sizes"] = sizes;
      add(std::move(twin));
    }
  }

  // ---- results

  bool is_read(PlanValueId value) const {
    return std::any_of(seed_.plan.steps.begin(), seed_.plan.steps.end(), [&](const PlanStep& step) {
      return std::find(step.operands.begin(), step.operands.end(), value) != step.operands.end();
    });
  }

  void break_result(size_t i) const {
    const ValueRule* rule = find_rule(schema_.results, i);
    if (rule == nullptr) return;
    const std::string what = name_value("result", *rule);
    const PlanValueId value = step_.results[i];
    const auto place = static_cast<size_t>(value);
    if (const auto wrong = find_wrong_dtype(rule->dtypes)) {
      Twin twin = make(what + ": dtype", {what + " is " + std::string(dtype_name(*wrong))});
      twin.plan["values"][place]["dtype"] = dtype_name(*wrong);
      add(std::move(twin));
    }
    // A step that takes every dtype moves bytes: the result is of the operands' dtype.
    if (rule->dtypes.holds(Dtype::c128) && !is_read(value)) {
      Twin twin = make(what + ": another dtype", {});
      twin.plan["values"][place]["dtype"] = "c128";
      add(std::move(twin));
    }
    Twin number = make_plain(what + ": kind", {"integer"});
    number.plan["values"][place]["kind"] = "integer";
    add(std::move(number));
    const Sizes sizes = seed_.sizes_of(value);
    const PlanValue& planned = seed_.plan.value(value);
    const Format other = planned.format == Format::row_major ? Format::channels_last : Format::row_major;
    const bool is_fixed = rule->layout == ValueLayout::row_major || rule->layout == ValueLayout::channels_last;
    PlacedValue lies{planned.dtype, sizes, dense_strides(sizes, other), -1, 0};
    if (is_fixed && planned.storage != Storage::view && !lies.is_dense(planned.format)) {
      Twin twin = make(what + ": layout", {what, "is not dense"});
      twin.plan["values"][place]["format"] = format_name(other);
      add(std::move(twin));
    }
    break_result_sizes(value, *rule, what);
    break_product(what, value);
  }

  void break_result_sizes(PlanValueId value, const ValueRule& rule, const std::string& what) const {
    const Sizes sizes = seed_.sizes_of(value);
    for (size_t d = 0; d < sizes.size(); ++d) {
      for (const int64_t by : list_changes(find_fit_here(rule, d), sizes[d])) {
        Twin twin = make(what + ": size " + std::to_string(d) + (by > 0 ? " larger" : " smaller"), {});
        Json& size = twin.plan["values"][static_cast<size_t>(value)]["sizes"][d];
        if (size.is_string()) {
          size = size.get<std::string>() + (by > 0 ? " + " : " - ") + std::to_string(std::abs(by));
        } else {
          size = sizes[d] + by;
        }
        add(std::move(twin));
      }
    }
  }

  void break_counts() const {
    const bool repeats = !schema_.operands.empty() && schema_.operands.back().presence == Presence::repeated;
    if (!repeats) {
      Twin more = make("operands: one too many", {"operands are given"});
      set_operand(more, schema_.operands.size(), add_constant(more, Dtype::f32, {1}));
      for (size_t i = step_.operands.size(); i < schema_.operands.size(); ++i) set_operand(more, i, PlanValueId::none);
      add(std::move(more));
    }
    const std::string storage = step_.kernel == "view" ? "view" : "arena";
    const auto extra = [&](Twin& twin) {
      return add_value(twin, {{"name", "twin.extra"}, {"storage", storage}, {"dtype", "f32"}, {"sizes", {1}}});
    };
    Twin more = make("results: one too many", {"results are given"});
    while (at(more)["results"].size() <= schema_.results.size()) at(more)["results"].push_back(extra(more));
    add(std::move(more));
    Twin none = make("results: none", {"makes nothing"});
    at(none)["results"] = Json::array();
    add(std::move(none));
    if (step_.results.size() < 2 || schema_.results[step_.results.size() - 1].presence == Presence::optional) return;
    const std::string what = name_value("result", schema_.results[step_.results.size() - 1]);
    Twin fewer = make(what + ": missing", {what + " is missing"});
    at(fewer)["results"].erase(step_.results.size() - 1);
    add(std::move(fewer));
  }

  // ---- attributes

  void set_attribute(const AttributeRule& rule, const std::string& fault, const std::string& words, Json value) const {
    const std::string what = "attribute '" + std::string(rule.name) + "'";
    Twin twin = make(what + ": " + fault, {what + words});
    at(twin)["attributes"][std::string(rule.name)] = std::move(value);
    add(std::move(twin));
  }

  void break_attribute(const AttributeRule& rule) const {
    const std::string what = "attribute '" + std::string(rule.name) + "'", name(rule.name);
    const Attribute* given = step_.attributes.find(rule.name);
    if (rule.required && given != nullptr) {
      Twin twin = make(what + ": missing", {what + " is missing"});
      at(twin)["attributes"].erase(name);
      add(std::move(twin));
    }
    const bool is_text = rule.type == AttributeType::text || rule.type == AttributeType::texts;
    set_attribute(rule, "type", " must be", is_text ? Json(7) : Json("seven"));
    if (rule.type == AttributeType::integer || rule.type == AttributeType::integers) break_integers(rule, given);
    if (rule.type == AttributeType::number) break_number(rule);
    if (rule.type == AttributeType::text && rule.known != nullptr) {
      set_attribute(rule, "unknown word", " is 'no_such_word'", "no_such_word");
    }
    if (rule.type == AttributeType::texts && given != nullptr) break_texts(rule, given);
  }

  void break_integers(const AttributeRule& rule, const Attribute* given) const {
    const auto* numbers = given == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(given);
    const auto put = [&](int64_t number) -> Json {
      if (rule.type == AttributeType::integer) return number;
      Json list = numbers == nullptr || numbers->empty() ? Json{number} : Json(*numbers);
      list[0] = number;
      return list;
    };
    if (rule.least > INT64_MIN) set_attribute(rule, "below its range", " is ", put(rule.least - 1));
    if (rule.most < INT64_MAX) set_attribute(rule, "above its range", " is ", put(rule.most + 1));
    if (numbers == nullptr || numbers->empty()) return;
    Json longer = *numbers, shorter = *numbers;
    longer.push_back(numbers->back());
    shorter.erase(shorter.size() - 1);
    set_length(rule, "one number more", longer);
    set_length(rule, "one number fewer", shorter);
  }

  void set_length(const AttributeRule& rule, const std::string& fault, Json list) const {
    Twin twin = make("attribute '" + std::string(rule.name) + "': " + fault, {});
    at(twin)["attributes"][std::string(rule.name)] = std::move(list);
    add(std::move(twin));
  }

  void break_number(const AttributeRule& rule) const {
    if (!rule.nan_allowed) set_attribute(rule, "NaN", " is ", {{"number", "nan"}});
    if (std::isfinite(rule.smallest)) set_attribute(rule, "below its range", " is ", rule.smallest - 1.0);
    if (std::isfinite(rule.largest)) set_attribute(rule, "above its range", " is ", {{"number", "inf"}});
  }

  // The instructions of an element-wise step.
  void break_texts(const AttributeRule& rule, const Attribute* given) const {
    const auto texts = std::get<std::vector<std::string>>(*given);
    const auto put = [&](const std::string& fault, std::vector<std::string> changed) {
      Twin twin = make("attribute '" + std::string(rule.name) + "': " + fault, {});
      at(twin)["attributes"][std::string(rule.name)] = std::move(changed);
      add(std::move(twin));
    };
    Twin none = make_plain("attribute 'program': no instruction", {"'program'"});
    at(none)["attributes"]["program"] = Json::array();
    add(std::move(none));
    put("unknown operation", {"no_such_operation 0 0 0 0 0 0"});
    put("unknown operand", {"load 0 9 0 0 0 0"});
    put("negative operand", {"load 0 -1 0 0 0 0"});
    put("unknown target", {"load 99 0 0 0 0 0"});
    put("empty register", {"load 0 0 0 0 0 0", "multiply 1 0 5 0 0 0"});
    put("unknown register", {"load 0 0 0 0 0 0", "multiply 1 0 99 0 0 0"});
    put("a number that is a word", {"load 0 0 0 0 many 0"});
    put("a number too few", {"load 0 0 0 0 0"});
    put("too many instructions", std::vector<std::string>(1000, "load 0 0 0 0 0 0"));
  }

  const Seed& seed_;
  const size_t position_;
  const PlanStep& step_;
  const StepSchema& schema_;
  Twins& twins_;
};

}  // namespace

void break_steps(const Seed& seed, Twins& twins) {
  for (size_t i = 0; i < seed.plan.steps.size(); ++i) {
    if (seed.plan.steps[i].kernel != kReferenceStep) StepBreaker(seed, i, twins).break_all();
  }
}

}  // namespace lissome
