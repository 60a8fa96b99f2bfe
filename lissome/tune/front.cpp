#include "lissome/tune/front.h"

#include <ATen/core/ivalue.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "lissome/base.h"
#include "lissome/base/model_file.h"

namespace lissome {
namespace {

constexpr double kSameTime = 1.01;  // factor between times that count as one

}  // namespace

Front::Front(std::string folder, std::string model, bool higher_quality_is_better)
    : folder_(std::move(folder)), model_(std::move(model)), higher_is_better_(higher_quality_is_better) {
  if (folder_.empty()) return;
  mkdir(folder_.c_str(), 0777);  // what it fails for, the first file says
  if (access((folder_ + "/front.json").c_str(), F_OK) == 0)
    throw_error(ErrorKind::usage, quote(folder_), " holds the front of an earlier search\nName another folder");
  write_list();
}

bool Front::beats(const PointRecord& a, const PointRecord& b, bool by_quality_too) const {
  if (a.ratio.median > kSameTime * b.ratio.median || a.memory > b.memory || a.size > b.size) return false;
  if (!by_quality_too || !a.quality || !b.quality || *a.quality == *b.quality) return true;
  return higher_is_better_ ? *a.quality > *b.quality : *a.quality < *b.quality;
}

bool Front::may_hold(const PointRecord& point) const {
  return std::ranges::none_of(points_,
                              [&](const PointRecord& other) { return other.allowed && beats(other, point, false); });
}

void Front::add(PointRecord point, const Variant& variant) {
  if (std::ranges::any_of(points_, [&](const PointRecord& other) { return beats(other, point, true); })) return;
  if (!folder_.empty()) {
    const std::string number = std::to_string(++files_);
    point.file = (number.size() < 2 ? "0" + number : number) + ".lissome";
    save_model_file(folder_ + "/" + point.file, pack_prepared(*variant.program, *variant.plan, FileContents::plan));
  }
  std::erase_if(points_, [&](const PointRecord& other) {
    if (!beats(point, other, true)) return false;
    if (!other.file.empty()) unlink((folder_ + "/" + other.file).c_str());
    return true;
  });
  points_.push_back(std::move(point));
  std::ranges::sort(points_, {}, [](const PointRecord& each) { return each.ratio.median; });
  write_list();
}

void Front::choose(const std::string& name) {
  for (PointRecord& point : points_) point.chosen = point.name == name;
  write_list();
}

void Front::write_list() const {
  if (folder_.empty()) return;
  Json list = {{"model", model_}, {"points", Json::array()}};
  for (const PointRecord& point : points_) list["points"].push_back(to_json(point));
  write_file(folder_ + "/front.json", print_json(list) + "\n");
}

Json to_json(const PointRecord& point) {
  return {
      {"name", point.name},
      {"file", point.file.empty() ? Json() : Json(point.file)},
      {"seconds", point.seconds},
      {"ratio", {{"median", point.ratio.median}, {"interval", {point.ratio.interval.low, point.ratio.interval.high}}}},
      {"memory", point.memory},
      {"size", point.size},
      {"quality", point.quality ? Json(*point.quality) : Json()},
      {"allowed", point.allowed},
      {"chosen", point.chosen}};
}

}  // namespace lissome
