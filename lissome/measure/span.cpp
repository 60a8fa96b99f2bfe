#include "lissome/measure/span.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "lissome/base.h"
#include "lissome/measure/clock.h"

namespace lissome {
namespace {

int number_thread() {
  static std::atomic<int> next{0};
  thread_local const int number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

std::atomic<Trace*> Trace::current_{nullptr};

Trace::Trace() {
  Trace* expected = nullptr;
  LISSOME_CHECK(current_.compare_exchange_strong(expected, this), "a trace is being recorded already");
}

Trace::~Trace() { current_.store(nullptr, std::memory_order_release); }

void Trace::add(SpanRecord record) {
  const std::lock_guard lock(mutex_);
  records_.push_back(std::move(record));
}

std::vector<SpanRecord> Trace::records() const {
  const std::lock_guard lock(mutex_);
  return records_;
}

Span::Span(std::string name, std::string detail) : trace_(Trace::current()) {
  if (trace_ == nullptr) return;
  record_ = {std::move(name), std::move(detail), now_nanoseconds(), 0, number_thread()};
}

Span::~Span() {
  // The trace may have ended before the span: then nobody wants it.
  if (trace_ == nullptr || trace_ != Trace::current()) return;
  record_.duration_ns = now_nanoseconds() - record_.start_ns;
  trace_->add(std::move(record_));
}

std::string print_chrome_trace(const std::vector<SpanRecord>& records) {
  int64_t start = records.empty() ? 0 : records.front().start_ns;
  for (const SpanRecord& record : records) start = std::min(start, record.start_ns);
  Json events = Json::array();
  for (const SpanRecord& record : records) {
    Json event = {{"name", record.name},
                  {"ph", "X"},
                  {"pid", 1},
                  {"tid", record.thread},
                  {"ts", static_cast<double>(record.start_ns - start) / 1000},
                  {"dur", static_cast<double>(record.duration_ns) / 1000}};
    if (!record.detail.empty()) event["args"] = {{"detail", record.detail}};
    events.push_back(std::move(event));
  }
  return print_json(Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}});
}

}  // namespace lissome
