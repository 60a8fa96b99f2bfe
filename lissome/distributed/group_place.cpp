// See group_place.h.
#include "lissome/distributed/group_place.h"

#include <charconv>

#include "lissome/base.h"

namespace lissome {
namespace {

constexpr int kMostRanks = 1 << 16;

int read_number(const char* name, int least, int most, std::optional<int> absent = std::nullopt) {
  const std::optional<std::string> text = read_environment(name);
  if (!text && absent) return *absent;
  int number = 0;
  const char *begin = text ? text->data() : nullptr, *end = text ? begin + text->size() : nullptr;
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (!text || error != std::errc() || stop != end || number < least || number > most)
    throw_error(ErrorKind::usage, "the environment variable ", name, " is ", text ? quote(*text) : "not set",
                "; a group of processes needs a number from ", least, " to ", most,
                ".\n      Start the processes with lissome launch or torchrun, which set it");
  return number;
}

}  // namespace

std::optional<GroupPlace> find_group_place() {
  if (!read_environment("WORLD_SIZE")) return std::nullopt;
  GroupPlace place;
  place.ranks = read_number("WORLD_SIZE", 1, kMostRanks);
  place.rank = read_number("RANK", 0, place.ranks - 1);
  place.address = read_environment("MASTER_ADDR").value_or(place.address);
  place.port = static_cast<uint16_t>(read_number("MASTER_PORT", 1, 65535, place.port));
  place.has_store = read_environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return place;
}

}  // namespace lissome
