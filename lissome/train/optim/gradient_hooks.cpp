#include "lissome/train/optim/gradient_hooks.h"

#include <ATen/core/grad_mode.h>

#include "lissome/base.h"

namespace lissome {

void GradientHookHandle::remove() {
  if (const std::shared_ptr<GradientHook> hook = hook_.lock()) *hook = nullptr;
}

GradientHookHandle GradientHooks::add(const std::string& pattern, GradientHook hook) {
  entries_.push_back({pattern, std::make_shared<GradientHook>(std::move(hook))});
  GradientHookHandle handle;
  handle.hook_ = entries_.back().hook;
  return handle;
}

void GradientHooks::apply(const std::vector<std::string>& names, std::vector<at::Tensor>& gradients) const {
  const at::NoGradGuard no_gradients;
  for (const Entry& entry : entries_) {
    for (size_t i = 0; i < names.size(); ++i) {
      // A hook may remove itself, so the function is looked at before each call.
      if (!*entry.hook || !gradients[i].defined() || !matches_pattern(entry.pattern, names[i])) continue;
      const GradientHook hook = *entry.hook;
      const at::Tensor changed = hook(names[i], gradients[i]);
      if (!changed.defined()) continue;
      if (changed.sizes() != gradients[i].sizes() || changed.scalar_type() != gradients[i].scalar_type())
        throw_error(ErrorKind::invalid_input, "the hook for ", quote(entry.pattern), " made of the gradient of ",
                    quote(names[i]), ", which has the sizes ", format_sizes(gradients[i].sizes().vec()),
                    ", one of sizes ", format_sizes(changed.sizes().vec()), " or of another dtype");
      gradients[i] = changed;
    }
  }
}

}  // namespace lissome
