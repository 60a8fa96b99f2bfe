// With a libtorch that was built with CUDA.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "lissome/reference/device.h"

namespace lissome {
namespace {

constexpr int kWarmUps = 2;

class CudaGraph : public RecordedCall {
 public:
  CudaGraph(const c10::Device& device, const std::function<void()>& work) {
    // Nothing can be recorded on the default stream.
    const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool(false, device.index());
    c10::cuda::getCurrentCUDAStream(device.index()).synchronize();
    const c10::cuda::CUDAStreamGuard guard(stream);
    for (int i = 0; i < kWarmUps; ++i) work();
    stream.synchronize();
    graph_.capture_begin();
    try {
      work();
    } catch (...) {
      graph_.capture_end();
      throw;
    }
    graph_.capture_end();
    stream.synchronize();
  }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

}  // namespace

std::unique_ptr<RecordedCall> record_call(const c10::Device& device, const std::function<void()>& work) {
  return std::make_unique<CudaGraph>(device, work);
}

}  // namespace lissome
