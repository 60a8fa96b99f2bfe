#include "lissome/train/optim/initialize.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_qr.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "lissome/base.h"

namespace lissome {
namespace {

constexpr double kTanhGain = 5.0 / 3;

struct InitializerName {
  std::string_view name;
  Initializer initializer;
  double scale;
};
constexpr std::array kInitializers = {
    InitializerName{"smart", Initializer::smart, 0},
    InitializerName{"uniform", Initializer::uniform, 0.05},
    InitializerName{"normal", Initializer::normal, 0.02},
    InitializerName{"truncated_normal", Initializer::truncated_normal, 0.02},
    InitializerName{"orthogonal", Initializer::orthogonal, 1},
};

enum class Follower : uint8_t { other, relu, tanh };

// The use of a weight by the node that reads it.
struct WeightUse {
  enum class Kind : uint8_t { unknown, norm_weight, bias, convolution, product } kind = Kind::unknown;
  bool inputs_first = false;  // dimension 0 is inputs and dimension 1 outputs, not the other way round
  Follower follower = Follower::other;
};

// "aten::conv2d.padding" -> "conv2d"
std::string_view base_name(const Node& node) {
  std::string_view name = node.op.name();
  name.remove_prefix(std::min(name.find("::") + 2, name.size()));
  return name.substr(0, name.find('.'));
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_norm(std::string_view name) { return name.find("norm") != std::string_view::npos; }
bool is_convolution(std::string_view name) { return name.find("conv") != std::string_view::npos; }
bool is_turn(std::string_view name) { return is_one_of(name, {"t", "transpose", "permute", "numpy_T"}); }

// Ops that hardly change the variance of values: an activation behind them is the follower.
bool hands_on(std::string_view name) {
  return is_norm(name) || is_turn(name) ||
         is_one_of(name, {"add", "dropout", "view", "reshape", "flatten", "contiguous", "clone", "unsqueeze", "squeeze",
                          "max_pool2d", "avg_pool2d"});
}

class UseReader {
 public:
  explicit UseReader(const Program& program) : program_(program), uses_(find_uses(program)) {}

  WeightUse read(ValueId weight) const {
    bool turned = false;
    for (;;) {
      const auto [node, argument] = first_use(weight);
      if (node == nullptr) return {};
      if (is_turn(base_name(*node))) {
        turned = !turned;
        weight = node->result();
        continue;
      }
      return read_node(*node, argument, turned);
    }
  }

 private:
  std::pair<const Node*, int> first_use(ValueId value) const {
    for (const auto& [position, argument] : uses_.by_value.at(static_cast<size_t>(value))) {
      if (static_cast<size_t>(position) < program_.nodes.size()) {
        return {&program_.nodes[static_cast<size_t>(position)], argument};
      }
    }
    return {nullptr, 0};
  }

  WeightUse read_node(const Node& node, int argument, bool turned) const {
    const std::string_view name = base_name(node);
    const auto is_at = [&](std::string_view wanted) { return node.op.argument_index(wanted) == argument; };
    if (is_at("bias")) return {.kind = WeightUse::Kind::bias};
    if (is_norm(name)) return {.kind = is_at("weight") ? WeightUse::Kind::norm_weight : WeightUse::Kind::unknown};
    if (is_one_of(name, {"addmm", "baddbmm"}) && is_at("self")) return {.kind = WeightUse::Kind::bias};
    WeightUse use{.inputs_first = turned, .follower = find_follower(node)};
    if (is_convolution(name)) {
      use.kind = WeightUse::Kind::convolution;
      const bool flagged = node.op.argument_index("transposed") >= 0 && node.argument("transposed") == Argument(true);
      use.inputs_first = flagged || name.find("transpose") != std::string_view::npos;
    } else if (is_one_of(name, {"linear", "linear_act"})) {
      use.kind = WeightUse::Kind::product;
    } else if (is_one_of(name, {"mm", "addmm", "matmul", "bmm", "baddbmm"})) {
      use.kind = WeightUse::Kind::product;
      use.inputs_first = !turned;
    }
    return use;
  }

  Follower find_follower(const Node& node) const {
    if (node.op.argument_index("act") >= 0) {
      const auto* act = node.argument("act").get<std::string>();
      if (act != nullptr && *act != "none") return name_follower(*act);
    }
    const Node* next = &node;
    // The chain ends, because a program has no cycles, at the latest at a node that does not hand values on.
    while ((next = first_use(next->result()).first) != nullptr) {
      const std::string_view name = base_name(*next);
      if (!hands_on(name)) return name_follower(name);
    }
    return Follower::other;
  }

  static Follower name_follower(std::string_view name) {
    if (is_one_of(name, {"relu", "relu_", "relu6", "leaky_relu", "leaky_relu_"})) return Follower::relu;
    return is_one_of(name, {"tanh", "tanh_"}) ? Follower::tanh : Follower::other;
  }

  const Program& program_;
  Uses uses_;
};

struct Fans {
  double in, out;
};

Fans count_fans(const at::Tensor& weight, bool inputs_first) {
  const double field = static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0) * weight.size(1));
  const double first = static_cast<double>(weight.size(0)) * field,
               second = static_cast<double>(weight.size(1)) * field;
  return inputs_first ? Fans{first, second} : Fans{second, first};
}

std::string_view fill_smart(const at::Tensor& weight, const WeightUse& use, const at::Generator& generator) {
  const Fans fans = count_fans(weight, use.inputs_first);
  if (use.kind == WeightUse::Kind::convolution || use.follower == Follower::relu) {
    weight.normal_(0, std::sqrt(2 / fans.out), generator);
    return "kaiming_normal";
  }
  const double deviation = std::sqrt(2 / (fans.in + fans.out));
  if (use.follower == Follower::tanh) {
    weight.normal_(0, kTanhGain * deviation, generator);
    return "xavier_normal";
  }
  const double bound = std::sqrt(3.0) * deviation;
  weight.uniform_(-bound, bound, generator);
  return "xavier_uniform";
}

// Applies the inverse of the distribution to uniform numbers between the quantiles of the two cuts, as
// torch.nn.init.trunc_normal_ does.
void fill_truncated(const at::Tensor& weight, double deviation, const at::Generator& generator) {
  const double share = std::erf(2 / std::numbers::sqrt2);
  weight.uniform_(-share, share, generator).erfinv_().mul_(deviation * std::numbers::sqrt2);
  weight.clamp_(-2 * deviation, 2 * deviation);
}

void fill_orthogonal(const at::Tensor& weight, double gain, const at::Generator& generator) {
  const int64_t rows = weight.size(0), columns = weight.numel() / rows;
  const bool wide = rows < columns;
  const at::Tensor normal = at::empty({std::max(rows, columns), std::min(rows, columns)}, weight.options());
  normal.normal_(0, 1, generator);
  const auto [q, r] = at::linalg_qr(normal);
  // The signs make it uniform over all orthogonal matrices (Mezzadri 2007, arXiv math-ph/0609050).
  const at::Tensor signed_q = q.mul(at::diag(r).sign());
  weight.copy_((wide ? signed_q.t() : signed_q).reshape(weight.sizes())).mul_(gain);
}

std::string_view fill_plainly(const at::Tensor& weight, const InitializerName& row, double scale,
                              const at::Generator& generator) {
  switch (row.initializer) {
    case Initializer::uniform: weight.uniform_(-scale, scale, generator); break;
    case Initializer::normal: weight.normal_(0, scale, generator); break;
    case Initializer::truncated_normal: fill_truncated(weight, scale, generator); break;
    case Initializer::orthogonal: fill_orthogonal(weight, scale, generator); break;
    case Initializer::smart: break;
  }
  return row.name;
}

void check_options(const InitializeOptions& options) {
  if (!options.scale) return;
  if (options.initializer == Initializer::smart) {
    throw_error(ErrorKind::invalid_input,
                "the initializer 'smart' takes no scale, because its scale follows from the sizes");
  }
  if (!(*options.scale > 0)) {
    throw_error(ErrorKind::invalid_input, "the scale of an initializer must be above 0, not ", *options.scale);
  }
}

}  // namespace

std::optional<Initializer> find_initializer(std::string_view name) {
  for (const InitializerName& row : kInitializers) {
    if (row.name == name) return row.initializer;
  }
  return {};
}

std::string_view initializer_name(Initializer initializer) {
  for (const InitializerName& row : kInitializers) {
    if (row.initializer == initializer) return row.name;
  }
  return {};
}

std::vector<InitializedWeight> initialize_weights(const Program& program, const InitializeOptions& options) {
  check_options(options);
  const at::NoGradGuard no_gradients;
  const at::Generator generator = at::detail::createCPUGenerator(options.seed);
  const InitializerName& row = *std::find_if(kInitializers.begin(), kInitializers.end(), [&](const auto& candidate) {
    return candidate.initializer == options.initializer;
  });
  const UseReader reader(program);
  std::vector<InitializedWeight> done;
  std::vector<const void*> filled;
  for (const Weight& weight : program.weights) {
    if (weight.role != WeightRole::parameter || !weight.trains) continue;
    const WeightUse use = reader.read(weight.value);
    std::string_view rule = "kept";
    const void* storage = weight.tensor.data_ptr();
    if (weight.tensor.numel() == 0 || !weight.tensor.is_floating_point()) {
      rule = "kept";
    } else if (std::find(filled.begin(), filled.end(), storage) != filled.end()) {
      rule = "tied";
    } else if (use.kind == WeightUse::Kind::bias) {
      weight.tensor.zero_();
      rule = "zeros";
    } else if (use.kind == WeightUse::Kind::norm_weight) {
      weight.tensor.fill_(1);
      rule = "ones";
    } else if (weight.tensor.dim() >= 2) {
      rule = options.initializer == Initializer::smart
                 ? fill_smart(weight.tensor, use, generator)
                 : fill_plainly(weight.tensor, row, options.scale.value_or(row.scale), generator);
    }
    filled.push_back(storage);
    done.push_back({weight.name, rule});
  }
  return done;
}

}  // namespace lissome
