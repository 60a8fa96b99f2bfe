// The program's signals. SIGINT and SIGTERM: a command that promised nothing ends at once; one that made a Promise has
// a short time to end by itself, then what it promised is delivered from another thread and the program ends. A second
// signal ends the program at once. Either way the exit code is 130, the last line on stderr is
// "interrupted", and no temporary file stays.
// A fault in a mapped file that was truncated (SIGBUS) becomes an io error; a file-size limit (SIGXFSZ) does, too.
#pragma once

#include <functional>

namespace lissome {

void install_signal_handlers();
bool was_interrupted();

// Seconds from a signal to the end of the program, whatever it is doing: below the second within which every command
// answers, by what a busy machine takes to end a process.
constexpr double kAnswerSeconds = 0.8;
// For commands that print or write what they have when they see a signal.
constexpr double kGraceSeconds = 0.6;

// While one stands, a signal makes was_interrupted() true and leaves the command `grace` seconds to end by itself.
// After that `deliver` runs on another thread beside the command, and the program ends when it returns, or
// kAnswerSeconds after the signal. `deliver` may be empty. One stands at a time.
class Promise {
 public:
  Promise(double grace, std::function<void()> deliver);
  // Blocks for good once delivery has begun: that thread ends the program.
  ~Promise();
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;
};

// The exit code of a command that ended by itself: `code`, 130 where a signal came. A later signal ends the program
// at once.
int finish_program(int code);

}  // namespace lissome
