#include <doctest/doctest.h>
#include <spng.h>
#include <turbojpeg.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "lissome/data/data_test_files.h"
#include "lissome/data/image.h"
#include "lissome/loader.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

// height x width pixels of `channels` bytes, as a PNG file.
std::string encode_png(uint32_t height, uint32_t width, const std::vector<uint8_t>& pixels, uint8_t color_type) {
  spng_ctx* context = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{width, height, 8, color_type};
  spng_set_ihdr(context, &header);
  REQUIRE(spng_encode_image(context, pixels.data(), pixels.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE) == 0);
  size_t size = 0;
  int status = 0;
  void* data = spng_get_png_buffer(context, &size, &status);
  std::string bytes(static_cast<char*>(data), size);
  std::free(data);
  spng_ctx_free(context);
  return bytes;
}

std::string encode_jpeg(int height, int width, const std::vector<uint8_t>& pixels, int format, int sampling) {
  const tjhandle encoder = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long size = 0;
  REQUIRE(tjCompress2(encoder, pixels.data(), width, 0, height, format, &data, &size, sampling, 95, 0) == 0);
  std::string bytes(reinterpret_cast<char*>(data), size);
  tjFree(data);
  tjDestroy(encoder);
  return bytes;
}

Array decode(const std::string& bytes, int64_t channels) {
  return decode_image(std::as_bytes(std::span(bytes)), channels, "picture");
}

std::string solid_png(uint32_t height, uint32_t width, uint8_t value) {
  return encode_png(height, width, std::vector<uint8_t>(size_t{3} * height * width, value), SPNG_COLOR_TYPE_TRUECOLOR);
}

}  // namespace

TEST_CASE("PNG: every pixel, plane by plane") {
  const std::string colors = encode_png(1, 2, {10, 20, 30, 255, 0, 128}, SPNG_COLOR_TYPE_TRUECOLOR);
  const Array planes = decode(colors, 3);
  CHECK(planes.sizes == Sizes{3, 1, 2});
  CHECK(values_of<uint8_t>(planes) == std::vector<uint8_t>{10, 255, 20, 0, 30, 128});
  // 0.299 r + 0.587 g + 0.114 b
  CHECK(values_of<uint8_t>(decode(colors, 1)) == std::vector<uint8_t>{18, 91});
  const std::string grey = encode_png(2, 1, {7, 200}, SPNG_COLOR_TYPE_GRAYSCALE);
  CHECK(values_of<uint8_t>(decode(grey, 1)) == std::vector<uint8_t>{7, 200});
  CHECK(values_of<uint8_t>(decode(grey, 3)) == std::vector<uint8_t>{7, 200, 7, 200, 7, 200});
  const std::string clear = encode_png(1, 1, {1, 2, 3, 0}, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA);
  CHECK(values_of<uint8_t>(decode(clear, 3)) == std::vector<uint8_t>{1, 2, 3});
}

TEST_CASE("JPEG: close to what was encoded, in colour and grey") {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 24; ++x)
      for (const int value : {8 * y + 40, 5 * x + 30, 3 * (x + y)}) pixels.push_back(static_cast<uint8_t>(value));
  const Array seen = decode(encode_jpeg(16, 24, pixels, TJPF_RGB, TJSAMP_444), 3);
  CHECK(seen.sizes == Sizes{3, 16, 24});
  int worst = 0;
  for (size_t i = 0; i < 16 * 24; ++i)
    for (size_t c = 0; c < 3; ++c)
      worst = std::max(worst, std::abs(int{seen.data<uint8_t>()[c * 16 * 24 + i]} - int{pixels[3 * i + c]}));
  CHECK(worst <= 6);
  const std::vector<uint8_t> grey(64, 77);
  CHECK(values_of<uint8_t>(decode(encode_jpeg(8, 8, grey, TJPF_GRAY, TJSAMP_GRAY), 1)) == grey);
}

TEST_CASE("damaged images are refused, wherever they are cut off") {
  std::vector<uint8_t> pixels(20 * 20 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37 % 251);
  const std::string png = encode_png(20, 20, pixels, SPNG_COLOR_TYPE_TRUECOLOR);
  const std::string jpeg = encode_jpeg(20, 20, pixels, TJPF_RGB, TJSAMP_420);
  for (size_t length = 0; length + 13 < png.size(); length += 7)  // the end mark alone may be missing
    EXPECT_ERROR(invalid_input, decode(png.substr(0, length), 3), "'picture'");
  for (size_t length = 0; length + 2 < jpeg.size(); length += 7)
    EXPECT_ERROR(invalid_input, decode(jpeg.substr(0, length), 3), "'picture'");
  std::string flipped = png;
  flipped[png.size() / 2] = static_cast<char>(flipped[png.size() / 2] ^ 0x10);
  EXPECT_ERROR(invalid_input, decode(flipped, 3), "PNG file is damaged");
  EXPECT_ERROR(invalid_input, decode("GIF89a", 3), "neither a PNG nor a JPEG");
  // The head of a scan, repeated; behind the end of the picture nothing counts.
  const size_t scan = jpeg.find("\xff\xda");
  const std::string head = jpeg.substr(scan, 2 + static_cast<uint8_t>(jpeg[scan + 3]));
  std::string heads;
  for (int i = 0; i < 64; ++i) heads += head;
  EXPECT_ERROR(invalid_input, decode(jpeg.substr(0, scan) + heads + jpeg.substr(scan), 3), "65 scans; up to 64");
  CHECK_NOTHROW(decode(jpeg + heads + heads, 3));
  const std::string cmyk = encode_jpeg(8, 8, std::vector<uint8_t>(256, 9), TJPF_CMYK, TJSAMP_444);
  EXPECT_ERROR(unsupported, decode(cmyk, 3), "CMYK");
  // A header that claims a hundred gigabytes.
  std::string huge = png;
  huge.replace(16, 8, std::string("\x00\x00\xFF\xFF\x00\x00\xFF\xFF", 8));
  EXPECT_ERROR(invalid_input, decode(huge, 3), "'picture'");
}

TEST_CASE("an image covers what is wanted, its middle is taken") {
  // A white stripe in the middle of a wide image is what remains.
  std::vector<uint8_t> pixels(4 * 12, 0);
  for (size_t y = 0; y < 4; ++y) std::fill_n(pixels.begin() + static_cast<int64_t>(12 * y + 4), 4, uint8_t{255});
  const Array wide = make_values<uint8_t>(Dtype::u8, {1, 4, 12}, pixels);
  CHECK(values_of<uint8_t>(fit_image(wide, 4, 4, "p")) == std::vector<uint8_t>(16, 255));
  CHECK(fit_image(wide, 8, 8, "p").sizes == Sizes{1, 8, 8});
  CHECK(fit_image(wide, 3, 30, "p").sizes == Sizes{1, 3, 30});
  CHECK(fit_image(wide, 4, 12, "p").storage == wide.storage);
  const Array thread = make_array(Dtype::u8, {1, 1, 60000});
  EXPECT_ERROR(invalid_input, fit_image(thread, 224, 224, "thread"), "'thread'", "1 x 60000", "224 x 13440000");
}

TEST_CASE("a folder of images is a source and a dataset; its folders are the classes") {
  const TemporaryFolder folder;
  for (const char* name : {"dog", "cat/more", ".hidden"}) std::filesystem::create_directories(folder.file(name));
  folder.write("dog/b.PNG", solid_png(6, 6, 40));
  folder.write("dog/a.jpg", encode_jpeg(8, 8, std::vector<uint8_t>(192, 90), TJPF_RGB, TJSAMP_444));
  folder.write("dog/notes.txt", "no image");
  folder.write("cat/more/c.png", solid_png(9, 4, 200));
  const auto source = open_image_folder(folder.path(), {.height = 4, .width = 4});
  REQUIRE(source->samples() == 3);
  Loader loader(source, {.order = SequentialOrder{}, .batch = 3}, TransformPipeline(parse_transforms("to_float")),
                {.workers = 1});
  Batch batch;
  REQUIRE(loader.next(batch));
  CHECK(values_of<int64_t>(*batch.labels) == std::vector<int64_t>{0, 1, 1});
  CHECK(batch.inputs[0].array.sizes == Sizes{3, 3, 4, 4});
  CHECK(batch.inputs[0].array.data<float>()[0] == doctest::Approx(200.0 / 255));
  CHECK(batch.inputs[0].array.data<float>()[48] == doctest::Approx(90.0 / 255).epsilon(0.02));
  CHECK(batch.inputs[0].array.data<float>()[96] == doctest::Approx(40.0 / 255));

  const Dataset dataset = load_dataset(folder.path());
  CHECK(dataset.classes == std::vector<std::string>{"cat", "dog"});
  CHECK(dataset.samples() == 3);
  DataSignature input;
  input.name = "x";
  input.sizes = {-1, 3, 5, 7};
  const Dataset fitted = fit_dataset(dataset, {&input, 1});
  const auto taken = take_batch(fitted, 0, 3);
  CHECK(taken[0].array.sizes == Sizes{3, 3, 5, 7});
  CHECK(taken[0].array.data<float>()[0] == static_cast<float>(200.0 / 255));
  REQUIRE(fitted.notes.size() == 2);
  CHECK(fitted.notes[0].find("left out; .png, .jpg and .jpeg in the folders of the classes are read") !=
        std::string::npos);
  CHECK(fitted.notes[1].find("not normalized") != std::string::npos);
  input.sizes = {-1, 3, -1, -1};
  EXPECT_ERROR(invalid_input, fit_dataset(dataset, {&input, 1}), "fixed height and width");
  EXPECT_ERROR(usage, load_dataset(folder.path(), {.labels = "species"}), "folders for labels");
}

TEST_CASE("a damaged file in a folder is named, by the loader and by fit_dataset") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("dog"));
  for (const char* name : {"dog/a.png", "dog/c.png", "dog/d.png"}) folder.write(name, solid_png(4, 4, 1));
  folder.write("dog/b.png", solid_png(4, 4, 1).substr(0, 50));
  DataSignature input;
  input.sizes = {-1, 3, 4, 4};
  EXPECT_ERROR(invalid_input, fit_dataset(load_dataset(folder.path()), {&input, 1}), "dog/b.png",
               "PNG file is damaged");
  Loader loader(open_image_folder(folder.path(), {.height = 4, .width = 4}), {.order = SequentialOrder{}, .batch = 4},
                {}, {.workers = 2, .bad_samples = BadSamples::skip});
  Batch batch;
  REQUIRE(loader.next(batch));
  CHECK(batch.samples == std::vector<int64_t>{0, 2, 3});
  REQUIRE(loader.statistics().bad_samples.size() == 1);
  CHECK(loader.statistics().bad_samples[0].reason.find("dog/b.png") != std::string::npos);
  EXPECT_ERROR(usage, open_image_folder(folder.path(), {.channels = 2}), "2 channels");
  std::filesystem::create_directories(folder.file("empty"));
  EXPECT_ERROR(invalid_input, open_image_folder(folder.path()), "empty", "holds no images");
}
