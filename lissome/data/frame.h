// One image on its way through transforms: not pixels of its own, but where they are read, in what order, and by what
// factor and summand a channel they become values. Moving, mirroring and scaling change this description alone;
// resampling writes new pixels into the workspace.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lissome {

struct Rectangle {
  int64_t top = 0, left = 0, bottom = 0, right = 0;  // bottom and right exclusive
};

// For each output pixel, the first input pixel that it reads and the weights of those from there on.
struct ResizeTable {
  int64_t from = 0, to = 0;           // sizes that the table is for
  std::vector<int64_t> first, start;  // start: where a pixel's weights begin; one more than pixels
  std::vector<float> weights;
};

// Memory of one thread, used again for each image.
struct FrameWorkspace {
  std::vector<float> pixels[2];  // of resampled images; one is read while the other is written
  int next = 0;
  std::vector<float> row;  // sums of rows while resizing
  ResizeTable rows, columns;
};

class Frame {
 public:
  // Dense [channels, height, width].
  Frame(const uint8_t* pixels, int64_t channels, int64_t height, int64_t width, FrameWorkspace& workspace);
  Frame(const float* pixels, int64_t channels, int64_t height, int64_t width, FrameWorkspace& workspace);

  int64_t channels() const { return channels_; }
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }

  // Values become values * factor + summand; one of each a channel.
  void scale(std::span<const float> factor, std::span<const float> summand);
  void flip();
  // From this corner, which may lie outside; there is 0.
  void crop(int64_t top, int64_t left, int64_t height, int64_t width);
  void erase(const Rectangle& rectangle, float value);
  void resize(int64_t height, int64_t width);
  void rotate(double degrees);

  // Dense [channels, height, width].
  void write(float* out) const;
  void write(uint8_t* out) const;  // rounded to nearest, 0 to 255

 private:
  void reset(int64_t channels, int64_t height, int64_t width);
  void make_plain();  // pixels of its own where something is cropped beyond the edge or erased
  float* take_buffer(int64_t height, int64_t width);
  void become(const float* pixels, int64_t height, int64_t width);
  void fill_erased(float* out) const;
  template <typename Pixel>
  void resize_from(const Pixel* pixels, float* out, int64_t height, int64_t width);
  template <typename Pixel>
  void rotate_from(const Pixel* pixels, float* out, double degrees) const;
  template <typename Pixel>
  float sample_rim(const Pixel* from, int64_t top, int64_t left, const float* weights, float factor,
                   float summand) const;
  template <typename Pixel>
  void write_from(const Pixel* pixels, float* out) const;

  FrameWorkspace* workspace_;
  const uint8_t* bytes_ = nullptr;  // one of both
  const float* floats_ = nullptr;
  int64_t channels_ = 0, height_ = 0, width_ = 0;
  // In elements from the first pixel.
  int64_t origin_ = 0, channel_stride_ = 0, row_stride_ = 0, column_stride_ = 1;
  Rectangle inside_;  // where pixels are; the rest has the value `fill_`
  std::vector<float> factor_, summand_, fill_;
  std::optional<Rectangle> erased_;
  float erased_value_ = 0;
};

}  // namespace lissome
