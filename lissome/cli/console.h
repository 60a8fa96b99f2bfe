// What every command shares: results on stdout, the rest on stderr; colour only where a terminal shows it and NO_COLOR
// is unset; progress with the time left; what a command delivers when it is interrupted.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "lissome/measure.h"
#include "lissome/report.h"

namespace lissome {

class Console {
 public:
  Console();

  virtual ~Console() = default;

  // Virtual, so that the torch library calls the program's console without linking it.
  virtual void print(const std::string& text) const;  // a result, to stdout; throws io when stdout is closed or full
  virtual void say(const std::string& text) const;    // a line to stderr, over the progress line
  virtual TerminalOptions terminal() const;           // of stdout
  virtual WorkControl control();                      // progress to stderr, stop on SIGINT and SIGTERM
  // A Promise of interrupt.h as long as what is returned lives.
  virtual std::shared_ptr<void> promise(double grace, std::function<void()> deliver) const;
  void disable_color() { color_ = false; }
  static bool interrupted();  // while a promise stands; without one the program has ended

 private:
  void show_progress(const Progress& progress);
  void clear_progress() const;

  bool stdout_terminal_ = false, stderr_terminal_ = false, color_ = true;
  mutable std::atomic<bool> progress_shown_ = false;  // a delivering thread prints, too
  double last_shown_ = -1;
  Stopwatch watch_;
};

}  // namespace lissome
