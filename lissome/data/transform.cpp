// The pipeline: checks a list of transforms against the images that it gets, draws each sample's random numbers, and
// has a Frame do the work.
#include "lissome/data/transform.h"

#include <array>
#include <cmath>

#include "lissome/data/batch_source.h"
#include "lissome/data/frame.h"
#include "lissome/data/random.h"

namespace lissome {
namespace {

constexpr std::array kImageNetMean = {0.485, 0.456, 0.406};
constexpr std::array kImageNetDeviation = {0.229, 0.224, 0.225};
constexpr int64_t kLargestSide = 1 << 16;

std::string describe_sizes(int64_t height, int64_t width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

void check_sizes(std::string_view name, int64_t height, int64_t width) {
  if (height < 1 || width < 1 || height > kLargestSide || width > kLargestSide)
    throw_error(ErrorKind::usage, name, " to ", describe_sizes(height, width), " was asked for; sides of 1 to ",
                kLargestSide, " are allowed.");
}

// Whether the fields of a transform are sound by themselves.
struct FieldCheck {
  void operator()(const ToFloat&) const {}
  void operator()(const Flip&) const {}
  void operator()(const Normalize& normalize) const {
    if (normalize.mean.size() != normalize.deviation.size())
      throw_error(ErrorKind::usage, "normalize has ", normalize.mean.size(), " means and ", normalize.deviation.size(),
                  " deviations; equal numbers of both are needed.");
    for (const double deviation : normalize.deviation)
      if (!(deviation > 0))
        throw_error(ErrorKind::usage, "normalize: a deviation of ", deviation,
                    " was given; numbers above 0 are allowed.");
  }
  void operator()(const Resize& resize) const { check_sizes("resize", resize.height, resize.width); }
  void operator()(const CenterCrop& crop) const { check_sizes("center_crop", crop.height, crop.width); }
  void operator()(const RandomCrop& crop) const {
    check_sizes("random_crop", crop.height, crop.width);
    if (crop.padding < 0 || crop.padding > kLargestSide)
      throw_error(ErrorKind::usage, "random_crop: a padding of ", crop.padding, " was given; 0 to ", kLargestSide,
                  " is allowed.");
  }
  void operator()(const Rotate& rotate) const {
    if (!(rotate.least <= rotate.most) || !(rotate.least >= -360) || !(rotate.most <= 360))
      throw_error(ErrorKind::usage, "rotate by ", rotate.least, " to ", rotate.most,
                  " degrees was asked for; the first may not be larger, and both must be in -360 to 360.");
  }
  void operator()(const Erase& erase) const {
    if (!(erase.least_area > 0 && erase.least_area <= erase.most_area && erase.most_area <= 1))
      throw_error(ErrorKind::usage, "erase: an area of ", erase.least_area, " to ", erase.most_area,
                  " was given; shares above 0 to 1, in order, are allowed.");
    if (!(erase.least_ratio > 0 && erase.least_ratio <= erase.most_ratio))
      throw_error(ErrorKind::usage, "erase: a ratio of ", erase.least_ratio, " to ", erase.most_ratio,
                  " was given; numbers above 0, in order, are allowed.");
  }
  void operator()(const RandomApply& apply) const {
    if (!(apply.probability >= 0 && apply.probability <= 1))
      throw_error(ErrorKind::usage, "random_apply: a probability of ", apply.probability,
                  " was given; 0 to 1 is allowed.");
    for (const Transform& inner : apply.transforms) std::visit(*this, inner.kind);
  }
};

// What a transform makes of a type of image.
struct TypeStep {
  ImageType type;

  ImageType operator()(const ToFloat&) const { return {Dtype::f32, type.channels, type.height, type.width}; }
  ImageType operator()(const Flip&) const { return type; }
  ImageType operator()(const Rotate&) const { return type; }
  ImageType operator()(const Erase&) const { return type; }
  ImageType operator()(const Resize& resize) const { return {type.dtype, type.channels, resize.height, resize.width}; }
  ImageType operator()(const Normalize& normalize) const {
    if (type.dtype != Dtype::f32)
      throw_error(ErrorKind::usage,
                  "normalize: the images are bytes there; floats are needed. Put to_float before it.");
    const auto count = static_cast<int64_t>(normalize.mean.size());
    if (count == 0 && type.channels != 3)
      throw_error(ErrorKind::usage, "normalize: the images have ", type.channels,
                  " channels, ImageNet's constants are for 3. Give it mean=... and deviation=...");
    if (count > 1 && count != type.channels)
      throw_error(ErrorKind::usage, "normalize: ", count, " means were given for images of ", type.channels,
                  " channels; one for each, or one for all, is needed.");
    return type;
  }
  ImageType operator()(const CenterCrop& crop) const { return cut("center_crop", crop.height, crop.width, 0); }
  ImageType operator()(const RandomCrop& crop) const {
    return cut("random_crop", crop.height, crop.width, crop.padding);
  }
  ImageType operator()(const RandomApply& apply) const {
    ImageType inner = type;
    for (const Transform& transform : apply.transforms) inner = std::visit(TypeStep{inner}, transform.kind);
    if (inner.dtype != type.dtype || inner.height != type.height || inner.width != type.width)
      throw_error(ErrorKind::usage, "random_apply would make some images ", dtype_name(inner.dtype), " of ",
                  describe_sizes(inner.height, inner.width), " and leave others ", dtype_name(type.dtype), " of ",
                  describe_sizes(type.height, type.width), "; transforms inside it must keep type and sizes.");
    return type;
  }

 private:
  ImageType cut(std::string_view name, int64_t height, int64_t width, int64_t padding) const {
    if (height > type.height + 2 * padding || width > type.width + 2 * padding)
      throw_error(ErrorKind::usage, name, " to ", describe_sizes(height, width), " does not fit images of ",
                  describe_sizes(type.height, type.width), padding > 0 ? " with their padding" : "",
                  "; put resize before it", padding > 0 ? "." : ", or use random_crop with padding.");
    return {type.dtype, type.channels, height, width};
  }
};

double draw_between(Random& random, double least, double most) {
  return least + (most - least) * random.next_uniform();
}

// Does one transform to one image. What it draws depends on the sample alone.
struct FrameStep {
  Frame& frame;
  Random& random;
  bool& is_bytes;

  void operator()(const ToFloat&) const {
    if (!is_bytes) return;
    is_bytes = false;
    const auto channels = static_cast<size_t>(frame.channels());
    frame.scale(std::vector<float>(channels, 1.0F / 255), std::vector<float>(channels, 0));
  }
  void operator()(const Normalize& normalize) const {
    std::vector<float> factor, summand;
    for (size_t c = 0; c < static_cast<size_t>(frame.channels()); ++c) {
      const bool own = normalize.mean.empty();
      const size_t i = normalize.mean.size() > 1 ? c : 0;
      const double mean = own ? kImageNetMean[c] : normalize.mean[i];
      const double deviation = own ? kImageNetDeviation[c] : normalize.deviation[i];
      factor.push_back(static_cast<float>(1 / deviation));
      summand.push_back(static_cast<float>(-mean / deviation));
    }
    frame.scale(factor, summand);
  }
  void operator()(const Resize& resize) const { frame.resize(resize.height, resize.width); }
  // Rounded as torchvision's center_crop rounds: half to even.
  void operator()(const CenterCrop& crop) const {
    const auto half = [](int64_t rest) { return static_cast<int64_t>(std::nearbyint(static_cast<double>(rest) / 2)); };
    frame.crop(half(frame.height() - crop.height), half(frame.width() - crop.width), crop.height, crop.width);
  }
  void operator()(const RandomCrop& crop) const {
    const auto draw = [&](int64_t size, int64_t wanted) {
      const int64_t places = size + 2 * crop.padding - wanted + 1;
      return static_cast<int64_t>(random.next_below(static_cast<uint64_t>(places))) - crop.padding;
    };
    const int64_t top = draw(frame.height(), crop.height);
    frame.crop(top, draw(frame.width(), crop.width), crop.height, crop.width);
  }
  void operator()(const Flip&) const { frame.flip(); }
  void operator()(const Rotate& rotate) const { frame.rotate(draw_between(random, rotate.least, rotate.most)); }
  void operator()(const Erase& erase) const {
    constexpr int kTries = 10;
    const double pixels = static_cast<double>(frame.height() * frame.width());
    for (int i = 0; i < kTries; ++i) {
      const double area = pixels * draw_between(random, erase.least_area, erase.most_area);
      const double ratio = std::exp(draw_between(random, std::log(erase.least_ratio), std::log(erase.most_ratio)));
      const auto height = std::llround(std::sqrt(area * ratio)), width = std::llround(std::sqrt(area / ratio));
      if (height < 1 || width < 1 || height >= frame.height() || width >= frame.width()) continue;
      const auto top = static_cast<int64_t>(random.next_below(static_cast<uint64_t>(frame.height() - height + 1)));
      const auto left = static_cast<int64_t>(random.next_below(static_cast<uint64_t>(frame.width() - width + 1)));
      return frame.erase({top, left, top + height, left + width}, erase.value);
    }
  }
  void operator()(const RandomApply& apply) const {
    if (random.next_uniform() >= apply.probability) return;
    for (const Transform& inner : apply.transforms) std::visit(*this, inner.kind);
  }
};

// Three rounds of mixing: neighbouring seeds, epochs and samples have nothing in common.
Random make_random(uint64_t seed, int64_t epoch, int64_t sample) {
  const uint64_t mixed = Random(Random(seed).next() + static_cast<uint64_t>(epoch)).next();
  return Random(mixed + static_cast<uint64_t>(sample));
}

ImageType read_type(const Array& images) {
  const size_t axes = images.sizes.size();
  if ((axes != 3 && axes != 4) || (images.dtype != Dtype::u8 && images.dtype != Dtype::f32))
    throw_error(ErrorKind::usage, "transforms were asked for on ", dtype_name(images.dtype), format_sizes(images.sizes),
                "; images are bytes (u8) or f32, [samples, channels, height, width] or [samples, height, width].");
  return {images.dtype, axes == 4 ? images.sizes[1] : 1, images.sizes[axes - 2], images.sizes[axes - 1]};
}

}  // namespace

TransformPipeline::TransformPipeline(std::vector<Transform> transforms, uint64_t seed, std::string input)
    : transforms_(std::move(transforms)), seed_(seed), input_(std::move(input)) {
  for (const Transform& transform : transforms_) std::visit(FieldCheck{}, transform.kind);
}

ImageType TransformPipeline::infer_type(const ImageType& type) const {
  ImageType result = type;
  for (const Transform& transform : transforms_) result = std::visit(TypeStep{result}, transform.kind);
  return result;
}

void TransformPipeline::apply(const Array& images, std::span<const int64_t> samples, int64_t epoch, Array& out) const {
  static thread_local FrameWorkspace workspace;
  const ImageType from = read_type(images), to = infer_type(from);
  Sizes sizes = images.sizes;
  sizes[sizes.size() - 2] = to.height;
  sizes[sizes.size() - 1] = to.width;
  reuse_array(out, to.dtype, std::move(sizes));
  const int64_t each_in = from.channels * from.height * from.width, each_out = to.channels * to.height * to.width;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    bool is_bytes = from.dtype == Dtype::u8;
    Frame frame = is_bytes
                      ? Frame(images.data<uint8_t>() + row * each_in, from.channels, from.height, from.width, workspace)
                      : Frame(images.data<float>() + row * each_in, from.channels, from.height, from.width, workspace);
    Random random = make_random(seed_, epoch, samples[i]);
    for (const Transform& transform : transforms_) std::visit(FrameStep{frame, random, is_bytes}, transform.kind);
    if (is_bytes)
      frame.write(out.data<uint8_t>() + row * each_out);
    else
      frame.write(out.data<float>() + row * each_out);
  }
}

}  // namespace lissome
