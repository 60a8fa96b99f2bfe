// The notices of a training, for people: choices that they might not expect, and observations.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lissome {

class NoticeLog {
 public:
  using Listener = std::function<void(const std::string&)>;

  // `on_notice` gets each text when it is added. It must outlive the log and may be empty.
  explicit NoticeLog(const Listener& on_notice) : on_notice_(on_notice) {}

  void add(const std::string& text) {
    texts_.push_back(text);
    if (on_notice_) on_notice_(text);
  }
  // All notices so far, the oldest first.
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  const Listener& on_notice_;
  std::vector<std::string> texts_;
};

}  // namespace lissome
