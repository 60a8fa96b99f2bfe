#include "tests/fuzz/json_edits.h"

#include <iterator>

namespace lissome {
namespace {

void change_leaf_of(Json& json, FuzzRandom& random, int depth) {
  if (json.is_structured() && !json.empty() && depth < 8) {
    auto item = json.begin();
    std::advance(item, static_cast<std::ptrdiff_t>(random.below(json.size())));
    if (random.once_in(12)) return static_cast<void>(json.erase(item));
    return change_leaf_of(*item, random, depth + 1);
  }
  const Json choices[] = {nullptr,
                          true,
                          -1,
                          0.5,
                          "text",
                          Json::array(),
                          Json::object(),
                          pick_number(random),
                          1e300,
                          uint64_t(-1),
                          "2*n",
                          Json::array({1, "a"}),
                          Json{{"number", "nan"}}};
  json = random.pick(choices);
}

}  // namespace

void change_any_leaf(Json& json, FuzzRandom& random) { change_leaf_of(json, random, 0); }

void change_integer(Json& number, FuzzRandom& random) {
  const auto before = number.get<int64_t>();
  switch (random.below(6)) {
    case 0: number = pick_number(random); break;
    case 1: number = pick_size(random); break;
    case 2: number = before == INT64_MAX ? before : before + 1; break;
    case 3: number = before == INT64_MIN ? before : before - 1; break;
    case 4: number = before / 2; break;
    default: number = before > INT32_MAX || before < INT32_MIN ? before : before * 2; break;
  }
}

int64_t pick_number(FuzzRandom& random) {
  constexpr int64_t kNumbers[] = {-1,
                                  0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  5,
                                  7,
                                  8,
                                  15,
                                  16,
                                  17,
                                  31,
                                  32,
                                  33,
                                  63,
                                  64,
                                  65,
                                  128,
                                  255,
                                  256,
                                  -2,
                                  -3,
                                  -16,
                                  1000,
                                  65536,
                                  INT32_MAX,
                                  INT64_MAX,
                                  INT64_MIN,
                                  int64_t{1} << 30,
                                  int64_t{1} << 31,
                                  int64_t{1} << 32,
                                  int64_t{1} << 40,
                                  int64_t{1} << 45,
                                  int64_t{1} << 46,
                                  int64_t{1} << 57,
                                  int64_t{1} << 62};
  return kNumbers[random.once_in(3) ? random.below(std::size(kNumbers)) : random.below(12)];
}

int64_t pick_size(FuzzRandom& random) {
  constexpr int64_t kSizes[] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 64, 65};
  return kSizes[random.below(random.once_in(3) ? std::size(kSizes) : 14)];
}

}  // namespace lissome
