#include "lissome/lower/device.h"

#include <ATen/Context.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include "lissome/lower.h"

namespace lissome {
namespace {

void rename_devices(Argument& argument, const std::string& device) {
  if (auto* named = std::get_if<Device>(&argument.data)) named->name = device;
  if (auto* list = std::get_if<ArgumentList>(&argument.data)) {
    for (Argument& entry : *list) rename_devices(entry, device);
  }
}

void rename_devices(std::vector<Node>& nodes, const std::string& device) {
  for (Node& node : nodes) {
    for (Argument& argument : node.arguments) rename_devices(argument, device);
    for (std::shared_ptr<const Program>& body : node.bodies) {
      body = std::make_shared<const Program>(move_to_device(*body, device));
    }
  }
}

// "cuda" and "cuda:N".
bool is_cuda(const std::string& name) {
  if (!name.starts_with("cuda")) return false;
  try {
    return c10::Device(name).is_cuda();
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

void check_device(const std::string& name) {
  if (name == "cpu") return;
  if (!is_cuda(name))
    throw_error(ErrorKind::usage, "there is no device ", quote(name), "\nDevices: cpu, cuda, cuda:1, ...");
  if (!at::hasCUDA()) {
    throw_error(ErrorKind::unsupported, "no CUDA device can be used: ",
                at::Context::hasCUDART() ? "this libtorch finds none" : "this libtorch was built without CUDA",
                "\n      Leave --device out to run on the processor.");
  }
  const int devices = at::detail::getCUDAHooks().deviceCount();
  const int index = c10::Device(name).index();
  if (index >= devices) throw_error(ErrorKind::unsupported, name, " is not there: CUDA devices: ", devices);
}

Program move_to_device(Program program, const std::string& device) {
  rename_devices(program.nodes, device);
  return program;
}

}  // namespace lissome
