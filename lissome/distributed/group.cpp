// See group.h.
#include "lissome/distributed/group.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>
#include <nlohmann/json.hpp>

#include "lissome/base.h"
#include "lissome/distributed/call_within.h"
#include "lissome/distributed/join_group.h"

namespace lissome {
namespace {

std::shared_ptr<gloo::transport::Device> open_device(const GroupPlace& place) {
  if (const std::optional<std::string> interface = read_environment("GLOO_SOCKET_IFNAME"))
    return c10d::ProcessGroupGloo::createDeviceForInterface(*interface);
  if (place.address == "localhost" || place.address.starts_with("127."))
    return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  return c10d::ProcessGroupGloo::createDefaultDevice();
}

c10::intrusive_ptr<c10d::ProcessGroupGloo> connect(const c10::intrusive_ptr<c10d::Store>& store,
                                                   const GroupPlace& place, std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices = {open_device(place)};
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, place.rank, place.ranks, options);
}

// The first sentence, without where in Gloo's source it was thrown.
std::string shorten(const std::string& reason) {
  const std::string line = split(reason, '\n').front();
  const size_t source = line.starts_with('[') ? line.find("] ") : std::string::npos;
  const std::string text = source == std::string::npos ? line : line.substr(source + 2);
  return text.substr(0, text.find(". "));
}

using Facts = std::vector<std::pair<std::string, std::string>>;

// Another rank wrote the text.
Facts read_facts(const std::string& text, int rank) {
  const Json rows = parse_json(text, "facts of a rank");
  Facts facts;
  for (const Json& row : rows) {
    if (!rows.is_array() || !row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_string()) break;
    facts.emplace_back(row[0].get<std::string>(), row[1].get<std::string>());
  }
  if (facts.empty() || facts.size() != rows.size())
    throw_error(ErrorKind::invalid_input, "rank ", rank, " does not say what it trains: it is no rank of lissome");
  return facts;
}

}  // namespace

class Group::Connection {
 public:
  Connection(const GroupPlace& place, double timeout_seconds) : place_(place), timeout_seconds_(timeout_seconds) {
    const std::chrono::milliseconds timeout(static_cast<int64_t>(timeout_seconds * 1e3));
    const c10::intrusive_ptr<c10d::Store> shared = open_store(place, timeout_seconds);
    const auto ours = c10::make_intrusive<c10d::PrefixStore>("lissome", shared);
    name("joining the group", [&] {
      store_ = c10::make_intrusive<c10d::PrefixStore>(agree_on_name(ours, place, timeout_seconds), ours);
      store_->setTimeout(timeout);
      if (place.ranks > 1) group_ = connect(store_, place, timeout);
    });
  }

  Connection(const Connection& other, const std::string& prefix)
      : place_(other.place_), timeout_seconds_(other.timeout_seconds_) {
    const std::chrono::milliseconds timeout(static_cast<int64_t>(timeout_seconds_ * 1e3));
    name("joining the group for " + prefix, [&] {
      store_ = c10::make_intrusive<c10d::PrefixStore>(prefix, other.store_);
      store_->setTimeout(timeout);
      if (place_.ranks > 1) group_ = connect(store_, place_, timeout);
    });
  }

  void put(const std::string& key, const std::string& text, const std::string& what) const {
    name(what, [&] {
      call_within(timeout_seconds_, describe(what),
                  [store = store_, key, text] { store->set(key, std::vector<uint8_t>(text.begin(), text.end())); });
    });
  }
  std::string wait_for(const std::string& key, const std::string& what) const {
    std::string text;
    name(what, [&] {
      text = call_within(timeout_seconds_ + 1, describe(what), [store = store_, key] {
        const std::vector<uint8_t> bytes = store->get(key);
        return std::string(bytes.begin(), bytes.end());
      });
    });
    return text;
  }
  // Empty for a group of one.
  const c10::intrusive_ptr<c10d::ProcessGroupGloo>& group() const { return group_; }

  // Runs `call`, and names rank and operation in what c10d throws.
  void name(const std::string& what, const auto& call) const {
    try {
      call();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw_error(ErrorKind::io, "rank ", place_.rank, " of ", place_.ranks, " lost a peer in ", what, ": ",
                  shorten(error.what()));
    }
  }

 private:
  std::string describe(const std::string& what) const {
    return "rank " + std::to_string(place_.rank) + " of " + std::to_string(place_.ranks) + " (" + what + ")";
  }

  const GroupPlace place_;
  const double timeout_seconds_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

Group::Group(const GroupPlace& place, double timeout_seconds)
    : place_(place), connection_(std::make_unique<Connection>(place, timeout_seconds)) {}
Group::Group(const Group& other, const std::string& name)
    : place_(other.place_), connection_(std::make_unique<Connection>(*other.connection_, name)) {}
Group::~Group() = default;

std::string Group::name_key(const std::string& what) { return std::to_string(keys_++) + "/" + what; }

void Group::check_agreement(const std::vector<std::pair<std::string, std::string>>& facts) {
  const std::string key = name_key("facts");
  const auto key_of = [&](int rank) { return key + "/" + std::to_string(rank); };
  std::vector<Facts> of_ranks;
  const std::string what = "comparing what each rank trains";
  connection_->put(key_of(place_.rank), print_json(Json(facts)), what);
  for (int rank = 0; rank < place_.ranks; ++rank)
    of_ranks.push_back(read_facts(connection_->wait_for(key_of(rank), what), rank));
  wait_for_readers(key, what);
  for (int rank = 1; rank < place_.ranks; ++rank) {
    const Facts &first = of_ranks[0], &other = of_ranks[static_cast<size_t>(rank)];
    if (first.size() != other.size())
      throw_error(ErrorKind::invalid_input, "rank ", rank, " runs another version of lissome than rank 0");
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[i] == other[i]) continue;
      throw_error(ErrorKind::invalid_input, "rank ", rank, " trains something else than rank 0: ", first[i].first,
                  " is ", quote(other[i].second), ", on rank 0 ", quote(first[i].second));
    }
  }
}

std::string Group::share_text(const std::string& text, const std::string& what) {
  const std::string key = name_key(what);
  if (place_.rank == 0) connection_->put(key, text, what);
  const std::string of_first = connection_->wait_for(key, what);
  wait_for_readers(key, what);
  return of_first;
}

void Group::wait_for_readers(const std::string& key, const std::string& what) {
  if (place_.rank != 0) connection_->put(key + "/read/" + std::to_string(place_.rank), "1", what);
  for (int rank = 1; place_.rank == 0 && rank < place_.ranks; ++rank)
    connection_->wait_for(key + "/read/" + std::to_string(rank), what);
}

void Group::share(const at::Tensor& tensor, const std::string& what) {
  if (place_.ranks == 1) return;
  std::vector<at::Tensor> tensors = {tensor};
  connection_->name(what, [&] { connection_->group()->broadcast(tensors)->wait(); });
}

void Group::sum(const at::Tensor& tensor, const std::string& what) {
  if (place_.ranks == 1) return;
  std::vector<at::Tensor> tensors = {tensor};
  connection_->name(what, [&] { connection_->group()->allreduce(tensors)->wait(); });
}

std::function<void()> Group::start_sum(const at::Tensor& tensor, const std::string& what) {
  if (place_.ranks == 1) return [] {};
  std::vector<at::Tensor> tensors = {tensor};
  c10::intrusive_ptr<c10d::Work> work;
  connection_->name(what, [&] { work = connection_->group()->allreduce(tensors); });
  return [this, work, what] { connection_->name(what, [&] { work->wait(); }); };
}

std::vector<at::Tensor> Group::gather(const at::Tensor& tensor, const std::string& what) {
  if (place_.ranks == 1) return {tensor.clone()};
  std::vector<at::Tensor> tensors = {tensor};
  std::vector<std::vector<at::Tensor>> gathered(1);
  for (int rank = 0; rank < place_.ranks; ++rank) gathered[0].push_back(at::empty_like(tensor));
  connection_->name(what, [&] { connection_->group()->allgather(gathered, tensors)->wait(); });
  return gathered[0];
}

}  // namespace lissome
