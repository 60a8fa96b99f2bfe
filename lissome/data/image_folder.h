// Pictures in folders, one folder for each class.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lissome/data/batch_source.h"

namespace lissome {

struct ImageFolder {
  std::vector<std::string> files;    // class after class, by name within each
  std::vector<int64_t> labels;       // of each file, its class
  std::vector<std::string> classes;  // the folders' names in alphabetical order
  std::vector<std::string> others;   // files that are left out: of other kinds, or beside the folders
};

// Whether there are folders below `path`, and in one of them a .png or .jpg.
bool is_image_folder(const std::string& path);
// Throws invalid_input: a class without images, none at all; io: a folder that cannot be read.
ImageFolder list_image_folder(const std::string& path);

struct ImageFolderOptions {
  int64_t height = 224, width = 224;  // every image is made to cover this, and its middle taken
  int64_t channels = 3;               // 3: red, green, blue; 1: grey
  std::string input = "images";       // the name of the array [count, channels, height, width] of bytes
};

// Decodes the files of a batch when it is taken: nothing but their names is kept. Labels are class numbers.
std::shared_ptr<const BatchSource> open_image_folder(const std::string& path, const ImageFolderOptions& options = {});

}  // namespace lissome
