#include "lissome/tune/layers.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <map>

namespace lissome {
namespace {

constexpr int kRuns = 15;

struct Part {
  LayerRecord layer;
  std::vector<double> seconds;  // of each run
  int64_t slowest = 0;          // nanoseconds of the step whose op and kernel the layer shows
};
// By module and source line. A fused node has the origin of its main computation.
using Parts = std::map<std::pair<std::string, std::string>, Part>;

Parts profile(Variant& variant, const Bench& bench, const std::function<bool()>& out_of_time,
              std::vector<std::pair<std::string, std::string>>* order) {
  Parts parts;
  for (int run = 0; run < kRuns && (run == 0 || !out_of_time()); ++run) {
    const StepSink sink = [&](const StepTiming& timing) {
      const PlanOrigin none;
      const PlanOrigin& origin = timing.origin != nullptr ? *timing.origin : none;
      // Without an origin, the op's name identifies the layer.
      const std::string place = origin.module.empty() && origin.source.empty() ? origin.op : origin.module;
      const auto [entry, fresh] = parts.try_emplace({place, origin.source});
      Part& part = entry->second;
      if (fresh) {
        part.layer = {origin.module, origin.source, origin.code, origin.op, std::string(timing.kernel), {}, 0, 0, 0};
        if (order != nullptr) order->push_back(entry->first);
      }
      if (part.seconds.size() <= static_cast<size_t>(run)) part.seconds.resize(static_cast<size_t>(run) + 1, 0);
      part.seconds[static_cast<size_t>(run)] += static_cast<double>(timing.nanoseconds) * 1e-9;
      if (run > 0) return;
      part.layer.bytes += timing.bytes;
      if (timing.nanoseconds <= part.slowest) return;
      part.slowest = timing.nanoseconds;
      part.layer.op = origin.op;
      part.layer.kernel = timing.kernel;
    };
    variant.session->run(bench.views, &sink);
  }
  return parts;
}

}  // namespace

std::vector<LayerRecord> compare_layers(Variant& original, Variant& best, const Bench& bench,
                                        const std::function<bool()>& out_of_time) {
  std::vector<std::pair<std::string, std::string>> order;
  const Parts before = profile(original, bench, out_of_time, &order);
  const Parts after = profile(best, bench, out_of_time, nullptr);
  for (const auto& [key, part] : after) {
    if (before.find(key) == before.end()) order.push_back(key);
  }
  std::vector<LayerRecord> layers;
  for (const auto& key : order) {
    const auto old_part = before.find(key), new_part = after.find(key);
    LayerRecord layer = old_part != before.end() ? old_part->second.layer : new_part->second.layer;
    if (old_part != before.end()) layer.seconds_before = find_percentile(old_part->second.seconds, 0.5);
    if (new_part != after.end()) {
      layer.seconds_after = find_percentile(new_part->second.seconds, 0.5);
      layer.kernel = new_part->second.layer.kernel;
      layer.bytes = new_part->second.layer.bytes;
    } else {
      layer.kernel = "gone";
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

Series trace_memory(const std::string& name, const Program& program, const Bench& bench) {
  Series series{name, "node", "B", {}, {}};
  const Bound bound = bind_program(program, to_ivalues(bench.inputs));
  const std::vector<int> last_uses = find_last_uses(program);
  const auto bytes_of = [&](ValueId value) {
    const BoundValue& facts = bound.values.at(static_cast<size_t>(value));
    if (facts.kind != ValueKind::tensor) return int64_t{0};
    return count_elements(facts.sizes) * item_size(facts.dtype);
  };
  // A storage counts once while any of its values is alive.
  std::map<int64_t, std::pair<int64_t, int>> storages;  // storage -> (bytes, last use)
  int64_t live = 0;
  for (size_t position = 0; position < program.nodes.size(); ++position) {
    for (ValueId result : program.nodes[position].results) {
      const int64_t storage = bound.values.at(static_cast<size_t>(result)).storage;
      if (storage < 0) continue;
      const int last = last_uses.at(static_cast<size_t>(result));
      const auto [entry, fresh] = storages.try_emplace(storage, bytes_of(result), last);
      if (fresh) {
        live += entry->second.first;
      } else {
        entry->second.second = std::max(entry->second.second, last);
      }
    }
    series.x.push_back(static_cast<double>(position));
    series.y.push_back(static_cast<double>(live));
    for (auto entry = storages.begin(); entry != storages.end();) {
      if (entry->second.second > static_cast<int>(position)) {
        ++entry;
        continue;
      }
      live -= entry->second.first;
      entry = storages.erase(entry);
    }
  }
  return series;
}

}  // namespace lissome
