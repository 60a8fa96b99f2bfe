// Runs a finished model in a session that has a folder for values on their way, as training gives it one and
// `lissome run` does not. Answers as the program does: exit code, and the error on stderr.
//
//   run_plan MODEL INPUTS FOLDER
#include <cstdio>

#include "lissome/runtime.h"

int main(int count, char** words) {
  if (count != 4) return 2;
  try {
    lissome::Session session = lissome::Session::load(words[1], {.threads = 1, .offload_folder = words[3]});
    session.run(lissome::load_arrays(words[2]));
  } catch (const lissome::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return lissome::exit_code(error.kind());
  }
  return 0;
}
