#include "lissome/cli/train_words.h"

#include <charconv>

#include "lissome/base.h"

namespace lissome {

OptimizerOptions find_optimizer(const std::string& name) {
  if (name == "adamw") return AdamW{};
  if (name == "adam") return Adam{};
  if (name == "sgd") return Sgd{};
  if (name == "lion") return Lion{};
  if (name == "adafactor") return Adafactor{};
  throw_error(ErrorKind::usage, "--optimizer must be adamw, adam, sgd, lion or adafactor, not ", quote(name));
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
