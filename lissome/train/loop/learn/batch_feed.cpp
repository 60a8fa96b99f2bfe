// See batch_feed.h.
#include "lissome/train/loop/learn/batch_feed.h"

#include <algorithm>
#include <string>

namespace lissome {

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
  const int64_t usable = model.fixed ? all / model.batch * model.batch : all;
  const int64_t asked = options.batch == 0 ? step.at_once() : model.batch;
  return std::min(asked * options.accumulate, usable);
}

}  // namespace lissome
