#include "lissome/cli/optimizer_word.h"

#include "lissome/base.h"

namespace lissome {

OptimizerOptions find_optimizer(const std::string& name) {
  if (name == "adamw") return AdamW{};
  if (name == "adam") return Adam{};
  if (name == "sgd") return Sgd{};
  if (name == "lion") return Lion{};
  if (name == "adafactor") return Adafactor{};
  throw_error(ErrorKind::usage, "--optimizer is adamw, adam, sgd, lion or adafactor, not ", quote(name));
}

}  // namespace lissome
