#include "lissome/cli/profile/slow_nodes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace lissome {
namespace {

constexpr double kLeastLoss = 0.005;  // of a call

// A gather of rows is not among them: the table of an embedding is read once, however it is done.
bool only_moves(std::string_view kernel) {
  static constexpr std::array<std::string_view, 5> kMovers = {"copy", "concat", "pad", "gather", "view"};
  return std::ranges::find(kMovers, kernel) != kMovers.end();
}

struct Loss {
  double seconds = 0, share_of_limit = std::nan("");
  std::string reason;
};

Loss find_loss(const NodeTime& node, const MachinePeaks& peaks, double read_rate) {
  if (node.kernel == "session") return {};
  if (node.kernel == kReferenceStep) return {node.typical, std::nan(""), "runs through libtorch"};
  const StepLimit limit = find_step_limit(node.kernel, node.bytes, node.products, node.multiplied, peaks, read_rate);
  const double least = std::max(limit.seconds, node.parts > 1 ? peaks.barrier : 0.0);
  const double share = node.typical > 0 ? std::min(1.0, least / node.typical) : 1;
  if (only_moves(node.kernel)) return {node.typical, share, "moves data and computes nothing"};
  if (share >= 0.5) return {};
  return {node.typical - least, share, "below half of what " + std::string(limit.what) + " allows"};
}

}  // namespace

Table list_slow_nodes(const Profile& profile, const MachinePeaks& peaks, int64_t working_set) {
  const double read_rate = choose_read_rate(peaks, working_set, cache_sizes());
  double sum = 0;
  for (const NodeTime& node : profile.nodes) sum += node.typical;
  struct Row {
    const NodeTime* node;
    Loss loss;
  };
  std::vector<Row> rows;
  for (const NodeTime& node : profile.nodes) {
    Loss loss = find_loss(node, peaks, read_rate);
    if (loss.seconds > kLeastLoss * sum) rows.push_back({&node, std::move(loss)});
  }
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) { return a.loss.seconds > b.loss.seconds; });
  Table table{"Slow",
              {{"node", ""},
               {"op", ""},
               {"kernel", ""},
               {"time", "s"},
               {"lost", "%"},
               {"of limit", "%"},
               {"reason", ""},
               {"module", ""}},
              {}};
  for (const auto& [node, loss] : rows) {
    table.rows.push_back({node->origin.node, node->origin.op, node->kernel, node->typical, loss.seconds / sum,
                          loss.share_of_limit, loss.reason, node->origin.module});
  }
  return table;
}

}  // namespace lissome
