// The versions of a search that no other one beats in time, memory, size and quality at once (a Pareto front).
#pragma once

#include <string>
#include <vector>

#include "lissome/tune/variant.h"

namespace lissome {

class Front {
 public:
  // `folder`: is made, and receives the versions as files, and front.json; empty: nothing is written. `model`: named in
  // front.json. `max_loss`: a hundredth of it counts as the same quality. Throws usage for a folder that has a front
  // already.
  Front(std::string folder, std::string model, bool higher_quality_is_better, double max_loss);

  // Whether the quality of a version is worth measuring: none whose loss is allowed beats it in all else.
  bool may_hold(const PointRecord& point) const;
  // Adds the version, unless another one beats it, and drops those that it beats, with their files. One that is chosen
  // is added in any case, and is then the only one. Throws io errors.
  void add(PointRecord point, const Variant& variant);

  // The fastest first.
  const std::vector<PointRecord>& points() const { return points_; }

 private:
  bool beats(const PointRecord& a, const PointRecord& b, bool by_quality_too) const;
  void write_list() const;

  std::string folder_, model_;
  bool higher_is_better_;
  double same_quality_;
  std::vector<PointRecord> points_;
  int files_ = 0;
};

// As front.json has it.
Json to_json(const PointRecord& point);

}  // namespace lissome
