// What every command shares: results on stdout, the rest on stderr; colour only where a terminal shows it and NO_COLOR
// is unset; progress with the time left; Ctrl-C asks for the best so far, a second one ends at once.
#pragma once

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
  virtual WorkControl control();                      // progress to stderr, stop on Ctrl-C
  void disable_color() { color_ = false; }
  static void watch_interrupts();  // from here on Ctrl-C sets interrupted()
  static bool interrupted();

 private:
  void show_progress(const Progress& progress);
  void clear_progress() const;

  bool stdout_terminal_ = false, stderr_terminal_ = false, color_ = true;
  mutable bool progress_shown_ = false;
  double last_shown_ = -1;
  Stopwatch watch_;
};

}  // namespace lissome
