// The output of all commands: results on stdout, everything else on stderr. Colour only on a terminal and without
// NO_COLOR. Shows progress with the time left, and delivers results when a command is interrupted.
#pragma once

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "lissome/measure.h"
#include "lissome/report.h"

namespace lissome {

class Console {
 public:
  // Takes stdout for results: what libraries print there goes to stderr from then on.
  Console();

  virtual ~Console() = default;

  // Virtual, so that the torch library calls the program's console without linking it.
  virtual void print(
      const std::string& text) const;               // prints a result to stdout; throws io if stdout is closed or full
  virtual void say(const std::string& text) const;  // prints a line to stderr, over the progress line
  virtual TerminalOptions terminal() const;         // options of stdout
  virtual WorkControl control();                    // shows progress on stderr, stops on SIGINT and SIGTERM
  // Makes a Promise of interrupt.h that lives as long as the returned object.
  virtual std::shared_ptr<void> promise(double grace, std::function<void()> deliver) const;
  void disable_color() { color_ = false; }
  int results() const;        // the descriptor of the program's stdout, for a process that takes its place
  static bool interrupted();  // only during a promise; without one a signal ends the program

 private:
  void show_progress(const Progress& progress);
  void clear_progress() const;

  std::FILE* results_;
  bool stdout_terminal_ = false, stderr_terminal_ = false, color_ = true;
  mutable std::atomic<bool> progress_shown_ = false;  // atomic, because a delivering thread prints too
  double last_shown_ = -1;
  Stopwatch watch_;
};

}  // namespace lissome
