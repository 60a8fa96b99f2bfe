// Functions that see or change gradients between backward and the optimizer's step, by the names of parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lissome {

// Gets the gradient of one parameter; returns what shall stand in its place, of the same sizes and dtype, or an
// undefined tensor to keep it. The next step overwrites the gradient: clone what shall last.
using GradientHook = std::function<at::Tensor(const std::string& name, const at::Tensor& gradient)>;

// Removes its hook when asked to, not when it goes out of scope. Outliving the hooks is harmless.
class GradientHookHandle {
 public:
  void remove();

 private:
  friend class GradientHooks;
  std::weak_ptr<GradientHook> hook_;
};

class GradientHooks {
 public:
  // For every parameter whose name fits the shell-style pattern. Hooks are called in the order in which they were
  // added, each with what the one before made.
  GradientHookHandle add(const std::string& pattern, GradientHook hook);

  // Changes the elements of `gradients`, which go with `names`; undefined ones stay. Throws invalid_input for a hook
  // that returns other sizes or another dtype.
  void apply(const std::vector<std::string>& names, std::vector<at::Tensor>& gradients) const;

 private:
  struct Entry {
    std::string pattern;
    std::shared_ptr<GradientHook> hook;  // holds no function any more when removed
  };
  std::vector<Entry> entries_;
};

}  // namespace lissome
