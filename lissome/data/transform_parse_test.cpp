#include <doctest/doctest.h>

#include "lissome/data/data_test_files.h"
#include "lissome/loader.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

template <typename T>
T parse_as(std::string_view text) {
  return std::get<T>(parse_transforms(text).at(0).kind);
}

// What a pipeline of this text makes of one image of bytes.
ImageType infer(std::string_view text, const ImageType& type = {Dtype::u8, 3, 32, 48}) {
  return TransformPipeline(parse_transforms(text)).infer_type(type);
}

}  // namespace

TEST_CASE("transforms are read from text, with their defaults") {
  CHECK(makes_floats("flip,to_float"));
  CHECK(!makes_floats("flip"));
  CHECK(!makes_floats(""));
  CHECK(parse_transforms("to_float,normalize,flip").size() == 3);
  CHECK(parse_as<Resize>("resize:12x34").width == 34);
  CHECK(parse_as<Resize>("resize:12").width == 12);
  CHECK(parse_as<RandomCrop>("random_crop:32x16:padding=4").padding == 4);
  CHECK(parse_as<Rotate>("rotate").least == -10);
  CHECK(parse_as<Rotate>("rotate:25").most == 25);
  CHECK(parse_as<Rotate>("rotate:degrees=-5/90").least == -5);
  CHECK(parse_as<Erase>("erase:area=0.1/0.2:value=0.5").most_area == 0.2);
  CHECK(parse_as<Erase>("erase:area=0.1/0.2:value=0.5").value == 0.5F);
  CHECK(parse_as<Normalize>("normalize:mean=0.5/0.25:deviation=1/2").mean == std::vector<double>{0.5, 0.25});
  const auto apply = parse_as<RandomApply>("random_apply:0.3(flip,random_apply(rotate:5),erase:ratio=1/2)");
  CHECK(apply.probability == 0.3);
  REQUIRE(apply.transforms.size() == 3);
  CHECK(std::get<RandomApply>(apply.transforms[1].kind).probability == 0.5);
}

TEST_CASE("text that is no transform is refused with what is") {
  EXPECT_ERROR(usage, parse_transforms("flop"), "'flop'", "flip", "to_float");
  EXPECT_ERROR(usage, parse_transforms(""), "there is no transform");
  EXPECT_ERROR(usage, parse_transforms("flip,,flip"), "there is no transform");
  EXPECT_ERROR(usage, parse_transforms("flip:3"), "'3'", "no value");
  EXPECT_ERROR(usage, parse_transforms("rotate:angle=3"), "'angle'", "degrees");
  EXPECT_ERROR(usage, parse_transforms("rotate:3:4"), "'4'", "FIELD=VALUE");
  EXPECT_ERROR(usage, parse_transforms("rotate:degrees=3"), "LEAST/MOST");
  EXPECT_ERROR(usage, parse_transforms("resize"), "no sizes", "resize:224x224");
  EXPECT_ERROR(usage, parse_transforms("resize:12x"), "cannot read the size");
  EXPECT_ERROR(usage, parse_transforms("random_apply:0.5(flip"), "closing parenthesis");
  EXPECT_ERROR(usage, parse_transforms("random_apply:0.5)flip("), "opening parenthesis");
  EXPECT_ERROR(usage, parse_transforms("random_apply:0.5"), "parentheses");
  EXPECT_ERROR(usage, parse_transforms("random_apply(flip)x"), "parentheses");
  EXPECT_ERROR(usage, parse_transforms("flip(flip)"), "parentheses");
  std::string deep = "flip";
  for (int i = 0; i < 40; ++i) deep = "random_apply(" + deep + ")";
  EXPECT_ERROR(usage, parse_transforms(deep), "8 levels");
}

TEST_CASE("fields out of range are refused") {
  const auto refuses = [](std::string_view text, const std::string& word) {
    EXPECT_ERROR(usage, TransformPipeline(parse_transforms(text)), word);
  };
  refuses("resize:0x5", "0x5");
  refuses("center_crop:5x100000", "65536");
  refuses("random_crop:5:padding=-1", "padding of -1");
  refuses("rotate:-5", "5 to -5");
  refuses("rotate:degrees=0/nan", "nan");
  refuses("erase:area=0/0.5", "area of 0");
  refuses("erase:ratio=3/2", "ratio of 3");
  refuses("normalize:mean=1/2:deviation=1", "2 means and 1 deviations");
  refuses("normalize:mean=1:deviation=0", "deviation of 0");
  refuses("random_apply:1.5(flip)", "1.5");
  refuses("random_apply(rotate:400)", "400");
}

TEST_CASE("a pipeline knows what it makes, and what it cannot do") {
  const ImageType type = infer("resize:40x40,random_crop:36x30:padding=2,to_float,normalize");
  CHECK(type.dtype == Dtype::f32);
  CHECK(type.channels == 3);
  CHECK(type.height == 36);
  CHECK(type.width == 30);
  EXPECT_ERROR(usage, infer("normalize"), "to_float");
  EXPECT_ERROR(usage, infer("to_float,normalize", {Dtype::u8, 1, 8, 8}), "1 channels");
  EXPECT_ERROR(usage, infer("to_float,normalize:mean=1/2:deviation=1/2"), "2 means", "3 channels");
  EXPECT_ERROR(usage, infer("center_crop:33x48"), "32x48");
  EXPECT_ERROR(usage, infer("random_crop:37x48:padding=2"), "with their padding");
  EXPECT_ERROR(usage, infer("random_apply(resize:8)"), "keep type and sizes");
  EXPECT_ERROR(usage, infer("random_apply(to_float)"), "keep type and sizes");
  CHECK(infer("random_apply(resize:8,resize:32x48)").height == 32);
}

TEST_CASE("a loader transforms its images, whatever else is in the batch") {
  std::vector<uint8_t> pixels(2 * 3 * 2 * 2);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i);
  const Dataset dataset = make_dataset({{"id", make_values<int64_t>(Dtype::i64, {2}, {7, 8})},
                                        {"image", make_values<uint8_t>(Dtype::u8, {2, 3, 2, 2}, pixels)},
                                        {"y", make_values<int64_t>(Dtype::i64, {2}, {0, 1})}},
                                       {.labels = "y"}, "memory");
  for (const int workers : {0, 2}) {
    Loader loader(make_source(dataset), {.order = SequentialOrder{}, .batch = 1},
                  TransformPipeline(parse_transforms("flip,to_float")), {.workers = workers});
    Batch batch;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      for (int64_t i = 0; i < 2; ++i) {
        REQUIRE(loader.next(batch));
        CHECK(batch.inputs[0].array.data<int64_t>()[0] == 7 + i);
        CHECK(batch.labels->data<int64_t>()[0] == i);
        CHECK(batch.inputs[1].array.sizes == Sizes{1, 3, 2, 2});
        CHECK(batch.inputs[1].array.data<float>()[0] == static_cast<float>(12 * i + 1) * (1.0F / 255));
      }
      CHECK_FALSE(loader.next(batch));
    }
  }
  Loader wrong(make_source(dataset), {}, TransformPipeline(parse_transforms("flip"), 0, "picture"));
  Batch batch;
  EXPECT_ERROR(usage, wrong.next(batch), "'picture'", "id, image");
  Loader none(make_source(make_dataset({{"x", make_array(Dtype::f32, {4, 2})}}, {}, "m")), {},
              TransformPipeline(parse_transforms("flip")));
  EXPECT_ERROR(usage, none.next(batch), "0 of x");
}
