// See interrupt.h. Handlers use only async-signal-safe functions: atomics, a semaphore, unlink, mmap and _exit.
#include "lissome/cli/interrupt.h"

#include <semaphore.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <thread>

#include "lissome/base.h"
#include "lissome/measure.h"

namespace lissome {
namespace {

constexpr int kInterruptedCode = 130;

std::atomic<int> interrupts{0};
std::atomic<bool> promised{false};
std::atomic<int64_t> interrupted_at{0};  // nanoseconds
sem_t interrupted;                       // raised by the first signal; the delivering thread waits for it

std::mutex promise_mutex;  // guards the two members below; the delivering thread holds it until the program ends
double grace_seconds = 0;
std::function<void()> delivery;

[[noreturn]] void end_at_once(int) {
  remove_unfinished_files();
  _exit(kInterruptedCode);
}

// Prints the last line of every interrupted command, over a line of progress on a terminal.
void tell_interrupted() {
  constexpr std::string_view kMessage = "interrupted\n", kTerminalMessage = "\r\033[Kinterrupted\n";
  const std::string_view message = isatty(STDERR_FILENO) != 0 ? kTerminalMessage : kMessage;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message.data(), message.size());
}

void take_interrupt(int signal) {
  const int saved = errno;
  if (interrupts.fetch_add(1) > 0 || !promised.load()) {
    tell_interrupted();
    end_at_once(signal);
  }
  stop_file_syncs();
  interrupted_at.store(now_nanoseconds());
  sem_post(&interrupted);
  errno = saved;
}

// For a fault outside of mapped files: restores the default handler, which the repeated instruction then meets.
void take_bus_error(int signal, siginfo_t* facts, void*) {
  const int saved = errno;
  const bool covered = facts->si_code == BUS_ADRERR && cover_mapped_range(facts->si_addr);
  if (!covered) {
    std::signal(signal, SIG_DFL);
    if (facts->si_code <= 0) raise(signal);  // sent by a process, so no instruction repeats
  }
  errno = saved;
}

void sleep_until(double seconds_after_signal) {
  const int64_t wake = interrupted_at.load() + static_cast<int64_t>(seconds_after_signal * 1e9);
  const int64_t left = wake - now_nanoseconds();
  if (left > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left));
}

// Ends the program by a signal of its own, so that a delivery which waits for a disk ends too.
void arm_last_resort() {
  const double left = kAnswerSeconds - static_cast<double>(now_nanoseconds() - interrupted_at.load()) * 1e-9;
  const auto microseconds = static_cast<suseconds_t>(std::max(left, 0.001) * 1e6);
  itimerval timer{};
  timer.it_value = {microseconds / 1'000'000, microseconds % 1'000'000};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void wait_and_deliver() {
  while (sem_wait(&interrupted) != 0) {
  }
  arm_last_resort();
  double grace = 0;
  {
    const std::lock_guard lock(promise_mutex);
    grace = grace_seconds;
  }
  sleep_until(grace);
  promise_mutex.lock();
  try {
    if (delivery) delivery();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
  }
  flockfile(stderr);  // the command still works and prints; nothing of it comes behind the last line
  tell_interrupted();
  end_at_once(0);
}

// The delivering thread gets no signals: handlers that wait for a lock of the interrupted thread cannot deadlock it.
void start_delivering_thread() {
  static std::once_flag once;
  std::call_once(once, [] {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    std::thread(wait_and_deliver).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  });
}

void handle(int signal, void (*function)(int)) {
  struct sigaction action{};
  action.sa_handler = function;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  sem_init(&interrupted, 0, 0);
  handle(SIGALRM, end_at_once);
  handle(SIGXFSZ, SIG_IGN);
  struct sigaction action{};
  action.sa_sigaction = take_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
  handle(SIGTERM, take_interrupt);
  handle(SIGINT, take_interrupt);
}

bool was_interrupted() { return interrupts.load() > 0; }

Promise::Promise(double grace, std::function<void()> deliver) {
  start_delivering_thread();
  const std::lock_guard lock(promise_mutex);
  LISSOME_CHECK(!promised.load(), "there is a promise already");
  grace_seconds = grace;
  delivery = std::move(deliver);
  promised.store(true);
}

Promise::~Promise() {
  const std::lock_guard lock(promise_mutex);
  delivery = nullptr;
  promised.store(false);
}

int finish_program(int code) {
  promised.store(false);
  if (!was_interrupted()) return code;
  tell_interrupted();
  return kInterruptedCode;
}

}  // namespace lissome
