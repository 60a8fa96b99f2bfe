// For unit tests: the ranks of a group as threads of this process.
#pragma once

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lissome/distributed.h"

namespace lissome {

// A port of 127.0.0.1 that is taken as long as this lives.
class TakenPort {
 public:
  TakenPort() : handle_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(handle_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(listen(handle_, 1) == 0);
    REQUIRE(getsockname(handle_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    number_ = ntohs(address.sin_port);
  }
  ~TakenPort() { close(handle_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;

  uint16_t number() const { return number_; }

 private:
  int handle_;
  uint16_t number_ = 0;
};

inline uint16_t find_free_port() { return TakenPort().number(); }

// Runs `work` as each rank. Returns what each threw, empty for none. `change` may change a rank's place.
inline std::vector<std::string> run_ranks(int ranks, double timeout_seconds, const std::function<void(Group&)>& work,
                                          const std::function<void(GroupPlace&)>& change = {}) {
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  const uint16_t port = find_free_port();
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      GroupPlace place{.rank = rank, .ranks = ranks, .port = port};
      if (change) change(place);
      try {
        Group group(place, timeout_seconds);
        work(group);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace lissome
