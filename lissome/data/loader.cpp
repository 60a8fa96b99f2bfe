// The queue behind Loader. Batches have consecutive tickets from where the loader stands, over the ends of epochs;
// ticket t lives in slot t % slots. A worker takes the next ticket when its slot is free, fills the slot without the
// lock, and marks it ready; next() waits for the slot of the ticket that is due. So order is kept, at most
// workers * prefetch batches exist besides the caller's, and their memory goes round.
#include "lissome/data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "lissome/data/batch_maker.h"
#include "lissome/data/cache_source.h"
#include "lissome/measure.h"

namespace lissome {
namespace {

constexpr int kMostWorkers = 256, kMostPrefetch = 1024;
constexpr size_t kNamedBadSamples = 100;

void check_workers(int workers, int prefetch) {
  if (workers < 0 || workers > kMostWorkers || prefetch < 1 || prefetch > kMostPrefetch)
    throw_error(ErrorKind::usage, workers, " workers with ", prefetch, " batches each were asked for; 0 to ",
                kMostWorkers, " workers and 1 to ", kMostPrefetch, " batches are allowed.");
}

std::shared_ptr<const BatchSource> wrap_source(std::shared_ptr<const BatchSource> source, int64_t cache_bytes) {
  if (cache_bytes < 0)
    throw_error(ErrorKind::usage, "a cache of ", cache_bytes, " bytes was asked for; at least 0 is allowed.");
  return cache_bytes > 0 ? cache_source(std::move(source), cache_bytes) : source;
}

}  // namespace

class Loader::State {
  // Walks over the batches of all epochs. Plans are shared with the jobs that were given out.
  class Cursor {
   public:
    explicit Cursor(const Sampler& sampler) : sampler_(&sampler) {}

    struct Job {
      std::shared_ptr<const EpochPlan> plan;
      LoaderPosition at;
      std::span<const int64_t> samples() const { return plan->take(at.batch); }
    };
    void move_to(const LoaderPosition& position) {
      if (position.epoch != at_.epoch) plan_.reset();
      at_ = position;
    }
    Job take() {
      if (at_.batch == sampler_->batches()) move_to({at_.epoch + 1, 0});
      if (plan_ == nullptr) plan_ = std::make_shared<const EpochPlan>(sampler_->plan(at_.epoch));
      Job job{plan_, at_};
      ++at_.batch;
      return job;
    }

   private:
    const Sampler* sampler_;
    LoaderPosition at_;
    std::shared_ptr<const EpochPlan> plan_;
  };

 public:
  State(std::shared_ptr<const BatchSource> source, SamplerOptions sampler, TransformPipeline transforms,
        LoaderOptions options)
      : options_(options),
        sampler_(source->samples(), std::move(sampler)),
        maker_(wrap_source(std::move(source), options.cache_bytes), std::move(transforms), options),
        cursor_(sampler_) {
    check_workers(options.workers, options.prefetch);
  }
  ~State() { stop(); }

  bool next(Batch& batch);
  void restore(const LoaderPosition& position);
  void set_workers(int workers, int prefetch);

  LoaderOptions options_;
  Sampler sampler_;
  LoaderPosition due_;  // of the batch that next() gives
  LoaderStatistics statistics_;

 private:
  struct Slot {
    bool ready = false;
    BatchMaker::Made made;
    std::exception_ptr error;
  };

  void start();
  void stop();
  void work(const std::stop_token& stopping);
  Slot& wait_for_slot();
  Slot& load_here();
  bool deliver(Slot& slot, Batch& batch);
  void record(const BatchMaker::Made& made);

  BatchMaker maker_;
  Cursor cursor_;
  Slot own_slot_;  // without workers
  Batch own_raw_;
  int64_t good_in_epoch_ = 0;
  bool whole_epoch_ = true;  // met from its first batch on
  std::set<int64_t> named_;

  std::mutex mutex_;  // guards cursor_ and what follows, once workers run
  std::condition_variable_any slot_free_, slot_ready_;
  std::vector<Slot> slots_;
  uint64_t given_ = 0, delivered_ = 0;  // tickets
  std::vector<std::jthread> workers_;   // last: they use all the rest
};

void Loader::State::start() {
  slots_.resize(static_cast<size_t>(options_.workers) * static_cast<size_t>(options_.prefetch));
  given_ = delivered_ = 0;
  for (int i = 0; i < options_.workers; ++i)
    workers_.emplace_back([this](const std::stop_token& stopping) { work(stopping); });
}

// What was loaded ahead is dropped; the cursor goes back to what is due.
void Loader::State::stop() {
  for (std::jthread& worker : workers_) worker.request_stop();
  workers_.clear();
  slots_.clear();
  cursor_.move_to(due_);
}

void Loader::State::work(const std::stop_token& stopping) {
  Batch raw;
  std::unique_lock lock(mutex_);
  while (slot_free_.wait(lock, stopping, [this] { return given_ < delivered_ + slots_.size(); })) {
    Slot& slot = slots_[given_++ % slots_.size()];
    std::exception_ptr error;
    // Planning an epoch may fail too, for want of memory; next() is where errors come out.
    try {
      const Cursor::Job job = cursor_.take();
      lock.unlock();
      maker_.make(job.samples(), job.at.epoch, slot.made, raw);
    } catch (...) {
      error = std::current_exception();
    }
    if (!lock.owns_lock()) lock.lock();
    slot.error = error;
    slot.ready = true;
    slot_ready_.notify_one();
  }
}

Loader::State::Slot& Loader::State::wait_for_slot() {
  if (workers_.empty()) start();
  const Stopwatch watch;
  std::unique_lock lock(mutex_);
  Slot& slot = slots_[delivered_ % slots_.size()];
  slot_ready_.wait(lock, [&] { return slot.ready; });
  statistics_.stall_seconds += watch.seconds();
  return slot;
}

Loader::State::Slot& Loader::State::load_here() {
  const Stopwatch watch;
  cursor_.move_to(due_);
  const Cursor::Job job = cursor_.take();
  maker_.make(job.samples(), job.at.epoch, own_slot_.made, own_raw_);
  statistics_.stall_seconds += watch.seconds();
  return own_slot_;
}

void Loader::State::record(const BatchMaker::Made& made) {
  ++statistics_.batches;
  statistics_.samples += made.batch.count();
  statistics_.load_seconds += made.seconds;
  statistics_.skipped += static_cast<int64_t>(made.bad.size());
  for (const BadSample& bad : made.bad)
    if (statistics_.bad_samples.size() < kNamedBadSamples && named_.insert(bad.sample).second)
      statistics_.bad_samples.push_back(bad);
}

// Whether the batch has samples.
bool Loader::State::deliver(Slot& slot, Batch& batch) {
  record(slot.made);
  ++due_.batch;
  good_in_epoch_ += slot.made.batch.count();
  const bool has_samples = slot.made.batch.count() > 0;
  if (has_samples) std::swap(batch, slot.made.batch);
  if (options_.workers == 0) return has_samples;
  const std::lock_guard lock(mutex_);
  slot.ready = false;
  ++delivered_;
  slot_free_.notify_one();
  return has_samples;
}

bool Loader::State::next(Batch& batch) {
  while (due_.batch < sampler_.batches()) {
    Slot& slot = options_.workers == 0 ? load_here() : wait_for_slot();
    if (slot.error != nullptr) std::rethrow_exception(slot.error);
    if (deliver(slot, batch)) return true;
  }
  if (whole_epoch_ && good_in_epoch_ == 0)
    throw_error(ErrorKind::invalid_input, "no sample of epoch ", due_.epoch, " could be loaded; the first error: ",
                statistics_.bad_samples.empty() ? std::string("unknown") : statistics_.bad_samples[0].reason);
  due_ = {due_.epoch + 1, 0};
  good_in_epoch_ = 0;
  whole_epoch_ = true;
  return false;
}

void Loader::State::restore(const LoaderPosition& position) {
  if (position.epoch < 0 || position.batch < 0 || position.batch > sampler_.batches())
    throw_error(ErrorKind::usage, "batch ", position.batch, " of epoch ", position.epoch,
                " was asked for; an epoch has the batches 0 to ", sampler_.batches() - 1, ".");
  due_ = position;
  good_in_epoch_ = 0;
  whole_epoch_ = position.batch == 0;
  stop();
}

void Loader::State::set_workers(int workers, int prefetch) {
  check_workers(workers, prefetch);
  stop();
  options_.workers = workers;
  options_.prefetch = prefetch;
}

Loader::Loader(std::shared_ptr<const BatchSource> source, SamplerOptions sampler, TransformPipeline transforms,
               LoaderOptions options)
    : state_(std::make_unique<State>(std::move(source), std::move(sampler), std::move(transforms), options)) {}
Loader::~Loader() = default;

bool Loader::next(Batch& batch) { return state_->next(batch); }
LoaderPosition Loader::position() const { return state_->due_; }
void Loader::restore(const LoaderPosition& position) { state_->restore(position); }
int64_t Loader::batches() const { return state_->sampler_.batches(); }
int64_t Loader::count(int64_t index) const { return state_->sampler_.count(index); }
void Loader::set_workers(int workers, int prefetch) { state_->set_workers(workers, prefetch); }
const LoaderOptions& Loader::options() const { return state_->options_; }
LoaderStatistics Loader::statistics() const { return state_->statistics_; }
void Loader::reset_statistics() { state_->statistics_ = {}; }

}  // namespace lissome
