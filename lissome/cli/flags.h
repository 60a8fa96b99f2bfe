// Reads the flags of a command. A wrong flag is a usage error that names the help. Only flags.cpp includes CLI11, whose
// headers take seconds to compile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lissome {

// Ends a command that was asked for its help, which main() prints.
struct HelpRequest {
  std::string text;
};

class Flags {
 public:
  Flags(const std::string& command, const std::string& help);
  ~Flags();

  // A name without dashes is a positional argument. `to` keeps its value if the flag is absent, and must outlive
  // parse(). The help shows that value as the default, unless it is empty or out of range. `type` is the word for the
  // value in the help.
  void require(const std::string& name, std::string& to, const std::string& help);
  void require(const std::string& name, std::vector<std::string>& to, const std::string& help);
  void add(const std::string& name, std::string& to, const std::string& help, const char* type = "TEXT");
  void add(const std::string& name, std::vector<std::string>& to, const std::string& help);
  void add(const std::string& name, bool& to, const std::string& help);
  void add(const std::string& name, uint64_t& to, const std::string& help);
  // Whole numbers from `least` to `most`.
  void add(const std::string& name, int& to, const std::string& help, int least, int most = INT32_MAX);
  void add(const std::string& name, int64_t& to, const std::string& help, int64_t least, int64_t most = INT64_MAX);
  // A number from `least` on.
  void add(const std::string& name, double& to, const std::string& help, double least);
  // A flag that the help does not show, such as the old name of a flag.
  void add_hidden(const std::string& name, std::string& to);
  void add_hidden(const std::string& name, bool& to);

  void add_json(bool& to);

  // Throws usage for any error, and HelpRequest for --help.
  void parse(const std::vector<std::string>& arguments);

 private:
  std::string suggest(const std::vector<std::string>& arguments) const;

  std::unique_ptr<CLI::App> app_;
};

// The flags of every command that calls a model: its inputs, threads and device.
struct CallFlags {
  std::string input;
  int64_t batch = 0;  // 0: the smallest batch that the model takes
  int threads = 0;    // 0: the number that the model was made for
  uint64_t seed = 0;
  std::string device = "cpu";
};
void add_call_flags(Flags& flags, CallFlags& call);

constexpr int kMostThreads = 1024;

}  // namespace lissome
