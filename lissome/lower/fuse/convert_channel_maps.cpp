#include "lissome/lower/fuse/convert_channel_maps.h"

#include <optional>
#include <utility>

#include "lissome/lower/fuse/element_program.h"
#include "lissome/lower/plan/plan_links.h"
#include "lissome/runtime/step/elementwise/elementwise_steps.h"
#include "lissome/runtime/step/norm/channel_steps.h"

namespace lissome {
namespace {

// scale * x + shift of three operands, and whether ReLU follows.
struct ChannelMap {
  PlanValueId x, scale, shift;
  bool relu = false;
};

class MapFinder {
 public:
  MapFinder(const Plan& plan, const PlanLinks& links, const ElementwiseStep& step)
      : plan_(plan), links_(links), step_(step), program_(read_element_program(step)) {
    number_anew(program_);
  }

  std::optional<ChannelMap> find() const {
    ElementProgramLine last = program_.back();
    const bool relu = last.op == ElementOp::activate && static_cast<Activation>(last.b) == Activation::relu;
    if (program_.size() != (relu ? 6 : 5)) return std::nullopt;
    if (relu) last = line(last.a);
    if (last.op != ElementOp::add) return std::nullopt;
    for (const auto& [product, shift] : {std::pair{last.a, last.b}, std::pair{last.b, last.a}}) {
      const ElementProgramLine& factors = line(product);
      if (factors.op != ElementOp::multiply || !is_vector(shift)) continue;
      if (is_images(factors.a) && is_vector(factors.b))
        return ChannelMap{operand(factors.a), operand(factors.b), operand(shift), relu};
      if (is_images(factors.b) && is_vector(factors.a))
        return ChannelMap{operand(factors.b), operand(factors.a), operand(shift), relu};
    }
    return std::nullopt;
  }

 private:
  const ElementProgramLine& line(int at) const { return program_[static_cast<size_t>(at)]; }
  PlanValueId operand(int at) const { return step_.operands.values[static_cast<size_t>(line(at).a)]; }
  const PlanValue& y() const { return plan_.value(step_.y.value); }

  bool is_images(int at) const {
    if (line(at).op != ElementOp::load) return false;
    const PlanValue& x = plan_.value(operand(at));
    return x.format == Format::channels_last && (x.dtype == Dtype::f32 || x.dtype == Dtype::bf16) && lie_alike(x, y());
  }
  // A constant in f32 for each channel, [C, 1 ...], that nothing else reads.
  bool is_vector(int at) const {
    if (line(at).op != ElementOp::load) return false;
    const PlanValue& value = plan_.value(operand(at));
    const auto channels = y().sizes.size() >= 3 ? y().sizes[1].constant() : std::nullopt;
    if (value.storage != Storage::constant || value.dtype != Dtype::f32 || !channels || *channels == 1) return false;
    if (links_.readers[static_cast<size_t>(operand(at))].size() != 1 || value.sizes.size() + 1 != y().sizes.size())
      return false;
    for (size_t i = 0; i < value.sizes.size(); ++i) {
      if (value.sizes[i].constant() != (i == 0 ? *channels : 1)) return false;
    }
    return true;
  }

  const Plan& plan_;
  const PlanLinks& links_;
  const ElementwiseStep& step_;
  ElementProgram program_;
};

void drop_ones(Plan& plan, PlanValueId vector) {
  PlanValue& value = plan.values[static_cast<size_t>(vector)];
  value.sizes.resize(1);
  plan.arrays[static_cast<size_t>(value.array)].array.sizes.resize(1);
}

}  // namespace

void convert_channel_maps(Plan& plan) {
  const PlanLinks links = link_plan(plan);
  for (PlanStep& step : plan.steps) {
    if (!is_elementwise(step)) continue;
    const auto map = read_step<ElementwiseStep>(step);
    const std::optional<ChannelMap> found = MapFinder(plan, links, map).find();
    if (!found) continue;
    drop_ones(plan, found->scale), drop_ones(plan, found->shift);
    ChannelAffineStep affine;
    affine.x = {found->x}, affine.scale = {found->scale}, affine.shift = {found->shift}, affine.y = map.y;
    affine.relu = found->relu;
    replace_step(step, affine);
  }
}

}  // namespace lissome
