#include "lissome/runtime/step/step_groups.h"

namespace lissome {

bool is_known_activation(std::string_view word) { return parse_activation(word).has_value(); }

Epilogue ActivationFields::epilogue() const {
  return {parse_activation(activation).value(), static_cast<float>(alpha), static_cast<float>(beta)};
}

}  // namespace lissome
