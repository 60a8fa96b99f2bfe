// The flags of `run` and `bench` for a session: a limit on memory and buckets to which inputs are padded. Opens the
// session that they ask for.
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

// Returns bytes, 0 without a limit. Throws usage for a wrong form.
int64_t read_memory(const SessionFlags& flags);
// Empty without --buckets. Throws usage for a wrong form, and for --pad without --buckets.
std::optional<BucketOptions> read_buckets(const SessionFlags& flags);

class AskedSession {
 public:
  // `inputs`, in the plan's order, are used to check that buckets keep the outputs. Throws the errors of Session and
  // BucketedSession.
  AskedSession(std::shared_ptr<const Plan> plan, int threads, const SessionFlags& flags,
               std::span<const TensorView> inputs);

  std::vector<Array> run(std::span<const TensorView> inputs);
  const Session& session() const;
  // The difference of the outputs that padding caused; empty without buckets.
  std::optional<double> seen_difference() const;

 private:
  std::variant<Session, BucketedSession> session_;
};

}  // namespace lissome
