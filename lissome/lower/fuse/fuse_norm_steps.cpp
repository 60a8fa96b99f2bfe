#include "lissome/lower/fuse/fuse_norm_steps.h"

#include <algorithm>

#include "lissome/lower/plan/plan_links.h"
#include "lissome/runtime/step/elementwise/elementwise_steps.h"
#include "lissome/runtime/step/gemm/linear_u8s8_steps.h"
#include "lissome/runtime/step/norm/group_norm_steps.h"
#include "lissome/runtime/step/norm/layer_norm_steps.h"

namespace lissome {
namespace {

class NormFuser {
 public:
  explicit NormFuser(Plan& plan) : plan_(plan), links_(link_plan(plan)) {}

  void run() {
    for (size_t at = 0; at < plan_.steps.size(); ++at) {
      if (is_step<LayerNormStep>(plan_.steps[at])) absorb_sum(static_cast<int>(at));
      if (is_step<QuantizeRowsStep>(plan_.steps[at])) absorb_factors(static_cast<int>(at));
      if (const auto activation = find_activation(plan_.steps[at])) move_into_norm(plan_.steps[at], *activation);
    }
    std::erase_if(plan_.steps, [](const PlanStep& step) { return step.kernel.empty(); });
  }

 private:
  const PlanValue& value_of(PlanValueId id) const { return plan_.value(id); }
  const std::vector<int>& readers_of(PlanValueId id) const { return links_.readers[static_cast<size_t>(id)]; }

  PlanStep* find_maker(PlanValueId value) {
    const int maker = links_.makers[static_cast<size_t>(value)];
    return maker < 0 ? nullptr : &plan_.steps[static_cast<size_t>(maker)];
  }

  // The sum is made where the norm stands from then on, so that nobody may have read it before.
  void absorb_sum(int at) {
    PlanStep& step = plan_.steps[static_cast<size_t>(at)];
    LayerNormStep norm = read_step<LayerNormStep>(step);
    const PlanValueId sum = norm.x.value;
    PlanStep* add = find_maker(sum);
    if (add == nullptr || !is_sum_of_two(*add) || norm.residual || norm.sum_or_mean) return;
    const auto is_dense = [&](PlanValueId operand) {
      return value_of(operand).dtype == Dtype::f32 && value_of(operand).format == Format::row_major &&
             lie_alike(value_of(operand), value_of(sum));
    };
    const std::vector<PlanValueId> added = read_step<ElementwiseStep>(*add).operands.values;
    if (!is_dense(added[0]) || !is_dense(added[1])) return;
    const std::vector<int>& readers = readers_of(sum);
    if (std::any_of(readers.begin(), readers.end(), [&](int reader) { return reader >= 0 && reader < at; })) return;
    norm.x = {added[0]}, norm.residual = {added[1]};
    if (readers.size() > 1) norm.sum_or_mean = {sum};
    links_.makers[static_cast<size_t>(sum)] = at;
    for (const PlanValueId operand : added) links_.readers[static_cast<size_t>(operand)].push_back(at);
    step.origins.insert(step.origins.begin(), add->origins.begin(), add->origins.end());
    replace_step(step, norm);
    *add = {};
  }

  // One factor for each column of rows.
  bool are_factors(PlanValueId factors, PlanValueId rows) const {
    const PlanValue &vector = value_of(factors), &value = value_of(rows);
    return vector.storage == Storage::constant && vector.dtype == value.dtype && vector.sizes.size() == 1 &&
           vector.sizes[0].constant() == value.sizes.back().constant();
  }

  void absorb_factors(int at) {
    PlanStep& step = plan_.steps[static_cast<size_t>(at)];
    QuantizeRowsStep quantize = read_step<QuantizeRowsStep>(step);
    const PlanValueId product = quantize.x.value;
    PlanStep* multiply = find_maker(product);
    if (multiply == nullptr || !is_product_of_two(*multiply) || readers_of(product).size() != 1) return;
    const std::vector<PlanValueId> multiplied = read_step<ElementwiseStep>(*multiply).operands.values;
    PlanValueId x = multiplied[0], factors = multiplied[1];
    if (are_factors(x, product)) std::swap(x, factors);
    if (!are_factors(factors, product) || value_of(x).format != Format::row_major ||
        !lie_alike(value_of(x), value_of(product))) {
      return;
    }
    quantize.x = {x}, quantize.factors = {factors};
    links_.readers[static_cast<size_t>(x)].push_back(at);
    step.origins.insert(step.origins.begin(), multiply->origins.begin(), multiply->origins.end());
    replace_step(step, quantize);
    *multiply = {};
  }

  // The element-wise `reader` does nothing but the activation.
  void move_into_norm(PlanStep& reader, const Epilogue& epilogue) {
    PlanStep* norm = find_maker(read_step<ElementwiseStep>(reader).operands.values[0]);
    if (norm == nullptr) return;
    if (is_step<GroupNormStep>(*norm)) activate<GroupNormStep>(*norm, reader, epilogue);
    if (is_step<GroupNormBf16Step>(*norm)) activate<GroupNormBf16Step>(*norm, reader, epilogue);
  }

  template <typename Step>
  void activate(PlanStep& step, PlanStep& reader, const Epilogue& epilogue) {
    Step norm = read_step<Step>(step);
    const PlanValueId between = norm.y.value, y = read_step<ElementwiseStep>(reader).y.value;
    if (readers_of(between).size() != 1 || norm.activation.activation != "none") return;
    if (!lie_alike(value_of(between), value_of(y))) return;
    norm.activation.activation = activation_name(epilogue.activation);
    norm.activation.alpha = epilogue.alpha, norm.activation.beta = epilogue.beta;
    norm.y = {y};
    step.origins.insert(step.origins.end(), reader.origins.begin(), reader.origins.end());
    replace_step(step, norm);
    links_.makers[static_cast<size_t>(y)] = links_.makers[static_cast<size_t>(between)];
    reader = {};
  }

  Plan& plan_;
  PlanLinks links_;
};

}  // namespace

void fuse_norm_steps(Plan& plan) { NormFuser(plan).run(); }

}  // namespace lissome
