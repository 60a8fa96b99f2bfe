// Calls that may wait for ever for another machine, under a deadline of our own.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "lissome/base.h"

namespace lissome {

// What `call` returns or throws. It runs on a thread of its own, which is left behind when it takes longer than
// `seconds`: so `call` must own all that it uses. Throws io then, "`what` got no answer within ...".
template <typename Call>
auto call_within(double seconds, const std::string& what, Call call) -> decltype(call()) {
  using Result = decltype(call());
  auto task = std::make_shared<std::packaged_task<Result()>>(std::move(call));
  std::future<Result> result = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  if (result.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready)
    throw_error(ErrorKind::io, what, " got no answer within ", format_duration(seconds));
  return result.get();
}

}  // namespace lissome
