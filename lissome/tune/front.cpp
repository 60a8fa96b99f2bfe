#include "lissome/tune/front.h"

#include <ATen/core/ivalue.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "lissome/base.h"

namespace lissome {
namespace {

constexpr double kSame = 1.01;         // factor between times, and between bytes, that count as one
constexpr double kSameQuality = 0.01;  // share of what may be lost

}  // namespace

Front::Front(std::string folder, std::string model, bool higher_quality_is_better, double max_loss)
    : folder_(std::move(folder)),
      model_(std::move(model)),
      higher_is_better_(higher_quality_is_better),
      same_quality_(kSameQuality * max_loss) {
  if (folder_.empty()) return;
  mkdir(folder_.c_str(), 0777);  // what it fails for, the first file says
  std::error_code none;
  if (std::filesystem::exists(folder_ + "/front.json", none))
    throw_error(ErrorKind::usage, quote(folder_), " holds the front of an earlier search\nName another folder");
  for (const auto& entry : std::filesystem::directory_iterator(folder_, none)) {
    if (entry.path().extension() == ".lissome")
      throw_error(ErrorKind::usage, quote(folder_), " holds ", quote(entry.path().filename().string()),
                  ", and a front's versions might overwrite such files\nName another folder");
  }
  write_list();
}

bool Front::beats(const PointRecord& a, const PointRecord& b, bool by_quality_too) const {
  const auto is_more = [](auto x, auto y) { return static_cast<double>(x) > kSame * static_cast<double>(y); };
  if (is_more(a.ratio.median, b.ratio.median) || is_more(a.memory, b.memory) || is_more(a.size, b.size)) return false;
  if (!by_quality_too || !a.quality || !b.quality) return true;
  return (higher_is_better_ ? *b.quality - *a.quality : *a.quality - *b.quality) <= same_quality_;
}

bool Front::may_hold(const PointRecord& point) const {
  return std::ranges::none_of(points_,
                              [&](const PointRecord& other) { return other.allowed && beats(other, point, false); });
}

void Front::add(PointRecord point, const Variant& variant) {
  if (!point.chosen && std::ranges::any_of(points_, [&](const auto& other) { return beats(other, point, true); }))
    return;
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
  if (point.chosen) {
    for (PointRecord& other : points_) other.chosen = false;
  }
  points_.push_back(std::move(point));
  std::ranges::sort(points_, {}, [](const PointRecord& each) { return each.ratio.median; });
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
