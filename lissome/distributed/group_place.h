// Where a process stands in a group of processes, as its launcher says it: `lissome launch`, torchrun, Slurm,
// Kubernetes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lissome {

struct GroupPlace {
  int rank = 0;                       // from 0, below `ranks`
  int ranks = 1;                      // processes in the group
  std::string address = "127.0.0.1";  // of the host on which the store listens
  uint16_t port = 29500;              // of the store
  bool has_store = false;             // a launcher hosts the store already; else rank 0 does
};

// Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and TORCHELASTIC_USE_AGENT_STORE; empty without WORLD_SIZE. Throws
// usage, naming the variable, for a missing RANK and for what is no number or out of range.
std::optional<GroupPlace> find_group_place();

}  // namespace lissome
