// Spans: named stretches of time, kept only while a trace records. Written out as a Chrome trace (chrome://tracing,
// Perfetto).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace lissome {

struct SpanRecord {
  std::string name;
  std::string detail;    // free text shown with the span
  int64_t start_ns = 0;  // monotonic clock
  int64_t duration_ns = 0;
  int thread = 0;  // small number, 0 for the first thread seen
};

// While one is alive, every Span of the process ends up in it. At most one at a time (internal error otherwise).
class Trace {
 public:
  Trace();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void add(SpanRecord record);
  std::vector<SpanRecord> records() const;
  static Trace* current() { return current_.load(std::memory_order_acquire); }

 private:
  static std::atomic<Trace*> current_;
  mutable std::mutex mutex_;  // guards records_
  std::vector<SpanRecord> records_;
};

class Span {
 public:
  explicit Span(std::string name, std::string detail = {});
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Trace* trace_;
  SpanRecord record_;
};

// The Trace Event Format's JSON: complete events, microseconds.
std::string print_chrome_trace(const std::vector<SpanRecord>& records);

}  // namespace lissome
