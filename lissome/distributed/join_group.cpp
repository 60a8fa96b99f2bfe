// See join_group.h.
#include "lissome/distributed/join_group.h"

#include <c10/util/Logging.h>
#include <netdb.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "lissome/base.h"
#include "lissome/distributed/call_within.h"
#include "lissome/measure.h"

namespace lissome {
namespace {

constexpr double kGrace = 0.5;  // seconds that a call has for its own error, beyond the timeout

// c10d writes what it throws to stderr as well, with stack traces.
class QuietLog {
 public:
  QuietLog() : level_(FLAGS_caffe2_log_level) { FLAGS_caffe2_log_level = kFatal; }
  ~QuietLog() { FLAGS_caffe2_log_level = level_; }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  static constexpr int kFatal = 3;
  int level_;
};

std::string draw_token() {
  std::random_device random;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

std::string place_text(const GroupPlace& place) { return place.address + ":" + std::to_string(place.port); }

void put(c10d::Store& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

std::string find(c10d::Store& store, const std::string& key) {
  if (!store.check({key})) return {};
  const std::vector<uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

// Asks for the text under `key` again and again until `is_wanted`. Empty after the timeout.
std::string wait_for(c10d::Store& store, const std::string& key, const Stopwatch& watch, double timeout_seconds,
                     const auto& is_wanted) {
  for (;;) {
    const std::string text = find(store, key);
    if (!text.empty() && is_wanted(text)) return text;
    if (watch.seconds() > timeout_seconds) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

std::string ask_for_name(c10d::Store& store, const GroupPlace& place, double timeout_seconds) {
  const Stopwatch watch;
  const std::string token = draw_token();
  put(store, "join/" + std::to_string(place.rank), token);
  const std::string answer =
      wait_for(store, "name/" + token, watch, timeout_seconds, [](const std::string&) { return true; });
  if (answer.empty())
    throw_error(ErrorKind::io, "rank 0 did not answer rank ", place.rank, " at ", place_text(place), " within ",
                format_duration(timeout_seconds));
  const std::vector<std::string> parts = split(answer, ' ');
  if (parts.size() != 2 || parts[1] != std::to_string(place.ranks))
    throw_error(ErrorKind::usage, "rank ", place.rank, " counts ", place.ranks, " ranks (WORLD_SIZE), rank 0 counts ",
                parts.back());
  put(store, "taken/" + token, parts[0]);
  return parts[0];
}

std::string give_name(c10d::Store& store, const GroupPlace& place, double timeout_seconds) {
  const Stopwatch watch;
  const std::string name = draw_token();
  for (int rank = 1; rank < place.ranks; ++rank) {
    std::string answered;
    const std::string taken =
        wait_for(store, "join/" + std::to_string(rank), watch, timeout_seconds, [&](const std::string& token) {
          if (token != answered) put(store, "name/" + token, name + " " + std::to_string(place.ranks));
          answered = token;
          return find(store, "taken/" + token) == name;
        });
    if (taken.empty())
      throw_error(ErrorKind::io, "rank ", rank, " of ", place.ranks, " did not come to ", place_text(place), " within ",
                  format_duration(timeout_seconds), ". Start a process for each rank");
  }
  return name;
}

// Why a name has no address; empty where it has one.
std::string find_why_unresolved(const std::string& name) {
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(name.c_str(), nullptr, nullptr, &found);
  if (failed != 0) return gai_strerror(failed);
  freeaddrinfo(found);
  return {};
}

}  // namespace

c10::intrusive_ptr<c10d::Store> open_store(const GroupPlace& place, double timeout_seconds) {
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.isServer = place.rank == 0 && !place.has_store;
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1e3));
  const std::string failure = "rank " + std::to_string(place.rank) +
                              (options.isServer ? " cannot host" : " does not reach") + " the store of the group at " +
                              place_text(place) + " (MASTER_ADDR, MASTER_PORT): ";
  try {
    // libtorch waits for the first answer of a store without a limit, and where none listens until after the timeout.
    return call_within(timeout_seconds + kGrace, failure + "the connection", [address = place.address, options] {
      const QuietLog quiet;
      return c10::intrusive_ptr<c10d::Store>(c10::make_intrusive<c10d::TCPStore>(address, options));
    });
  } catch (const std::exception& error) {
    const std::string why = find_why_unresolved(place.address);
    if (!why.empty()) throw_error(ErrorKind::io, failure, "no address is known for that name (", why, ")");
    if (dynamic_cast<const Error*>(&error) != nullptr) throw;
    throw_error(ErrorKind::io, failure, split(error.what(), '\n').front());
  }
}

std::string agree_on_name(const c10::intrusive_ptr<c10d::Store>& store, const GroupPlace& place,
                          double timeout_seconds) {
  const std::string what = "rank " + std::to_string(place.rank) + ", which joins the group,";
  return call_within(timeout_seconds + kGrace, what, [store, place, timeout_seconds] {
    return place.rank == 0 ? give_name(*store, place, timeout_seconds) : ask_for_name(*store, place, timeout_seconds);
  });
}

}  // namespace lissome
