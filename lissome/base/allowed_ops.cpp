// See lissome/allow_op.h.
#include "lissome/allow_op.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <set>

#include "lissome/base/error.h"

namespace lissome {
namespace {

// Among the ops of these are those that read and write files, speak with other machines, or trust what they are given.
constexpr std::array<std::string_view, 36> kOwnNamespaces = {"aten",
                                                             "prim",
                                                             "prims",
                                                             "quantized",
                                                             "_quantized",
                                                             "quantization",
                                                             "quantized_decomposed",
                                                             "onednn",
                                                             "mkldnn",
                                                             "mkldnn_prepacked",
                                                             "mkl",
                                                             "sparse",
                                                             "prepacked",
                                                             "xnnpack",
                                                             "fbgemm",
                                                             "inductor",
                                                             "inductor_prims",
                                                             "c10d",
                                                             "_c10d_functional",
                                                             "_c10d_functional_autograd",
                                                             "c10d_functional",
                                                             "symm_mem",
                                                             "_dtensor",
                                                             "rpc",
                                                             "profiler",
                                                             "static_runtime",
                                                             "_test",
                                                             "_native",
                                                             "streams",
                                                             "cuda",
                                                             "export",
                                                             "debug_mode_ops",
                                                             "debugprims",
                                                             "rngprims",
                                                             "higher_order",
                                                             "lissome"};

struct AllowedNames {
  std::mutex mutex;
  std::set<std::string, std::less<>> names;
};

AllowedNames& allowed_names() {
  static auto* const names = new AllowedNames;
  return *names;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

// "default" is how Python calls an overload without a name.
std::string_view drop_default(std::string_view name) {
  constexpr std::string_view kDefault = ".default";
  if (name.ends_with(kDefault)) name.remove_suffix(kDefault.size());
  return name;
}

}  // namespace

bool is_own_namespace(std::string_view op) {
  const std::string_view space = op.substr(0, op.find("::"));
  return std::find(kOwnNamespaces.begin(), kOwnNamespaces.end(), space) != kOwnNamespaces.end();
}

void allow_op(std::string_view name) {
  const size_t colons = name.find("::");
  const std::string_view rest = colons == std::string_view::npos ? std::string_view() : name.substr(colons + 2);
  const std::string_view word = rest.substr(0, rest.find('.'));
  const bool has_overload = rest.size() > word.size();
  if (!is_word(name.substr(0, colons)) || !is_word(word) || (has_overload && !is_word(rest.substr(word.size() + 1)))) {
    throw_error(ErrorKind::usage, "'", name,
                "' is no name of an op to allow; it must be exactly one, such as mylib::my_op or "
                "mylib::my_op.overload");
  }
  if (is_own_namespace(name)) {
    throw_error(ErrorKind::usage, "'", name, "' cannot be allowed: ", name.substr(0, colons),
                " is a namespace of PyTorch or lissome, whose ops reach files, processes, devices and memory;\n"
                "      only ops of your own libraries can be allowed");
  }
  AllowedNames& allowed = allowed_names();
  const std::lock_guard lock(allowed.mutex);
  allowed.names.emplace(drop_default(name));
}

bool is_op_allowed(std::string_view name) {
  AllowedNames& allowed = allowed_names();
  const std::lock_guard lock(allowed.mutex);
  return allowed.names.contains(drop_default(name));
}

}  // namespace lissome
