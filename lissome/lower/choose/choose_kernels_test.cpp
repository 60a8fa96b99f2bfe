// What timing chooses is kept and found again, what fails is dropped and said so, what is forced is done.
#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <set>

#include "lissome/lower/choose/choose_kernels.h"
#include "lissome/lower/choose/timing_cache.h"
#include "lissome/lower/program_check.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

// Kept times stay out of the user's own cache.
class CacheHere {
 public:
  CacheHere() { set_cache_folder(folder_.path()); }
  ~CacheHere() { set_cache_folder("none"); }
  std::string file() const { return folder_.path() + "/timings-1.json"; }

 private:
  TemporaryFolder folder_;
};

Program make_layers(const char* size) {
  const int64_t wide = std::stoll(size);
  std::string text = R"(
    input %x: f32[4, 32]
    parameter @first: f32[SIZE, 32]
    parameter @second: f32[32, SIZE]
    %1: f32[4, SIZE] = aten::linear(%x, @first)
    %2: f32[4, SIZE] = aten::relu(%1)
    %3: f32[4, 32] = aten::linear(%2, @second)
    %4: f32[4, 32] = aten::softmax.int(%3, -1)
    return %4
  )";
  for (size_t at; (at = text.find("SIZE")) != std::string::npos;) text.replace(at, 4, size);
  return parse_program(text, {{"first", at::randn({wide, 32})}, {"second", at::randn({32, wide})}});
}

struct Trials {
  std::vector<std::string> tried;  // "linear_f32 of 1"
  LowerOptions options() {
    LowerOptions options;
    options.threads = 1;
    options.on_trial = [this](const std::string& node, const std::string& kernel) {
      tried.push_back(kernel + " of " + node);
    };
    return options;
  }
};

std::vector<std::string> list_chosen(const Plan& plan) {
  std::vector<std::string> chosen;
  for (const PlanChoice& choice : plan.choices) chosen.push_back(choice.chosen);
  return chosen;
}

}  // namespace

TEST_CASE("each kernel is timed once for each kind of node, and a program once") {
  const CacheHere cache;
  Trials first, again, other;
  const Plan plan = lower_program(make_layers("48"), first.options());
  CHECK(std::set<std::string>(first.tried.begin(), first.tried.end()).size() == first.tried.size());
  CHECK(std::count(first.tried.begin(), first.tried.end(), "linear_f32 of 1") == 1);
  const Plan kept = lower_program(make_layers("48"), again.options());
  CHECK(again.tried.empty());
  CHECK(list_chosen(kept) == list_chosen(plan));
  for (size_t i = 0; i < plan.choices.size(); ++i) {
    CHECK(kept.choices[i].reason == plan.choices[i].reason);
    for (size_t k = 0; k < plan.choices[i].candidates.size(); ++k) {
      CHECK(kept.choices[i].candidates[k].nanoseconds == doctest::Approx(plan.choices[i].candidates[k].nanoseconds));
    }
  }
  // Another program: of its nodes only the softmax is known.
  lower_program(make_layers("64"), other.options());
  CHECK(std::count(other.tried.begin(), other.tried.end(), "linear_f32 of 1") == 1);
  CHECK(std::count(other.tried.begin(), other.tried.end(), "softmax of 4") == 0);
}

TEST_CASE("the longest effort is wider too: equal nodes get kernels of their own") {
  set_cache_folder("none");
  const Program program = parse_program(R"(
    input %x: f32[1, 32, 16, 16]
    parameter @first: f32[32, 32, 3, 3]
    parameter @second: f32[32, 32, 3, 3]
    %1: f32[1, 32, 16, 16] = aten::convolution(%x, @first, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %2: f32[1, 32, 16, 16] = aten::convolution(%1, @second, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    return %2
  )",
                                        {{"first", at::randn({32, 32, 3, 3})}, {"second", at::randn({32, 32, 3, 3})}});
  LowerOptions options;
  options.threads = 1;
  std::set<Preferences> tried;
  const auto lower = [&](const Preferences& preferences) {
    tried.insert(preferences);
    LowerOptions alone = options;
    alone.effort = Effort::fast;
    for (const auto& [node, kernel] : preferences) alone.forced.push_back({node, kernel});
    Lowered lowered{lower_program(program, alone), {}};
    for (const PlanChoice& choice : lowered.plan.choices)
      lowered.open.push_back({choice.node, choice.chosen, {"conv_f32", "winograd_f32_4x4", "winograd_f32_2x2"}});
    return lowered;
  };
  const auto count_mixed = [&] {
    return std::count_if(tried.begin(), tried.end(), [](const Preferences& wanted) {
      return wanted.size() == 1 || (wanted.size() == 2 && wanted.begin()->second != wanted.rbegin()->second);
    });
  };
  options.effort = Effort::normal;
  choose_kernels(program, options, lower);
  CHECK(count_mixed() == 0);
  options.effort = Effort::max;
  const Plan plan = choose_kernels(program, options, lower);
  // A kernel that alone takes twice as long is not tried for single nodes; under a sanitizer that may be each.
  const PlanChoice& choice = plan.choices.at(0);
  const auto time_of = [&](const std::string& kernel) {
    for (const PlanCandidate& candidate : choice.candidates)
      if (candidate.name == kernel) return candidate.nanoseconds;
    return 0.0;
  };
  int near = 0;
  for (const PlanCandidate& candidate : choice.candidates)
    near += candidate.nanoseconds > 0 && candidate.name != choice.chosen &&
            candidate.nanoseconds < 1.9 * time_of(choice.chosen);
  CAPTURE(near);
  CHECK(time_of(choice.chosen) > 0);
  CHECK(count_mixed() >= 2 * std::min(near, 1));
}

TEST_CASE("a cache that is damaged or of another machine is ignored and replaced") {
  const CacheHere cache;
  Trials first;
  lower_program(make_layers("48"), first.options());
  const std::string kept = read_text_file(cache.file(), 1 << 20);
  std::string foreign = kept;
  foreign.replace(foreign.find("kernels "), 10, "kernels of");
  const std::string beginning = kept.substr(0, kept.find("\"times\""));
  for (const std::string& text :
       {std::string("no JSON"), std::string("[]"), foreign, kept.substr(0, kept.size() / 2),
        beginning + "\"times\": 7, \"choices\": {}}", beginning + "\"times\": {\"a\": {\"b\": [1]}}, \"choices\": {}}",
        beginning + "\"times\": {}, \"choices\": {\"a\": {\"b\": 1}}}"}) {
    CAPTURE(text);
    write_file(cache.file(), text);
    Trials anew, again;
    lower_program(make_layers("48"), anew.options());
    CHECK(anew.tried.size() == first.tried.size());
    lower_program(make_layers("48"), again.options());
    CHECK(again.tried.empty());
  }
}

TEST_CASE("the cache stays small and keeps what is young") {
  const CacheHere cache;
  for (int i = 0; i < 300; ++i) {
    TimingCache kept(1);
    kept.keep_choice(std::to_string(i), {{"node", "kernel"}});
    kept.save();
  }
  const TimingCache kept(1);
  CHECK(!kept.find_choice("43"));
  CHECK(kept.find_choice("44") == Preferences{{"node", "kernel"}});
  CHECK(kept.find_choice("299"));
}

TEST_CASE("a kernel that fails while it is tried is dropped, and said so") {
  set_cache_folder("none");
  const Program program = make_layers("48");
  LowerOptions options;
  options.on_trial = [](const std::string&, const std::string& kernel) {
    if (kernel == "linear_f32") throw_error(ErrorKind::internal, "injected");
  };
  const auto plan = std::make_shared<Plan>(lower_program(program, options));
  const PlanChoice& linear = *std::find_if(plan->choices.begin(), plan->choices.end(),
                                           [](const PlanChoice& choice) { return choice.op == "aten::linear"; });
  CHECK(linear.candidates.front().name == "linear_f32");
  CHECK(linear.candidates.front().refused == "failed when tried: internal: injected");
  Session session(plan);
  const std::vector<c10::IValue> inputs = {at::randn({4, 32})};
  check_same(run_session(session, inputs), interpret(program, inputs));
}

TEST_CASE("each form of attention can be asked for") {
  set_cache_folder("none");
  const Program program = parse_program(R"(
    dim n in 2..64
    input %q: f32[2, 3, n, 16]
    input %k: f32[2, 3, n, 16]
    input %mask: f32[n, n]
    %1: f32[2, 3, n, 16] = aten::scaled_dot_product_attention(%q, %k, %k, %mask)
    %2: f32[2, 3, n, 16] = aten::scaled_dot_product_attention(%q, %k, %1, none, 0.0, true, scale=0.3)
    return %2
  )",
                                        {});
  for (const auto& [asked, taken] : {std::pair{"flash", "flash"}, {"math", "math"}, {"ours", "attention"}}) {
    for (const Effort effort : {Effort::fast, Effort::normal}) {
      LowerOptions options;
      options.effort = effort;
      options.forced = {{"attention", asked}};
      const auto plan = std::make_shared<Plan>(lower_program(program, options));
      CHECK(list_chosen(*plan) == std::vector<std::string>{taken, taken});
      CHECK(plan->choices.front().reason == "forced");
      CHECK(plan->needs_reference() == (std::string(taken) != "attention"));
      Session session(plan);
      for (const int64_t n : {2, 33}) {
        const std::vector<c10::IValue> inputs = {at::randn({2, 3, n, 16}), at::randn({2, 3, n, 16}), at::randn({n, n})};
        check_same(run_session(session, inputs), interpret(program, inputs));
      }
    }
  }
  LowerOptions options;
  options.forced = {{"attention", "flush"}};
  try {
    lower_program(program, options);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(error.message().find("did you mean flash?") != std::string::npos);
    CHECK(error.message().find("math") != std::string::npos);
  }
}

TEST_CASE("a kernel that was asked for and refuses is reported") {
  LowerOptions options;
  options.effort = Effort::fast;
  options.forced = {{"3", "linear_bf16"}};
  const Plan plan = lower_program(make_layers("48"), options);
  const auto reason_of = [&](const char* node) {
    return std::find_if(plan.choices.begin(), plan.choices.end(), [&](const PlanChoice& c) { return c.node == node; })
        ->reason;
  };
  CHECK(reason_of("3") == "first accepted; linear_bf16 was asked for and does not take it");
  CHECK(reason_of("1") == "first accepted");
}
