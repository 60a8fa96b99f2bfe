// An event file as TensorBoard reads it: scalars by tag and step. event_file.cpp draws the format.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace lissome {

class EventFile {
 public:
  // A new file in `folder`, which is made when its parent is there: TensorBoard joins the files of one folder, so that
  // a continued training adds one. Throws usage (no such parent), io.
  explicit EventFile(const std::string& folder);

  void add_scalar(std::string_view tag, int64_t step, double value);
  // What was added can be seen by others from here on. Throws io.
  void flush();
  const std::string& path() const { return path_; }

 private:
  void write_record(const std::string& event);

  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}  // namespace lissome
