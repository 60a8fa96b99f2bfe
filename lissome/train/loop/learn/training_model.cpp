// See training_model.h.
#include "lissome/train/loop/learn/training_model.h"

#include "lissome/pass.h"
#include "lissome/train/rewrite/freeze.h"
#include "lissome/train/step/labels.h"

namespace lissome {

Program make_eval_form(Program program) {
  convert_to_inference(program);
  return program;
}

TrainingModel make_training_model(const Program& model, const Program& validated, const Dataset& data,
                                  const Dataset* validation, const TrainOptions& options) {
  const int64_t batch = choose_batch(model, data, options.batches, options.batch);
  const int64_t examples = choose_examples(model, batch);
  const auto attach_loss_to = [&](const Program& program) {
    return attach_checked_loss(program, data, validation, options, examples);
  };
  return {.model = model,
          .fixed = find_fixed_batch(model).has_value(),
          .least = find_least_batch(model),
          .batch = batch,
          .examples = examples,
          .with_loss = freeze_parameters(attach_loss_to(model), options.groups),
          .judged = make_eval_form(attach_loss_to(validated)),
          .least_judged = find_fixed_batch(validated).value_or(find_least_batch(validated))};
}

}  // namespace lissome
