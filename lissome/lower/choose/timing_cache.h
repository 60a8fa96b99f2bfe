// What timing told, kept between runs in a file below the user's cache folder: the time of each kernel alone on each
// kind of node, and the kernels chosen for a whole program. Holds for this processor and instruction set, number of
// threads, build of our kernels and libtorch; a file made for anything else, or damaged, counts as empty and is
// replaced. At most some thousand entries: the oldest go first.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lissome/lower/choose/choose_kernels.h"
#include "lissome/lower/choose/time_candidates.h"

namespace lissome {

class TimingCache {
 public:
  explicit TimingCache(int threads);

  // By kernel; empty when nothing is known of this kind of node (CandidateTimer::describe).
  std::map<std::string, CandidateTime> find_times(const std::string& kind) const;
  void keep_times(const std::string& kind, const std::map<std::string, CandidateTime>& times);

  // `key` from hash_text() of everything that the choice depends on, besides the machine.
  std::optional<Preferences> find_choice(const std::string& key) const;
  void keep_choice(const std::string& key, const Preferences& chosen);

  // Writes what was kept beside what other processes wrote meanwhile, all or nothing. A cache that cannot be written
  // is no cache: no error.
  void save() const;

 private:
  // As the file has them: {"machine", "times": {kind: {kernel: nanoseconds or failure}}, "choices": {key: {node:
  // kernel}}}
  struct Entries {
    std::map<std::string, std::map<std::string, CandidateTime>> times;
    std::map<std::string, Preferences> choices;
  };

  std::string path_, machine_;  // no path: nothing is kept
  Entries kept_, fresh_;
};

std::string hash_text(const std::string& text);  // 16 hexadecimal digits

}  // namespace lissome
