// Functions that read or change gradients between the backward pass and the optimizer's step, by parameter name.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lissome {

// Takes the gradient of one parameter. Returns its replacement of the same sizes and dtype, or an undefined tensor to
// keep it. The next step overwrites the gradient: clone it to keep it longer.
using GradientHook = std::function<at::Tensor(const std::string& name, const at::Tensor& gradient)>;

// Removes its hook by remove(), not by its destructor. It may outlive the hooks.
class GradientHookHandle {
 public:
  void remove();

 private:
  friend class GradientHooks;
  std::weak_ptr<GradientHook> hook_;
};

class GradientHooks {
 public:
  // Adds a hook for every parameter whose name matches the shell-style pattern. Hooks are called in the order in which
  // they were added, each with the result of the one before.
  GradientHookHandle add(const std::string& pattern, GradientHook hook);

  // Applies the hooks to `gradients`, in the order of `names`. Skips undefined gradients. Throws invalid_input for a
  // hook that returns other sizes or another dtype.
  void apply(const std::vector<std::string>& names, std::vector<at::Tensor>& gradients) const;

 private:
  struct Entry {
    std::string pattern;
    std::shared_ptr<GradientHook> hook;  // holds no function after remove()
  };
  std::vector<Entry> entries_;
};

}  // namespace lissome
