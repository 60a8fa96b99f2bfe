#include "lissome/runtime/step/step_test_cases.h"

#include <doctest/doctest.h>

#include <ctime>
#include <memory>
#include <stdexcept>
#include <tuple>

#include "lissome/kernel.h"
#include "lissome/runtime/session/session.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

namespace lissome::step_cases {
namespace {

void add_attention(std::vector<StepCase>& cases) {
  const Entries form = {{"scale", 0.5}, {"causal", number(1)}, {"heads_last", number(0)}};
  const Sizes heads = {1, 2, 5, 4}, rows = {1, 2, 5};
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const std::string end = dtype == Dtype::f32 ? "" : "_bf16";
    const CaseValue x = {dtype, heads}, mask = {dtype, {5, 5}}, logarithms = f32(rows);
    cases.push_back(make_case("attention" + end, form, {x, x, x, mask}, {x, logarithms}));
    cases.push_back(make_case("attention_gradient" + end, form, {x, x, x, mask, x, logarithms, x}, {x, x, x}));
  }
  cases.push_back(
      make_case("attention_u8s8", form, {f32(heads), f32(heads), f32(heads), {Dtype::boolean, {5, 5}}}, {f32(heads)}));
}

void add_batch_norm(std::vector<StepCase>& cases) {
  const Entries window = {{"kernel", list({2, 2})}, {"stride", list({2, 2})}};
  const CaseValue c = f32({3}), sums = {Dtype::f64, {kChannelBlocks, 2, 3}};
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const CaseValue x = {dtype, {2, 3, 4, 4}, kLast}, pooled = {dtype, {2, 3, 2, 2}, kLast};
    const CaseValue indices = {Dtype::u8, {2, 3, 2, 2}, kLast};
    cases.push_back(make_case("channel_sums alone", {}, {x}, {sums}));
    cases.push_back(make_case("channel_sums", {}, {x, x, x, c, c, c}, {sums}));
    cases.push_back(make_case("channel_sums pooled", window, {x, pooled, x, c, c, c, indices}, {sums}));
    cases.push_back(make_case("batch_norm_statistics", {{"momentum", 0.1}, {"epsilon", 1e-5}}, {sums, x, c, c, c, c},
                              {c, c, c, c, c, c}));
    cases.push_back(make_case("batch_norm_gradients", {}, {sums, c, c, x}, {c, c, c, c, c}));
    cases.push_back(make_case("channel_affine", {{"relu", number(1)}}, {x, c, c, x, c, c, x, c, c}, {x}));
    cases.push_back(
        make_case("channel_affine pooled", window, {kAbsent, c, c, x, c, c, x, c, c, pooled, indices}, {x}));
  }
  cases.push_back(make_case("channel_totals", {}, {sums}, {c}));
}

void add_gradients(std::vector<StepCase>& cases) {
  const Entries loss = {{"mean", number(1)}, {"ignored", number(-100)}};
  const CaseValue one = f32({}), scores = f32({5, 7}), shares = f32({kGradientShares, 4});
  cases.push_back(make_case("nll_loss", loss, {scores, i64({5})}, {one, one}));
  cases.push_back(make_case("nll_loss images", loss, {f32({2, 7, 3, 3}, kLast), i64({2, 3, 3})}, {one, one}));
  cases.push_back(make_case("cross_entropy_gradient", loss, {scores, i64({5}), one, one}, {scores}));
  cases.push_back(make_case("embedding_gradient", {{"padding", number(-1)}}, {f32({5, 4}), i64({5})}, {f32({6, 4})}));
  cases.push_back(make_case("layer_norm_gradient", {{"width", number(4)}},
                            {f32({3, 4}), f32({3, 4}), f32({3}), f32({3}), f32({4})}, {f32({3, 4}), shares, shares}));
  cases.push_back(make_case("softmax_gradient", {{"logarithm", number(1)}}, {f32({3, 4}), f32({3, 4})}, {f32({3, 4})}));
}

void add_images_and_norms(std::vector<StepCase>& cases) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const std::string end = dtype == Dtype::f32 ? "" : "_bf16";
    const CaseValue x = {dtype, {2, 4, 3, 3}, kLast}, c = {dtype, {4}};
    cases.push_back(make_case(
        "group_norm" + end, {{"groups", number(2)}, {"epsilon", 1e-5}, {"activation", text("silu")}}, {x, c, c}, {x}));
    cases.push_back(make_case("interpolate" + end, {{"bilinear", number(1)}, {"scale_height", 0.5}},
                              {{dtype, {1, 3, 4, 4}, kLast}}, {{dtype, {1, 3, 8, 8}, kLast}}));
  }
  const CaseValue x = f32({3, 4}), width = f32({4}), rows = f32({3});
  cases.push_back(make_case("layer_norm", {{"width", number(4)}, {"epsilon", 1e-5}}, {x, x, width, width}, {x, x}));
  cases.push_back(make_case("layer_norm statistics", {{"width", number(4)}, {"statistics", number(1)}},
                            {x, kAbsent, width, width}, {x, rows, rows}));
  cases.push_back(make_case("softmax", {}, {x}, {x}));
  cases.push_back(
      make_case("softmax channels", {{"channels", number(1)}}, {f32({2, 4, 3, 3}, kLast)}, {f32({2, 4, 3, 3}, kLast)}));
  cases.push_back(make_case("dropout", {{"keep", 0.5}, {"stream", number(3)}}, {f32({70}), i64({})}, {f32({70})}));
  cases.push_back(
      make_case("dropout narrow", {{"keep", 0.5}, {"stream", number(3)}}, {bf16({70}), i64({})}, {bf16({70})}));
}

void add_moves(std::vector<StepCase>& cases) {
  const Entries along = {{"dim", number(1)}};
  const CaseValue x = f32({2, 3}), y = f32({2, 3, 4});
  cases.push_back(make_case("concat", along, {x, f32({2, 2})}, {f32({2, 5})}));
  cases.push_back(make_case("copy", {}, {y}, {y}));
  cases.push_back(make_case("cumulate", along, {x}, {x}));
  cases.push_back(make_case("gather_rows", {}, {f32({6, 4}), i64({5})}, {f32({5, 4})}));
  const Entries packed = {{"rows", number(6)}, {"columns", number(4)}};
  cases.push_back(
      make_case("gather_rows packed", packed, {f32({packed_linear_f32_size(6, 4)}), i64({5})}, {f32({5, 4})}));
  cases.push_back(make_case("gather_rows packed narrow", packed, {bf16({packed_linear_bf16_size(6, 4)}), i64({5})},
                            {bf16({5, 4})}));
  cases.push_back(
      make_case("pad", {{"before", list({0, 1})}, {"after", list({1, -1})}, {"value", 2.0}}, {x}, {f32({3, 3})}));
  cases.push_back(make_case("reduce", {{"first", number(1)}, {"count", number(1)}, {"reduction", text("mean")}}, {y},
                            {f32({2, 4})}));
  cases.push_back(make_case("reduce narrow", {{"first", number(2)}, {"count", number(2)}, {"channels_last", number(1)}},
                            {bf16({2, 3, 4, 5}, kLast)}, {bf16({2, 3})}));
  cases.push_back(make_case("find_largest", along, {f32({3, 4})}, {i64({3})}));
  cases.push_back(make_case("gather", {{"form", text("index")}, {"dim", number(0)}},
                            {f32({4, 5}), i64({3, 1}), i64({2})}, {f32({3, 2})}));
  cases.push_back(make_case("gather along", {{"form", text("gather")}, {"dim", number(1)}}, {f32({4, 5}), i64({4, 2})},
                            {f32({4, 2})}));
  cases.push_back(make_case("elementwise",
                            {{"program", program({"load 0 0 0 0 0 0", "load 1 1 0 0 0 0", "add 2 0 1 0 0 0"})}},
                            {f32({3, 1, 4}), f32({4})}, {f32({3, 2, 4})}));
  cases.push_back(make_case("elementwise integers",
                            {{"integers", number(1)}, {"program", program({"load 0 0 0 0 0 0"})}},
                            {{Dtype::boolean, {3}}}, {i64({3})}));
  const auto add_view = [&](const char* form, Entries entries, std::vector<CaseValue> from, Sizes to) {
    entries.emplace_back("form", text(form));
    cases.push_back(make_case(std::string("view ") + form, std::move(entries), from, {f32(std::move(to))}));
  };
  add_view("reshape", {}, {y}, {6, 4});
  add_view("split", {}, {y}, {2, 3, 2, 2});
  add_view("merge", {}, {y}, {2, 12});
  add_view("permute", {{"dims", list({2, 0, 1})}}, {y}, {4, 2, 3});
  add_view("expand", {}, {f32({1, 3})}, {2, 2, 3});
  add_view("slice", {{"dim", number(1)}, {"start", number(-2)}, {"step", number(1)}}, {y}, {2, 2, 4});
  add_view("select", {{"dim", number(1)}, {"index", number(2)}}, {y}, {2, 4});
  add_view("slice", {{"dim", number(1)}, {"start", number(0)}, {"measured", number(0)}}, {y, f32({2})}, {2, 1, 4});
  cases.push_back(make_spill(0));
  cases.push_back(make_spill(1));
}

}  // namespace

PlanValueId add_value(Plan& plan, const CaseValue& value, Storage storage) {
  const std::vector<SizeExpression> sizes(value.sizes.begin(), value.sizes.end());
  const std::string name = "v" + std::to_string(plan.values.size());
  int array = -1;
  if (storage == Storage::constant) {
    array = static_cast<int>(plan.arrays.size());
    plan.arrays.push_back({name, false, make_array(value.dtype, value.sizes)});
  }
  return plan.add_value({name, storage, PlanKind::tensor, value.dtype, true, sizes, value.format, array});
}

PlanValueId add_result(Plan& plan, const CaseValue& value, Storage storage) {
  const PlanValueId id = add_value(plan, value, storage);
  plan.outputs.push_back({"o" + std::to_string(static_cast<int>(id)), id, {}});
  return id;
}

StepCase make_case(const std::string& name, Entries attributes, const std::vector<CaseValue>& operands,
                   const std::vector<CaseValue>& results) {
  StepCase made{.name = name};
  PlanStep step;
  step.kernel = name.substr(0, name.find(' '));
  step.attributes.entries = std::move(attributes);
  for (const CaseValue& value : operands)
    step.operands.push_back(value.absent ? PlanValueId::none : add_value(made.plan, value, Storage::constant));
  const Storage storage = step.kernel == "view" ? Storage::view : Storage::arena;
  for (const CaseValue& value : results) step.results.push_back(add_result(made.plan, value, storage));
  made.plan.steps.push_back(std::move(step));
  return made;
}

StepCase make_spill(size_t at) {
  StepCase made{.name = at == 0 ? "offload" : "reload", .at = at};
  Plan& plan = made.plan;
  const PlanValueId x = add_value(plan, f32({2, 3, 4}), Storage::constant);
  const PlanValueId ticket = add_value(plan, i64({}), Storage::arena);
  const PlanValueId y = add_result(plan, f32({2, 3, 4}));
  for (const auto& [kernel, from, to] : {std::tuple("offload", x, ticket), std::tuple("reload", ticket, y)}) {
    PlanStep step;
    step.kernel = kernel, step.operands = {from}, step.results = {to};
    plan.steps.push_back(std::move(step));
  }
  return made;
}

const std::vector<StepCase>& list_cases() {
  static const std::vector<StepCase> cases = [] {
    std::vector<StepCase> made;
    add_attention(made), add_batch_norm(made), add_gradients(made), add_images_and_norms(made), add_moves(made);
    return made;
  }();
  return cases;
}

const StepCase& find_case(std::string_view name) {
  for (const StepCase& one : list_cases()) {
    if (one.name == name) return one;
  }
  throw std::runtime_error("there is no such case");
}

void set_dtype(StepCase& changed, PlanValueId id, Dtype dtype) {
  PlanValue& value = changed.value(id);
  value.dtype = dtype;
  if (value.array < 0) return;
  Array& array = changed.plan.arrays[static_cast<size_t>(value.array)].array;
  array = make_array(dtype, array.sizes);
}

Sizes sizes_of(const StepCase& of, PlanValueId id) {
  Sizes sizes;
  for (const SizeExpression& size : of.value(id).sizes) sizes.push_back(*size.constant());
  return sizes;
}

void set_sizes(StepCase& changed, PlanValueId id, const Sizes& sizes) {
  PlanValue& value = changed.value(id);
  value.sizes.assign(sizes.begin(), sizes.end());
  if (value.array >= 0) changed.plan.arrays[static_cast<size_t>(value.array)].array = make_array(value.dtype, sizes);
}

void expand_operand(StepCase& changed, size_t position, const Sizes& sizes) {
  const PlanValue old = changed.value(changed.step().operands[position]);
  const PlanValueId one = add_value(changed.plan, {old.dtype, Sizes(sizes.size(), 1)}, Storage::constant);
  const PlanValueId view = add_value(changed.plan, {old.dtype, sizes, old.format}, Storage::view);
  changed.step().operands[position] = view;
  PlanStep expand;
  expand.kernel = "view", expand.operands = {one}, expand.results = {view};
  expand.attributes.set("form", std::string("expand"));
  changed.plan.steps.insert(changed.plan.steps.begin() + static_cast<std::ptrdiff_t>(changed.at), std::move(expand));
  ++changed.at;
}

std::vector<Array> run(const Plan& plan, int threads) {
  static const TemporaryFolder folder;
  Session session(std::make_shared<Plan>(plan), {.threads = threads, .offload_folder = folder.path()});
  return session.run(std::span<const TensorView>{});
}

double measure_seconds(const std::function<void()>& what) {
  const std::clock_t start = std::clock();
  what();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

void expect_refusal(const StepCase& broken, const std::string& words) {
  CAPTURE(broken.name);
  CAPTURE(words);
  std::string problem;
  const double seconds = measure_seconds([&] {
    problem =
        find_error_problem(ErrorKind::invalid_input, [&] { run(broken.plan); }, {"(" + broken.step().kernel, words});
  });
  CHECK_MESSAGE(problem.empty(), problem);
  CHECK(seconds < kSoon);
}

void expect_quick(const StepCase& made) {
  CAPTURE(made.name);
  CHECK(measure_seconds([&] { CHECK_NOTHROW(run(made.plan)); }) < kSoon);
}

}  // namespace lissome::step_cases
