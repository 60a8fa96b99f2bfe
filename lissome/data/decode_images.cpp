// See decode_images.h.
#include "lissome/data/decode_images.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "lissome/data/image.h"

namespace lissome {
namespace {

// The sizes of one image.
Sizes read_image_sizes(const Dataset& dataset, std::span<const DataSignature> inputs) {
  const Sizes sizes = inputs.size() == 1 ? inputs[0].sizes : Sizes{};
  const bool fits = sizes.size() == 4 && (sizes[1] == 1 || sizes[1] == 3) && sizes[2] > 0 && sizes[3] > 0;
  if (!fits)
    throw_error(ErrorKind::invalid_input, quote(dataset.source),
                ": a folder of images needs a model with one input [batch, 1 or 3, height, width] of fixed height and "
                "width; this one has ",
                inputs.size(), inputs.size() == 1 ? " input " + format_sizes(sizes) : std::string(" inputs"), ".");
  return {sizes.begin() + 1, sizes.end()};
}

// The error of the first image in order is reported.
class FirstError {
 public:
  void keep(size_t index, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error_ == nullptr || index < index_) {
      index_ = index;
      error_ = std::move(error);
    }
  }
  void rethrow() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  size_t index_ = 0;
  std::exception_ptr error_;
};

// Where `bad` is given, images that cannot be read go there, with the reason, and stay zeros.
void decode_all(const std::vector<std::string>& paths, const Sizes& sizes, uint8_t* out,
                std::map<int64_t, std::string>* bad) {
  const auto each = static_cast<size_t>(count_elements(sizes));
  std::atomic<size_t> next = 0;
  std::mutex bad_mutex;
  FirstError first_error;
  const auto work = [&] {
    for (size_t i = next++; i < paths.size(); i = next++) {
      try {
        const Array image = load_image(paths[i], sizes[0], sizes[1], sizes[2]);
        std::memcpy(out + i * each, image.storage.get(), each);
      } catch (const Error& error) {
        if (bad == nullptr || (error.kind() != ErrorKind::invalid_input && error.kind() != ErrorKind::io)) {
          first_error.keep(i, std::current_exception());
          return;
        }
        const std::lock_guard lock(bad_mutex);
        bad->emplace(static_cast<int64_t>(i), error.message());
      } catch (...) {
        first_error.keep(i, std::current_exception());
        return;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < std::min(usable_threads(), static_cast<int>(paths.size())); ++i) threads.emplace_back(work);
  }
  first_error.rethrow();
}

void leave_out(Dataset* dataset, const std::map<int64_t, std::string>& bad) {
  if (bad.empty()) return;
  std::erase_if(dataset->rows, [&](int64_t row) { return bad.contains(row); });
  if (dataset->rows.empty())
    throw_error(ErrorKind::invalid_input, quote(dataset->source), ": no image can be read: ", bad.begin()->second);
  std::vector<std::string> reasons;
  for (const auto& [row, reason] : bad) reasons.push_back(reason);
  const size_t count = reasons.size();
  dataset->notes.push_back(std::to_string(count) + (count == 1 ? " image is" : " images are") +
                           " left out, which cannot be read: " + join_few(std::move(reasons), 3, "; "));
}

}  // namespace

void decode_images(Dataset* dataset, std::span<const DataSignature> inputs, bool skip_bad) {
  const Sizes sizes = read_image_sizes(*dataset, inputs);
  const auto samples = static_cast<int64_t>(dataset->image_files.size());
  const auto bytes = count_bytes(Dtype::u8, Sizes{samples, sizes[0], sizes[1], sizes[2]});
  if (!bytes || *bytes > total_memory_bytes() / 2)
    throw_error(ErrorKind::over_budget, quote(dataset->source), ": ", samples, " images ", format_sizes(sizes),
                " need ", bytes ? format_bytes(*bytes) : std::string("more than 8 EiB"), ", half of the memory is ",
                format_bytes(total_memory_bytes() / 2), ". Take fewer images.");
  DataColumn column{inputs[0].name, make_array(Dtype::u8, {samples, sizes[0], sizes[1], sizes[2]}), Dtype::u8, sizes,
                    1};
  std::map<int64_t, std::string> bad;
  decode_all(dataset->image_files, sizes, column.array.data<uint8_t>(), skip_bad ? &bad : nullptr);
  leave_out(dataset, bad);
  dataset->columns = {std::move(column)};
  dataset->image_files.clear();
  dataset->notes.push_back(quote(dataset->source) + ": images cover " + std::to_string(sizes[1]) + " x " +
                           std::to_string(sizes[2]) +
                           " pixels, their middle is taken; floats are 0 to 1, not normalized, before any transforms.");
}

}  // namespace lissome
