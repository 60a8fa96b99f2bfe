#include "lissome/cli/session_flags.h"

#include <charconv>

namespace lissome {
namespace {

std::pair<std::string, std::string> cut_at_equals(const std::string& text, const char* form) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    throw_error(ErrorKind::usage, form, ", not ", quote(text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

template <typename Number>
Number read_number(const std::string& text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw_error(ErrorKind::usage, "--buckets and --pad: ", quote(text), " is not a number");
  return number;
}

std::variant<Session, BucketedSession> open_session(std::shared_ptr<const Plan> plan, int threads,
                                                    const SessionFlags& flags, std::span<const TensorView> inputs) {
  const std::optional<BucketOptions> buckets = read_buckets(flags);
  Session session(std::move(plan), {.threads = threads, .memory = read_memory(flags)});
  if (!buckets) return session;
  return BucketedSession(std::move(session), *buckets, inputs);
}

}  // namespace

void add_session_flags(Flags& flags, SessionFlags& session) {
  flags.add("--memory", session.memory,
            "Most memory for weights and intermediate values, for example 64MiB. Weights beyond it are read with every "
            "call.");
  flags.add(
      "--buckets", session.buckets,
      "DIMENSION=SIZE,SIZE,... (or INPUT.1=...): pad inputs up to the next of these sizes and cut outputs back, after "
      "checking that the outputs stay the same on these inputs.");
  flags.add("--pad", session.pads,
            "INPUT=NUMBER: the number that pads an input; needed for every input with that dimension.");
}

int64_t read_memory(const SessionFlags& flags) {
  if (flags.memory.empty()) return 0;
  const int64_t bytes = parse_bytes(flags.memory);
  if (bytes <= 0) throw_error(ErrorKind::usage, "--memory ", quote(flags.memory), " leaves nothing to run in");
  return bytes;
}

std::optional<BucketOptions> read_buckets(const SessionFlags& flags) {
  if (flags.buckets.empty()) {
    if (flags.pads.empty()) return std::nullopt;
    throw_error(ErrorKind::usage, "--pad needs --buckets, whose padding it fills");
  }
  BucketOptions options;
  const auto [dimension, sizes] =
      cut_at_equals(flags.buckets, "--buckets is DIMENSION=SIZE,SIZE,..., such as sequence=32,64,128");
  options.dimension = dimension;
  for (const std::string& size : split(sizes, ',')) options.sizes.push_back(read_number<int64_t>(size));
  for (const std::string& pad : flags.pads) {
    const auto [input, value] = cut_at_equals(pad, "--pad is INPUT=NUMBER, such as attention_mask=0");
    options.pads[input] = read_number<double>(value);
  }
  return options;
}

AskedSession::AskedSession(std::shared_ptr<const Plan> plan, int threads, const SessionFlags& flags,
                           std::span<const TensorView> inputs)
    : session_(open_session(std::move(plan), threads, flags, inputs)) {}

std::vector<Array> AskedSession::run(std::span<const TensorView> inputs) {
  return std::visit([&](auto& session) { return session.run(inputs); }, session_);
}

const Session& AskedSession::session() const {
  if (const auto* bucketed = std::get_if<BucketedSession>(&session_)) return bucketed->session();
  return std::get<Session>(session_);
}

std::optional<double> AskedSession::seen_difference() const {
  if (const auto* bucketed = std::get_if<BucketedSession>(&session_)) return bucketed->seen_difference();
  return std::nullopt;
}

}  // namespace lissome
