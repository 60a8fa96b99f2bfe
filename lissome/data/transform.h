// What is done to images between the source and the model: a list of transforms, read once from each sample and written
// once into the batch. Cropping and flipping only move where is read, to_float and normalize become one factor and one
// summand a channel, so nothing but resize and rotate makes new pixels.
//
// Images are [channels, height, width] or [height, width], of bytes or f32. Pixels are computed in f32; bytes that stay
// bytes are rounded to nearest at the very end. Every random number is a pure function of the seed, the epoch and the
// sample: workers and batches have no say.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lissome/base.h"

namespace lissome {

struct ToFloat {};  // bytes 0 to 255 -> floats 0 to 1; floats stay
// (x - mean) / deviation, of floats. One value for each channel, or one for all; none: those of ImageNet, for three
// channels.
struct Normalize {
  std::vector<double> mean, deviation;
};
// Bilinear, antialiased where it makes smaller: torch.nn.functional.interpolate(mode="bilinear", antialias=True).
struct Resize {
  int64_t height = 0, width = 0;
};
struct CenterCrop {
  int64_t height = 0, width = 0;
};
// A place drawn uniformly, after `padding` zeros on each side.
struct RandomCrop {
  int64_t height = 0, width = 0;
  int64_t padding = 0;
};
struct Flip {};  // left becomes right
// Counter-clockwise about the centre by an angle drawn uniformly, bilinear, zeros from outside.
struct Rotate {
  double least = -10, most = 10;  // degrees
};
// A rectangle becomes `value`: its share of the area uniform, the logarithm of height over width uniform. Where none of
// ten draws fits into the image, nothing is erased (torchvision's RandomErasing).
struct Erase {
  double least_area = 0.02, most_area = 0.33;
  double least_ratio = 0.3, most_ratio = 3.3;
  float value = 0;
};
struct Transform;
// All of them with this probability, else none.
struct RandomApply {
  double probability = 0.5;
  std::vector<Transform> transforms;  // leave sizes and type as they are
};
struct Transform {
  std::variant<ToFloat, Normalize, Resize, CenterCrop, RandomCrop, Flip, Rotate, Erase, RandomApply> kind;
};

// "to_float,normalize", "random_crop:32x32:padding=4,random_apply:0.5(flip),to_float": NAME[:VALUE][:FIELD=VALUE]...,
// several joined by commas. docs/data.md has the names and fields. Throws usage with what is allowed.
std::vector<Transform> parse_transforms(std::string_view text);

// Whether such a text, which may be empty, makes floats of bytes: then arrays of bytes are images to a model that takes
// floats. Throws as parse_transforms().
bool makes_floats(std::string_view text);

// Of one image of a batch.
struct ImageType {
  Dtype dtype = Dtype::u8;  // u8 or f32
  int64_t channels = 0, height = 0, width = 0;
};

class TransformPipeline {
 public:
  TransformPipeline() = default;  // changes nothing
  // For the input of this name, or the only one that can be images. Throws usage: a field out of range.
  explicit TransformPipeline(std::vector<Transform> transforms, uint64_t seed = 0, std::string input = "");

  bool empty() const { return transforms_.empty(); }
  const std::string& input() const { return input_; }
  // What comes out. Throws usage: a crop larger than the image, bytes to be normalized, means that do not fit the
  // channels, a random_apply that changes sizes or type.
  ImageType infer_type(const ImageType& type) const;

  // `images`: [samples.size(), channels, height, width] or without channels. `out` becomes the same with the sizes and
  // the type of infer_type; its memory is kept where it fits.
  void apply(const Array& images, std::span<const int64_t> samples, int64_t epoch, Array& out) const;

 private:
  std::vector<Transform> transforms_;
  uint64_t seed_ = 0;
  std::string input_;
};

}  // namespace lissome
