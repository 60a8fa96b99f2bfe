// A group of processes, each a rank, that call the same collectives in the same order. Sums have the same bits on each.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lissome/distributed/group_place.h"

namespace lissome {

class Group {
 public:
  // Waits until all ranks have joined. Throws io: no store at that address, a port that is taken, a rank that does not
  // come within the timeout; and usage for ranks that count each other differently. The program must ignore SIGPIPE:
  // Gloo writes to sockets of peers that may be gone.
  Group(const GroupPlace& place, double timeout_seconds);
  // The ranks of `other`, with an order of collectives of their own. `name` is not used twice. All ranks call it at
  // once. Throws io.
  Group(const Group& other, const std::string& name);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  int rank() const { return place_.rank; }
  int ranks() const { return place_.ranks; }

  // All of these throw io, naming this rank and `what`, if a peer ends, or does not come within the timeout.

  // Throws invalid_input, naming fact and ranks, unless all ranks give the same names and texts. Goes first: ranks that
  // sum tensors of other sizes or dtypes crash, or get wrong numbers without a word.
  void check_agreement(const std::vector<std::pair<std::string, std::string>>& facts);
  // What rank 0 gives.
  std::string share_text(const std::string& text, const std::string& what);
  void share(const at::Tensor& tensor, const std::string& what);
  // Replaces `tensor`, dense and on the CPU, by its sum over all ranks.
  void sum(const at::Tensor& tensor, const std::string& what);
  // Starts such a sum. The function that it returns waits for its end; until then `tensor` must not be touched. Sums
  // may be waited for in any order, but all ranks start theirs, and call the other collectives, in the same order.
  std::function<void()> start_sum(const at::Tensor& tensor, const std::string& what);
  // What each rank gives, in the order of ranks: tensors of the same sizes and dtype, dense and on the CPU.
  std::vector<at::Tensor> gather(const at::Tensor& tensor, const std::string& what);

 private:
  class Connection;
  std::string name_key(const std::string& what);
  // On rank 0, whose process may hold the store, and which would take it along where an error ends it.
  void wait_for_readers(const std::string& key, const std::string& what);

  GroupPlace place_;
  int64_t keys_ = 0;  // used in the store so far
  std::unique_ptr<Connection> connection_;
};

}  // namespace lissome
