// The program's signals. On SIGINT and SIGTERM a command without a Promise ends at once. A command with a Promise has a
// short time to end by itself; then another thread delivers its results and the program ends. A second signal ends the
// program at once. In all cases the exit code is 130, the last line on stderr is "interrupted", and no temporary file
// stays. A fault in a mapped file that was truncated (SIGBUS) and a file-size limit (SIGXFSZ) become io errors.
#pragma once

#include <functional>

namespace lissome {

void install_signal_handlers();
bool was_interrupted();

// Seconds from a signal to the end of the program. Every command must answer within a second; the rest is for ending
// the process on a busy machine.
constexpr double kAnswerSeconds = 0.8;
// Grace period of commands that print or write their results so far when they see a signal.
constexpr double kGraceSeconds = 0.6;

// While a promise lives, a signal makes was_interrupted() true and leaves the command `grace` seconds to end by itself.
// Then `deliver`, which may be empty, runs on another thread beside the command. The program ends when it returns, or
// kAnswerSeconds after the signal. There may be one promise at a time.
class Promise {
 public:
  Promise(double grace, std::function<void()> deliver);
  // Blocks forever once delivery has begun, because the delivering thread ends the program.
  ~Promise();
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;
};

// Returns the exit code of a command that ended by itself: `code`, or 130 after a signal. A later signal ends the
// program at once.
int finish_program(int code);

}  // namespace lissome
