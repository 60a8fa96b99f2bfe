// See image_folder.h.
#include "lissome/data/image_folder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "lissome/data/image.h"

namespace lissome {
namespace {

namespace files = std::filesystem;

[[noreturn]] void fail_reading(const std::string& path, const std::error_code& problem) {
  throw_error(ErrorKind::io, quote(path), ": the folder cannot be read: ", problem.message(), ".");
}

// Names in alphabetical order, whatever order the disk has. `wanted` looks at one entry.
template <typename Iterator, typename Wanted>
std::vector<std::string> list_entries(const std::string& path, Wanted wanted) {
  std::vector<std::string> found;
  std::error_code problem;
  for (Iterator entry(path, problem), end; !problem && entry != end; entry.increment(problem))
    if (wanted(*entry)) found.push_back(entry->path().string());
  if (problem) fail_reading(path, problem);
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> list_folders(const std::string& path) {
  return list_entries<files::directory_iterator>(path, [](const files::directory_entry& entry) {
    std::error_code unknown;  // what cannot be looked at is no class
    return entry.is_directory(unknown) && !entry.path().filename().string().starts_with('.');
  });
}

std::vector<std::string> list_images(const std::string& path) {
  return list_entries<files::recursive_directory_iterator>(path, [](const files::directory_entry& entry) {
    std::error_code unknown;  // what cannot be looked at, such as a link to itself, is no image
    return has_image_name(entry.path().string()) && entry.is_regular_file(unknown);
  });
}

// But for hidden ones, which systems leave in folders.
std::vector<std::string> list_other_files(const std::string& path, const std::vector<std::string>& known) {
  return list_entries<files::recursive_directory_iterator>(path, [&](const files::directory_entry& entry) {
    std::error_code unknown;
    return entry.is_regular_file(unknown) && !entry.path().filename().string().starts_with('.') &&
           !std::ranges::binary_search(known, entry.path().string());
  });
}

class ImageFolderSource : public BatchSource {
 public:
  ImageFolderSource(ImageFolder folder, ImageFolderOptions options)
      : folder_(std::move(folder)), options_(std::move(options)) {
    if ((options_.channels != 1 && options_.channels != 3) || options_.height < 1 || options_.width < 1 ||
        options_.height > 1 << 16 || options_.width > 1 << 16)
      throw_error(ErrorKind::usage, "images of ", options_.channels, " channels, ", options_.height, " x ",
                  options_.width, " were asked for; 1 or 3 channels and sides of 1 to 65536 are allowed.");
  }

  int64_t samples() const override { return static_cast<int64_t>(folder_.files.size()); }
  std::string describe(int64_t sample) const override { return quote(folder_.files.at(static_cast<size_t>(sample))); }

  void take(std::span<const int64_t> samples, Batch& batch) const override {
    const auto count = static_cast<int64_t>(samples.size());
    Array& images =
        reuse_input(batch, 0, options_.input, Dtype::u8, {count, options_.channels, options_.height, options_.width});
    if (!batch.labels) batch.labels.emplace();
    auto* labels = reuse_array(*batch.labels, Dtype::i64, {count}).data<int64_t>();
    auto* out = images.data<uint8_t>();
    for (const int64_t sample : samples) {
      const auto i = static_cast<size_t>(sample);
      const Array image = load_image(folder_.files.at(i), options_.channels, options_.height, options_.width);
      std::memcpy(out, image.storage.get(), static_cast<size_t>(image.bytes()));
      out += image.bytes();
      *labels++ = folder_.labels[i];
    }
  }

 private:
  ImageFolder folder_;
  ImageFolderOptions options_;
};

}  // namespace

bool is_image_folder(const std::string& path) {
  const std::vector<std::string> folders = list_folders(path);
  return std::any_of(folders.begin(), folders.end(),
                     [](const std::string& folder) { return !list_images(folder).empty(); });
}

ImageFolder list_image_folder(const std::string& path) {
  ImageFolder folder;
  for (const std::string& name : list_folders(path)) {
    const std::vector<std::string> images = list_images(name);
    if (images.empty())
      throw_error(ErrorKind::invalid_input, quote(name),
                  ": the folder of the class holds no images; .png, .jpg and .jpeg are read. Remove the folder, or put "
                  "images into it.");
    folder.files.insert(folder.files.end(), images.begin(), images.end());
    folder.labels.insert(folder.labels.end(), images.size(), static_cast<int64_t>(folder.classes.size()));
    folder.classes.push_back(files::path(name).filename().string());
  }
  if (folder.files.empty())
    throw_error(ErrorKind::invalid_input, quote(path),
                ": the folder holds no folders with images; one folder for each class is needed, such as ", path,
                "/cat/1.png.");
  std::vector<std::string> known = folder.files;
  std::ranges::sort(known);
  folder.others = list_other_files(path, known);
  return folder;
}

std::shared_ptr<const BatchSource> open_image_folder(const std::string& path, const ImageFolderOptions& options) {
  return std::make_shared<ImageFolderSource>(list_image_folder(path), options);
}

}  // namespace lissome
