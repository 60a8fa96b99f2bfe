// The flags of the commands that run a model as its users do, run and bench: within a limit on memory, padded into
// buckets; and the session that they ask for.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lissome/cli/flags.h"
#include "lissome/runtime.h"

namespace lissome {

struct SessionFlags {
  std::string memory;             // "64MiB"
  std::string buckets;            // "sequence=32,64,128"
  std::vector<std::string> pads;  // "input_ids=0"
};
void add_session_flags(Flags& flags, SessionFlags& session);

// Bytes, 0 without a limit. Throws usage for another form.
int64_t read_memory(const SessionFlags& flags);
// Nothing without --buckets. Throws usage for another form, and for --pad alone.
std::optional<BucketOptions> read_buckets(const SessionFlags& flags);

class AskedSession {
 public:
  // `inputs`, in the plan's order, are what buckets are proved on. Throws what Session and BucketedSession throw.
  AskedSession(std::shared_ptr<const Plan> plan, int threads, const SessionFlags& flags,
               std::span<const TensorView> inputs);

  std::vector<Array> run(std::span<const TensorView> inputs);
  const Session& session() const;
  // What padding changed of the answers to the inputs; nothing without buckets.
  std::optional<double> seen_difference() const;

 private:
  std::variant<Session, BucketedSession> session_;
};

}  // namespace lissome
