#include "lissome/cli/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "lissome/base.h"
#include "lissome/cli/interrupt.h"

namespace lissome {
namespace {

constexpr double kSecondsBetweenLines = 0.2;  // between progress lines on a terminal
constexpr double kSecondsBetweenLogs = 10;    // between progress lines elsewhere

// Libraries print to stdout too (oneMKL, where a matrix holds infinities). From here on that goes to stderr.
std::FILE* take_stdout() {
  std::fflush(stdout);
  const int results = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  std::FILE* file = results < 0 ? nullptr : fdopen(results, "w");
  if (file == nullptr) return stdout;
  dup2(STDERR_FILENO, STDOUT_FILENO);
  return file;
}

int find_width(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col;
  return 120;
}

}  // namespace

Console::Console()
    : results_(take_stdout()),
      stdout_terminal_(isatty(fileno(results_)) != 0),
      stderr_terminal_(isatty(STDERR_FILENO) != 0),
      color_(!read_environment("NO_COLOR")) {}

void Console::print(const std::string& text) const {
  check_mappings();  // a result that was computed from a broken mapping must not be printed
  clear_progress();
  const bool written = std::fwrite(text.data(), 1, text.size(), results_) == text.size() && std::fflush(results_) == 0;
  if (!written) throw_error(ErrorKind::io, "the result could not be written to stdout");
}

void Console::say(const std::string& text) const {
  clear_progress();
  for (const std::string& line : split(text, '\n')) std::fprintf(stderr, "%s\n", clean_text(line).c_str());
}

TerminalOptions Console::terminal() const { return {find_width(fileno(results_)), stdout_terminal_ && color_}; }

int Console::results() const { return fileno(results_); }

bool Console::interrupted() { return was_interrupted(); }

std::shared_ptr<void> Console::promise(double grace, std::function<void()> deliver) const {
  return std::make_shared<Promise>(grace, std::move(deliver));
}

WorkControl Console::control() {
  WorkControl control;
  control.on_progress = [this](const Progress& progress) { show_progress(progress); };
  control.should_stop = [] { return interrupted(); };
  return control;
}

void Console::show_progress(const Progress& progress) {
  const double now = watch_.seconds();
  if (last_shown_ >= 0 && now - last_shown_ < (stderr_terminal_ ? kSecondsBetweenLines : kSecondsBetweenLogs)) return;
  last_shown_ = now;
  char text[256];
  std::snprintf(text, sizeof text, "%3.0f %%  %s: %s", 100 * progress.fraction, progress.stage.c_str(),
                progress.message.c_str());
  std::string line = clean_text(text);
  if (progress.seconds_left >= 0) line += ", about " + format_duration(progress.seconds_left) + " left";
  if (!stderr_terminal_) {
    std::fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  progress_shown_ = true;
}

void Console::clear_progress() const {
  if (!progress_shown_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  progress_shown_ = false;
}

}  // namespace lissome
