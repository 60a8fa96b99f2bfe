// See transfer_file.h.
#include "lissome/runtime/session/run/transfer_file.h"

#include <algorithm>
#include <cstring>

#include "lissome/runtime/step/move/offload_steps.h"

namespace lissome {

TransferFile::TransferFile(const Plan& plan, const std::string& folder, bool is_limited) {
  if (std::none_of(plan.steps.begin(), plan.steps.end(), is_step<OffloadStep>)) return;
  if (folder.empty())
    throw_error(ErrorKind::invalid_input, "plan: some values are offloaded to a file, and no folder was given for it");
  if (is_limited)
    throw_error(ErrorKind::unsupported,
                "a session with a memory limit cannot run a plan that offloads values to a file. Leave out the limit");
  file_.emplace(folder);
}

void TransferFile::reserve(const Binding& binding) {
  if (file_) file_->reserve(file_bytes(binding.transfers()));
}

// The next value that comes back is read ahead from here on, while the steps before it compute.
void TransferFile::move(const Binding& binding, size_t position, const RunMemory& memory) const {
  const std::span<const Transfer> transfers = binding.transfers();
  const Transfer& transfer = transfers[position];
  std::byte* value = memory.address_of(binding, transfer.value);
  if (transfer.out) {
    file_->write(transfer.offset, value, transfer.bytes);
    // A reader of the ticket must not see what lay there before.
    std::memset(memory.address_of(binding, transfer.ticket), 0, sizeof(int64_t));
  } else {
    file_->read(transfer.offset, value, transfer.bytes);
  }
  if (position + 1 < transfers.size() && !transfers[position + 1].out)
    file_->fetch({transfers[position + 1].offset, transfers[position + 1].end()});
}

}  // namespace lissome
