#include "lissome/kernel/move/move.h"

#include <cstring>

#include "lissome/kernel/gemm/linear_bf16.h"
#include "lissome/kernel/gemm/linear_f32.h"
#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/isa/bf16_arrays.h"

using namespace lissome;

TEST_CASE("copy follows any strides, shared among parts") {
  TestNumbers numbers(3);
  const int64_t a = 3, b = 37, c = 21;
  const auto x = numbers.reals(a * b * c);
  CopyCall call;
  call.rank = 3;
  const int64_t sizes[3] = {a, c, b}, x_strides[3] = {b * c, 1, c}, y_strides[3] = {c * b, b, 1};
  for (int i = 0; i < 3; ++i)
    call.sizes[i] = sizes[i], call.x_strides[i] = x_strides[i], call.y_strides[i] = y_strides[i];
  call.x = x.data();
  for (const int parts : {1, 2, 5}) {
    std::vector<float> y(x.size(), 777.0f);
    call.y = y.data();
    for (int part = 0; part < parts; ++part) find_kernel("copy").function(&call, part, parts);
    bool same = true;
    for (int64_t i = 0; i < a; ++i) {
      for (int64_t j = 0; j < b; ++j) {
        for (int64_t k = 0; k < c; ++k) {
          same = same && y[static_cast<size_t>((i * c + k) * b + j)] == x[static_cast<size_t>((i * b + j) * c + k)];
        }
      }
    }
    CHECK(same);
  }
}

TEST_CASE("copy turns planes of any size on all levels, to the bit") {
  TestNumbers numbers(4);
  for (int i = 0; i < 60; ++i) {
    CopyCall call;
    const bool weaves = i % 3 == 1;  // two rows, however long
    const int64_t planes = numbers.between(1, 3), rows = numbers.between(1, weaves ? 150 : 50);
    const int64_t columns = weaves ? 2 : numbers.between(1, 50);
    const bool turns = i % 4 != 0;
    const int64_t sizes[3] = {planes, rows, columns};
    const int64_t x_strides[3] = {rows * columns, turns ? 1 : columns, turns ? rows : 1};
    const int64_t y_strides[3] = {rows * columns, columns, 1};
    call.rank = 3;
    std::copy(sizes, sizes + 3, call.sizes);
    std::copy(x_strides, x_strides + 3, call.x_strides);
    std::copy(y_strides, y_strides + 3, call.y_strides);
    for (const int item : {1, 2, 4, 8}) {
      call.item = item;
      const auto bytes = static_cast<size_t>(planes * rows * columns * item);
      std::vector<unsigned char> x(bytes), wanted(bytes);
      for (unsigned char& byte : x) byte = static_cast<unsigned char>(numbers.between(0, 255));
      for (int64_t p = 0; p < planes; ++p) {
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            const int64_t from = p * x_strides[0] + r * x_strides[1] + c * x_strides[2];
            std::memcpy(wanted.data() + ((p * rows + r) * columns + c) * item, x.data() + from * item,
                        static_cast<size_t>(item));
          }
        }
      }
      call.x = x.data();
      for (const KernelRow& row : kernel_rows("copy")) {
        if (!can_run(row.isa)) continue;
        for (const int parts : {1, 3}) {
          std::vector<unsigned char> y(bytes, 77);
          call.y = y.data();
          for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
          CHECK(y == wanted);
        }
      }
    }
  }
}

TEST_CASE("concat puts rows beside each other, however they are shared") {
  TestNumbers numbers(9);
  for (const int64_t outer : {1, 3, 40}) {
    ConcatCall call;
    call.outer = outer, call.pieces = 3;
    const int64_t widths[3] = {37, 0, 129};
    std::vector<std::vector<float>> pieces;
    std::vector<float> wanted;
    for (int i = 0; i < 3; ++i) {
      // The last is cut out of something wider.
      const int64_t pitch = widths[i] + (i == 2 ? 11 : 0);
      pieces.push_back(numbers.reals(outer * pitch));
      call.x[i] = pieces.back().data(), call.widths[i] = widths[i] * 4, call.pitches[i] = pitch * 4;
    }
    for (int64_t row = 0; row < outer; ++row) {
      for (size_t i = 0; i < 3; ++i) {
        const auto first = pieces[i].begin() + static_cast<std::ptrdiff_t>(row * call.pitches[i] / 4);
        wanted.insert(wanted.end(), first, first + static_cast<std::ptrdiff_t>(widths[i]));
      }
    }
    for (const int parts : {1, 2, 5}) {
      std::vector<float> y(wanted.size(), 777.0f);
      call.y = y.data();
      for (int part = 0; part < parts; ++part) find_kernel("concat").function(&call, part, parts);
      CHECK(y == wanted);
    }
  }
}

TEST_CASE("pad surrounds and cuts") {
  const std::vector<int32_t> x = {1, 2, 3, 4, 5, 6};  // two rows of three
  PadCall call;
  call.rank = 2;
  call.x_sizes[0] = 2, call.x_sizes[1] = 3;
  call.x = x.data();
  const int32_t seven = 7;
  std::memcpy(&call.value, &seven, sizeof(seven));
  const auto run = [&](int64_t top, int64_t left, int64_t height, int64_t width) {
    call.before[0] = top, call.before[1] = left, call.y_sizes[0] = height, call.y_sizes[1] = width;
    std::vector<int32_t> y(static_cast<size_t>(height * width), -1);
    call.y = y.data();
    for (int part = 0; part < 3; ++part) find_kernel("pad").function(&call, part, 3);
    return y;
  };
  CHECK(run(1, 1, 3, 5) == std::vector<int32_t>{7, 7, 7, 7, 7, 7, 1, 2, 3, 7, 7, 4, 5, 6, 7});
  CHECK(run(-1, -1, 2, 3) == std::vector<int32_t>{5, 6, 7, 7, 7, 7});
  CHECK(run(0, -2, 2, 1) == std::vector<int32_t>{3, 6});
}

TEST_CASE("gather_rows takes rows of a table that a linear packed") {
  constexpr int64_t kRows = 75, kColumns = 37;  // neither fills its panels
  TestNumbers numbers(11);
  const std::vector<float> table = numbers.reals(kRows * kColumns);
  std::vector<uint16_t> narrow(table.size());
  for (size_t i = 0; i < table.size(); ++i) narrow[i] = narrow_bf16(table[i]);
  std::vector<float> packed(static_cast<size_t>(packed_linear_f32_size(kRows, kColumns)));
  std::vector<uint16_t> packed_narrow(static_cast<size_t>(packed_linear_bf16_size(kRows, kColumns)));
  pack_linear_f32(table.data(), kRows, kColumns, kColumns, 1, packed.data());
  pack_linear_bf16(narrow.data(), kRows, kColumns, kColumns, 1, packed_narrow.data());
  const std::vector<int32_t> indices = {74, 0, 31, 32, 63, 64, -75};
  int64_t fault = 0;
  GatherRowsCall call;
  call.indices = indices.data(), call.narrow_indices = true, call.negative_allowed = true, call.fault = &fault;
  call.fault_code = 7, call.rows = kRows, call.count = static_cast<int64_t>(indices.size());
  std::vector<float> y(indices.size() * kColumns);
  std::vector<uint16_t> y_narrow(y.size());
  call.table = packed.data(), call.y = y.data(), call.row_bytes = kColumns * 4, call.layout = TableLayout::linear_f32;
  for (int part = 0; part < 3; ++part) find_kernel("gather_rows").function(&call, part, 3);
  call.table = packed_narrow.data(), call.y = y_narrow.data(), call.row_bytes = kColumns * 2;
  call.layout = TableLayout::linear_bf16;
  find_kernel("gather_rows").function(&call, 0, 1);
  bool same = true;
  for (size_t i = 0; i < indices.size(); ++i) {
    const size_t row = indices[i] < 0 ? 0 : static_cast<size_t>(indices[i]);
    for (size_t k = 0; k < kColumns; ++k) {
      same = same && y[i * kColumns + k] == table[row * kColumns + k] &&
             y_narrow[i * kColumns + k] == narrow[row * kColumns + k];
    }
  }
  CHECK(same);
  CHECK(fault == 0);
}

TEST_CASE("gather_rows takes rows and reports indices out of range") {
  const std::vector<float> table = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> indices = {2, 0, 1, 2};
  std::vector<float> y(8);
  int64_t fault = 0;
  GatherRowsCall call;
  call.table = table.data(), call.indices = indices.data(), call.y = y.data(), call.fault = &fault;
  call.fault_code = 7, call.rows = 3, call.row_bytes = 8, call.count = 4;
  find_kernel("gather_rows").function(&call, 0, 1);
  CHECK(y == std::vector<float>{5, 6, 1, 2, 3, 4, 5, 6});
  CHECK(fault == 0);
  indices[1] = -1;
  find_kernel("gather_rows").function(&call, 0, 1);
  CHECK(fault == 7);
  fault = 0;
  call.negative_allowed = true;
  find_kernel("gather_rows").function(&call, 0, 1);
  CHECK(fault == 0);
  CHECK(y[2] == 5);
  indices[3] = 3;
  find_kernel("gather_rows").function(&call, 0, 1);
  CHECK(fault == 7);
}
