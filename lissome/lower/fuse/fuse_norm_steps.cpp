#include "lissome/lower/fuse/fuse_norm_steps.h"

#include <algorithm>

#include "lissome/lower/plan/plan_links.h"

namespace lissome {
namespace {

constexpr size_t kNormX = 0, kNormResidual = 1;  // operands of layer_norm

class NormFuser {
 public:
  explicit NormFuser(Plan& plan) : plan_(plan), links_(link_plan(plan)) {}

  void run() {
    for (size_t at = 0; at < plan_.steps.size(); ++at) {
      if (plan_.steps[at].kernel == "layer_norm") absorb_sum(static_cast<int>(at));
      if (plan_.steps[at].kernel == "quantize_rows") absorb_factors(plan_.steps[at]);
      if (const auto activation = find_activation(plan_.steps[at])) move_into_norm(plan_.steps[at], *activation);
    }
    std::erase_if(plan_.steps, [](const PlanStep& step) { return step.kernel.empty(); });
  }

 private:
  const PlanValue& value_of(int id) const { return plan_.values[static_cast<size_t>(id)]; }
  const std::vector<int>& readers_of(int id) const { return links_.readers[static_cast<size_t>(id)]; }

  PlanStep* find_maker(int value) {
    const int maker = links_.makers[static_cast<size_t>(value)];
    return maker < 0 ? nullptr : &plan_.steps[static_cast<size_t>(maker)];
  }

  // The sum is made where the norm stands from then on, so that nobody may have read it before.
  void absorb_sum(int at) {
    PlanStep& norm = plan_.steps[static_cast<size_t>(at)];
    const int sum = norm.operands[kNormX];
    PlanStep* add = find_maker(sum);
    if (add == nullptr || !is_sum_of_two(*add) || norm.operands[kNormResidual] >= 0 || norm.results.size() > 1) return;
    const auto is_dense = [&](int operand) {
      return value_of(operand).dtype == Dtype::f32 && value_of(operand).format == Format::row_major &&
             lie_alike(value_of(operand), value_of(sum));
    };
    if (!is_dense(add->operands[0]) || !is_dense(add->operands[1])) return;
    const std::vector<int>& readers = readers_of(sum);
    if (std::any_of(readers.begin(), readers.end(), [&](int reader) { return reader >= 0 && reader < at; })) return;
    norm.operands[kNormX] = add->operands[0], norm.operands[kNormResidual] = add->operands[1];
    if (readers.size() > 1) norm.results.push_back(sum);
    links_.makers[static_cast<size_t>(sum)] = at;
    for (const int operand : add->operands) links_.readers[static_cast<size_t>(operand)].push_back(at);
    norm.origins.insert(norm.origins.begin(), add->origins.begin(), add->origins.end());
    *add = {};
  }

  // One factor for each column of rows.
  bool are_factors(int factors, int rows) const {
    const PlanValue &vector = value_of(factors), &value = value_of(rows);
    return vector.storage == Storage::constant && vector.dtype == value.dtype && vector.sizes.size() == 1 &&
           vector.sizes[0].constant() == value.sizes.back().constant();
  }

  void absorb_factors(PlanStep& quantize) {
    const int product = quantize.operands[0];
    PlanStep* multiply = find_maker(product);
    if (multiply == nullptr || !is_product_of_two(*multiply) || readers_of(product).size() != 1) return;
    int x = multiply->operands[0], factors = multiply->operands[1];
    if (are_factors(x, product)) std::swap(x, factors);
    if (!are_factors(factors, product) || value_of(x).format != Format::row_major ||
        !lie_alike(value_of(x), value_of(product))) {
      return;
    }
    quantize.operands = {x, factors};
    links_.readers[static_cast<size_t>(x)].push_back(static_cast<int>(&quantize - plan_.steps.data()));
    quantize.origins.insert(quantize.origins.begin(), multiply->origins.begin(), multiply->origins.end());
    *multiply = {};
  }

  void move_into_norm(PlanStep& reader, const Epilogue& epilogue) {
    const int between = reader.operands[0];
    PlanStep* norm = find_maker(between);
    if (norm == nullptr || (norm->kernel != "group_norm" && norm->kernel != "group_norm_bf16")) return;
    if (readers_of(between).size() != 1 || norm->attributes.find("activation") != nullptr) return;
    if (!lie_alike(value_of(between), value_of(reader.results[0]))) return;
    norm->attributes.set("activation", std::string(activation_name(epilogue.activation)));
    norm->attributes.set("alpha", static_cast<double>(epilogue.alpha));
    norm->attributes.set("beta", static_cast<double>(epilogue.beta));
    norm->results = reader.results;
    norm->origins.insert(norm->origins.end(), reader.origins.begin(), reader.origins.end());
    links_.makers[static_cast<size_t>(reader.results[0])] = links_.makers[static_cast<size_t>(between)];
    reader = {};
  }

  Plan& plan_;
  PlanLinks links_;
};

}  // namespace

void fuse_norm_steps(Plan& plan) { NormFuser(plan).run(); }

}  // namespace lissome
