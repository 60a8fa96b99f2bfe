// split_dataset. Samples that are equal byte by byte form one group, and a group is never divided: so what calibrates
// cannot also judge. Groups are shuffled within their class, and classes are dealt in the same share.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>

#include "lissome/data.h"
#include "lissome/data/random.h"

namespace lissome {
namespace {

using Group = std::vector<int64_t>;  // rows of equal samples

std::string_view sample_bytes(const DataColumn& column, int64_t row) {
  const auto bytes = static_cast<size_t>(column.array.bytes() / column.array.sizes[0]);
  return {column.array.data<char>() + static_cast<size_t>(row) * bytes, bytes};
}

uint64_t hash_sample(const Dataset& dataset, int64_t row) {
  uint64_t hash = 0;
  for (const DataColumn& column : dataset.columns)
    hash = hash * 0x9E3779B97F4A7C15 + std::hash<std::string_view>{}(sample_bytes(column, row));
  return hash;
}

bool are_equal(const Dataset& dataset, int64_t a, int64_t b) {
  return std::all_of(dataset.columns.begin(), dataset.columns.end(),
                     [&](const DataColumn& column) { return sample_bytes(column, a) == sample_bytes(column, b); });
}

// In the order of their first samples. Labels do not count: one sample with two labels is still one sample.
std::vector<Group> group_samples(const Dataset& dataset) {
  std::vector<Group> groups;
  std::unordered_map<uint64_t, std::vector<size_t>> by_hash;
  for (const int64_t row : dataset.rows) {
    auto& candidates = by_hash[hash_sample(dataset, row)];
    const auto same = std::find_if(candidates.begin(), candidates.end(),
                                   [&](size_t group) { return are_equal(dataset, groups[group][0], row); });
    if (same != candidates.end()) {
      groups[*same].push_back(row);
      continue;
    }
    candidates.push_back(groups.size());
    groups.push_back({row});
  }
  return groups;
}

std::map<int64_t, std::vector<Group>> sort_by_class(const Dataset& dataset, std::vector<Group> groups) {
  const bool has_classes = dataset.labels && dataset.labels->dtype == Dtype::i64 && dataset.labels->sizes.size() == 1;
  std::map<int64_t, std::vector<Group>> classes;
  for (Group& group : groups) {
    const int64_t label = has_classes ? dataset.labels->data<int64_t>()[group[0]] : 0;
    classes[label].push_back(std::move(group));
  }
  return classes;
}

// Classes one after the other, each spread evenly: the cut at any place leaves the same share of every class.
std::vector<Group> interleave(const std::map<int64_t, std::vector<Group>>& classes, Random& random) {
  struct Place {
    double position;
    uint64_t tie;
    const Group* group;
  };
  std::vector<Place> places;
  for (const auto& [label, groups] : classes)
    for (size_t i = 0; i < groups.size(); ++i)
      places.push_back(
          {(static_cast<double>(i) + 0.5) / static_cast<double>(groups.size()), random.next(), &groups[i]});
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return std::pair(a.position, a.tie) < std::pair(b.position, b.tie); });
  std::vector<Group> order;
  for (const Place& place : places) order.push_back(*place.group);
  return order;
}

Dataset take_rows(const Dataset& dataset, std::span<const Group> groups, Random& random) {
  Dataset part = dataset;
  part.rows.clear();
  for (const Group& group : groups) part.rows.insert(part.rows.end(), group.begin(), group.end());
  shuffle_values(&part.rows, random);
  return part;
}

}  // namespace

DataSplit split_dataset(const Dataset& dataset, const SplitOptions& options) {
  if (!(options.calibration > 0 && options.calibration < 1) || options.most_calibration < 1)
    throw_error(ErrorKind::usage, "a calibration share of ", options.calibration, " with at most ",
                options.most_calibration,
                " samples was asked for; a share between 0 and 1, and at least one sample, are allowed.");
  LISSOME_CHECK(dataset.image_files.empty(), quote(dataset.source), " is split before it is fitted");
  std::vector<Group> groups = group_samples(dataset);
  if (groups.size() < 2)
    throw_error(
        ErrorKind::invalid_input, quote(dataset.source), ": there ",
        dataset.samples() == 1 ? "is 1 sample" : "are " + std::to_string(dataset.samples()) + " samples, all alike",
        "; at least two different ones are needed: one to calibrate and one to judge by.");
  Random random(options.seed);
  auto classes = sort_by_class(dataset, std::move(groups));
  for (auto& [label, members] : classes) shuffle_values(&members, random);
  const std::vector<Group> order = interleave(classes, random);

  const double wanted = std::min(std::round(static_cast<double>(dataset.samples()) * options.calibration),
                                 static_cast<double>(options.most_calibration));
  size_t cut = 0;
  double taken = 0;
  while (cut + 1 < order.size() && (cut == 0 || taken + static_cast<double>(order[cut].size()) <= wanted))
    taken += static_cast<double>(order[cut++].size());
  return {take_rows(dataset, std::span(order).first(cut), random),
          take_rows(dataset, std::span(order).subspan(cut), random)};
}

}  // namespace lissome
