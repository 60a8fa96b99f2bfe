// See batch_feed.h.
#include "lissome/train/loop/learn/batch_feed.h"

#include <algorithm>
#include <string>

#include "lissome/distributed.h"

namespace lissome {
namespace {

// Samples of a batch: of all ranks in a group.
int64_t count_batch(const TrainingModel& model, const BatchStep& step, const TrainOptions& options) {
  if (options.group == nullptr) return options.batch == 0 ? step.at_once() : model.batch;
  if (model.fixed) return model.batch * options.group->ranks();
  if (options.batch != 0) return model.batch;
  const std::string of_first = options.group->share_text(std::to_string(step.at_once()), "the batch of rank 0");
  return std::stoll(of_first) * options.group->ranks();
}

}  // namespace

int64_t choose_update_samples(const TrainingModel& model, BatchStep& step, const Dataset& data,
                              const TrainOptions& options, NoticeLog& notices) {
  const int64_t all = count_samples(data, options.batches);
  if (options.batch == 0) {
    const std::vector<at::Tensor> samples = take_inputs(data, 0, model.examples, model.with_loss.inputs.size());
    const int64_t found = step.find_largest(samples, all);
    notices.add("batches of " + std::to_string(found) + " samples fit into memory, so batches have this size" +
                (found == all ? " (all samples)" : ""));
  }
  if (options.accumulate > 1 && options.scale_learning_rate)
    notices.add("the learning rate is multiplied by --accumulate, " + std::to_string(options.accumulate) +
                ", because an update sees so many batches");
  const int64_t batch = count_batch(model, step, options);
  if (options.group != nullptr && !model.fixed && batch / model.least < options.group->ranks())
    notices.add("batches of " + std::to_string(batch) + " samples leave some of the " +
                std::to_string(options.group->ranks()) + " ranks without work; give a larger --batch");
  const int64_t usable = model.fixed ? all / model.batch * model.batch : all;
  return std::min(batch * options.accumulate, usable);
}

}  // namespace lissome
