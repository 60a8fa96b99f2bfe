#include "lissome/cli/train_words.h"

#include <charconv>
#include <cstdlib>

#include "lissome/base.h"
#include "lissome/cli/flag_help.h"

namespace lissome {

double parse_number(std::string_view text, const std::string& where) {
  const std::string word(text);
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0') throw_error(ErrorKind::usage, where, ": ", quote(word), " is not a number");
  return number;
}

OptimizerOptions find_optimizer(const std::string& name) {
  if (name == "adamw") return AdamW{};
  if (name == "adam") return Adam{};
  if (name == "sgd") return Sgd{};
  if (name == "lion") return Lion{};
  if (name == "adafactor") return Adafactor{};
  throw_error(ErrorKind::usage, "--optimizer must be adamw, adam, sgd, lion or adafactor, not ", quote(name));
}

void add_loss_flags(Flags& flags, LossFlags& to) {
  flags.add("--loss", to.name, kLossHelp);
  flags.add("--label-smoothing", to.label_smoothing, "Label smoothing of cross_entropy, at most 1.", 0);
  flags.add("--ignore-label", to.ignored_label, "Label whose samples cross_entropy ignores.", INT64_MIN);
  flags.add("--class-weights", to.class_weights, "Weights of the classes in cross_entropy, for example 1,1,2.5.");
}

LossOptions make_loss(const LossFlags& flags, const Program& model) {
  LossOptions loss = parse_loss(flags.name, model);
  const bool asked = flags.label_smoothing != 0 || flags.ignored_label != -100 || !flags.class_weights.empty();
  if (asked && loss.kind != LossKind::cross_entropy)
    throw_error(ErrorKind::usage, "--label-smoothing, --ignore-label and --class-weights are for cross_entropy, not ",
                flags.name);
  if (flags.label_smoothing > 1)
    throw_error(ErrorKind::usage, "--label-smoothing must be in 0..1, not ", flags.label_smoothing);
  loss.label_smoothing = flags.label_smoothing;
  loss.ignored_label = flags.ignored_label;
  if (!flags.class_weights.empty()) {
    for (const std::string& word : split(flags.class_weights, ','))
      loss.class_weights.push_back(parse_number(word, "--class-weights"));
  }
  return loss;
}

int64_t parse_batch(const std::string& word) {
  if (word == "auto") return 0;
  int64_t batch = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), batch);
  if (problem != std::errc() || end != word.data() + word.size() || batch < 1)
    throw_error(ErrorKind::usage, "--batch must be a number of samples from 1 on, or auto, not ", quote(word));
  return batch;
}

}  // namespace lissome
