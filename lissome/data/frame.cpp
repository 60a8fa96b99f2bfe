// Compiled with -O3: the loops over a row are what loading costs, and are plain enough for the compiler's vectors.
#include "lissome/data/frame.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace lissome {
namespace {

constexpr int64_t kRowsAtOnce = 8;

// `step` is 1 or -1: known to the compiler, a row goes by vectors.
template <typename Pixel>
void convert_row(const Pixel* from, int64_t step, int64_t count, float factor, float summand, float* out) {
  if (step == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(from[i]) * factor + summand;
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(from[-i]) * factor + summand;
  }
}

template <typename Pixel>
void add_weighted_row(const Pixel* from, int64_t step, int64_t count, float weight, float* sums) {
  if (step == 1) {
    for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<float>(from[i]) * weight;
  } else {
    for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<float>(from[-i]) * weight;
  }
}

// The triangle filter, as wide as the shrinking and at least two pixels, cut off and normalized at the edges.
void build_table(int64_t from, int64_t to, ResizeTable& table) {
  if (table.from == from && table.to == to) return;
  table = {from, to, {}, {0}, {}};
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max(static_cast<int64_t>(center - support + 0.5), int64_t{0});
    const int64_t end = std::min(static_cast<int64_t>(center + support + 0.5), from);
    double total = 0;
    std::vector<double> weights;
    for (int64_t x = first; x < end; ++x) {
      weights.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(x) - center + 0.5) / support)));
      total += weights.back();
    }
    for (const double weight : weights) table.weights.push_back(static_cast<float>(weight / total));
    table.first.push_back(first);
    table.start.push_back(static_cast<int64_t>(table.weights.size()));
  }
}

// From rows that stand side by side, [column][row], the first `rows` of them, resized, into `out`.
void resize_columns(const ResizeTable& table, const float* beside, float factor, float summand, int64_t rows,
                    int64_t width, float* out) {
  for (size_t x = 0; x < static_cast<size_t>(width); ++x) {
    const float* from = beside + kRowsAtOnce * table.first[x];
    const float* weights = table.weights.data() + table.start[x];
    const int64_t taps = table.start[x + 1] - table.start[x];
    float sums[kRowsAtOnce] = {};
    for (int64_t k = 0; k < taps; ++k)
      for (int64_t r = 0; r < kRowsAtOnce; ++r) sums[r] += weights[k] * from[k * kRowsAtOnce + r];
    for (int64_t r = 0; r < rows; ++r) out[r * width + static_cast<int64_t>(x)] = sums[r] * factor + summand;
  }
}

// The greatest integer not above; without SSE4.1, std::floor is a call.
int64_t floor_to_integer(float value) {
  const auto whole = static_cast<int32_t>(value);
  return static_cast<float>(whole) > value ? whole - 1 : whole;
}

}  // namespace

Frame::Frame(const uint8_t* pixels, int64_t channels, int64_t height, int64_t width, FrameWorkspace& workspace)
    : workspace_(&workspace), bytes_(pixels) {
  reset(channels, height, width);
}

Frame::Frame(const float* pixels, int64_t channels, int64_t height, int64_t width, FrameWorkspace& workspace)
    : workspace_(&workspace), floats_(pixels) {
  reset(channels, height, width);
}

void Frame::reset(int64_t channels, int64_t height, int64_t width) {
  channels_ = channels;
  height_ = height;
  width_ = width;
  origin_ = 0;
  channel_stride_ = height * width;
  row_stride_ = width;
  column_stride_ = 1;
  inside_ = {0, 0, height, width};
  const auto count = static_cast<size_t>(channels);
  factor_.assign(count, 1);
  summand_.assign(count, 0);
  fill_.assign(count, 0);
  erased_.reset();
}

void Frame::scale(std::span<const float> factor, std::span<const float> summand) {
  if (erased_) make_plain();
  for (size_t c = 0; c < factor_.size(); ++c) {
    factor_[c] *= factor[c];
    summand_[c] = summand_[c] * factor[c] + summand[c];
    fill_[c] = fill_[c] * factor[c] + summand[c];
  }
}

void Frame::flip() {
  if (erased_) make_plain();
  origin_ += (width_ - 1) * column_stride_;
  column_stride_ = -column_stride_;
  const int64_t left = inside_.left;
  inside_.left = width_ - inside_.right;
  inside_.right = width_ - left;
}

void Frame::crop(int64_t top, int64_t left, int64_t height, int64_t width) {
  // Padding is 0 as of now: what was cropped beyond the edge before, and scaled since, may be something else.
  const bool beyond = top < 0 || left < 0 || top + height > height_ || left + width > width_;
  const bool was_beyond = inside_.top > 0 || inside_.left > 0 || inside_.bottom < height_ || inside_.right < width_;
  if (erased_ || (beyond && was_beyond)) make_plain();
  if (beyond) std::fill(fill_.begin(), fill_.end(), 0.0F);
  origin_ += top * row_stride_ + left * column_stride_;
  inside_ = {std::clamp(inside_.top - top, int64_t{0}, height), std::clamp(inside_.left - left, int64_t{0}, width),
             std::clamp(inside_.bottom - top, int64_t{0}, height), std::clamp(inside_.right - left, int64_t{0}, width)};
  height_ = height;
  width_ = width;
}

void Frame::erase(const Rectangle& rectangle, float value) {
  if (erased_) make_plain();
  erased_ = rectangle;
  erased_value_ = value;
}

float* Frame::take_buffer(int64_t height, int64_t width) {
  std::vector<float>& buffer = workspace_->pixels[workspace_->next];
  workspace_->next = 1 - workspace_->next;
  buffer.resize(static_cast<size_t>(channels_ * height * width));
  return buffer.data();
}

void Frame::become(const float* pixels, int64_t height, int64_t width) {
  bytes_ = nullptr;
  floats_ = pixels;
  reset(channels_, height, width);
}

void Frame::make_plain() {
  const bool full = inside_.top == 0 && inside_.left == 0 && inside_.bottom == height_ && inside_.right == width_;
  if (full && !erased_) return;
  float* out = take_buffer(height_, width_);
  write(out);
  become(out, height_, width_);
}

void Frame::resize(int64_t height, int64_t width) {
  make_plain();
  float* out = take_buffer(height, width);
  build_table(height_, height, workspace_->rows);
  build_table(width_, width, workspace_->columns);
  if (bytes_ != nullptr)
    resize_from(bytes_, out, height, width);
  else
    resize_from(floats_, out, height, width);
  become(out, height, width);
}

// Rows first, because whole rows go by vectors; both sums are linear, so the order is free but for rounding. Eight rows
// then stand side by side, so that the sums over columns go by vectors too.
template <typename Pixel>
void Frame::resize_from(const Pixel* pixels, float* out, int64_t height, int64_t width) {
  const ResizeTable& rows = workspace_->rows;
  const auto count = static_cast<size_t>(width_);
  workspace_->row.resize(2 * kRowsAtOnce * count);
  float* sums = workspace_->row.data();
  float* beside = sums + kRowsAtOnce * count;
  for (int64_t c = 0; c < channels_; ++c, out += height * width)
    for (int64_t top = 0; top < height; top += kRowsAtOnce) {
      const int64_t end = std::min(height, top + kRowsAtOnce);
      std::fill(sums, beside, 0.0F);
      for (int64_t y = top; y < end; ++y) {
        const auto row = static_cast<size_t>(y);
        for (int64_t k = rows.start[row]; k < rows.start[row + 1]; ++k)
          add_weighted_row(
              pixels + (origin_ + c * channel_stride_ + (rows.first[row] + k - rows.start[row]) * row_stride_),
              column_stride_, width_, rows.weights[static_cast<size_t>(k)], sums + (y - top) * width_);
      }
      for (size_t x = 0; x < count; ++x)
        for (size_t r = 0; r < kRowsAtOnce; ++r) beside[kRowsAtOnce * x + r] = sums[r * count + x];
      const auto channel = static_cast<size_t>(c);
      resize_columns(workspace_->columns, beside, factor_[channel], summand_[channel], end - top, width,
                     out + top * width);
    }
}

void Frame::rotate(double degrees) {
  make_plain();
  float* out = take_buffer(height_, width_);
  if (bytes_ != nullptr)
    rotate_from(bytes_, out, degrees);
  else
    rotate_from(floats_, out, degrees);
  become(out, height_, width_);
}

template <typename Pixel>
void Frame::rotate_from(const Pixel* pixels, float* out, double degrees) const {
  const double radians = degrees * std::numbers::pi / 180;
  const auto cosine = static_cast<float>(std::cos(radians)), sine = static_cast<float>(std::sin(radians));
  const float center_x = static_cast<float>(width_ - 1) / 2, center_y = static_cast<float>(height_ - 1) / 2;
  for (int64_t y = 0; y < height_; ++y) {
    const float dy = static_cast<float>(y) - center_y;
    for (int64_t x = 0; x < width_; ++x) {
      const float dx = static_cast<float>(x) - center_x;
      const float source_x = cosine * dx - sine * dy + center_x, source_y = sine * dx + cosine * dy + center_y;
      const int64_t left = floor_to_integer(source_x), top = floor_to_integer(source_y);
      const float part_x = source_x - static_cast<float>(left), part_y = source_y - static_cast<float>(top);
      const float weights[4] = {(1 - part_y) * (1 - part_x), (1 - part_y) * part_x, part_y * (1 - part_x),
                                part_y * part_x};
      const bool all_inside = top >= 0 && left >= 0 && top + 1 < height_ && left + 1 < width_;
      for (int64_t c = 0; c < channels_; ++c) {
        const Pixel* from = pixels + (origin_ + c * channel_stride_);
        const auto channel = static_cast<size_t>(c);
        float* to = out + (c * height_ + y) * width_ + x;
        if (all_inside) {
          const Pixel* at = from + (top * row_stride_ + left * column_stride_);
          const float sum = weights[0] * static_cast<float>(at[0]) +
                            weights[1] * static_cast<float>(at[column_stride_]) +
                            weights[2] * static_cast<float>(at[row_stride_]) +
                            weights[3] * static_cast<float>(at[row_stride_ + column_stride_]);
          *to = sum * factor_[channel] + summand_[channel];
        } else {
          *to = sample_rim(from, top, left, weights, factor_[channel], summand_[channel]);
        }
      }
    }
  }
}

// Where some of the four pixels lie outside, and count as 0.
template <typename Pixel>
float Frame::sample_rim(const Pixel* from, int64_t top, int64_t left, const float* weights, float factor,
                        float summand) const {
  float sum = 0;
  for (int64_t row = std::max(top, int64_t{0}); row <= std::min(top + 1, height_ - 1); ++row)
    for (int64_t column = std::max(left, int64_t{0}); column <= std::min(left + 1, width_ - 1); ++column) {
      const auto pixel = static_cast<float>(from[row * row_stride_ + column * column_stride_]);
      sum += weights[2 * (row - top) + column - left] * (pixel * factor + summand);
    }
  return sum;
}

template <typename Pixel>
void Frame::write_from(const Pixel* pixels, float* out) const {
  const int64_t count = inside_.right - inside_.left;
  for (int64_t c = 0; c < channels_; ++c) {
    const auto channel = static_cast<size_t>(c);
    for (int64_t y = 0; y < height_; ++y, out += width_) {
      if (y < inside_.top || y >= inside_.bottom || count <= 0) {
        std::fill(out, out + width_, fill_[channel]);
        continue;
      }
      std::fill(out, out + inside_.left, fill_[channel]);
      const int64_t first = origin_ + c * channel_stride_ + y * row_stride_ + inside_.left * column_stride_;
      convert_row(pixels + first, column_stride_, count, factor_[channel], summand_[channel], out + inside_.left);
      std::fill(out + inside_.right, out + width_, fill_[channel]);
    }
  }
}

void Frame::fill_erased(float* out) const {
  if (!erased_) return;
  for (int64_t c = 0; c < channels_; ++c)
    for (int64_t y = erased_->top; y < erased_->bottom; ++y) {
      float* row = out + (c * height_ + y) * width_;
      std::fill(row + erased_->left, row + erased_->right, erased_value_);
    }
}

void Frame::write(float* out) const {
  if (bytes_ != nullptr)
    write_from(bytes_, out);
  else
    write_from(floats_, out);
  fill_erased(out);
}

void Frame::write(uint8_t* out) const {
  std::vector<float>& values = workspace_->pixels[workspace_->next];
  values.resize(static_cast<size_t>(channels_ * height_ * width_));
  write(values.data());
  for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<uint8_t>(std::clamp(values[i], 0.0F, 255.0F) + 0.5F);
}

}  // namespace lissome
