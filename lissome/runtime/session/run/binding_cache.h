// The bindings of a session by the sizes of its inputs. The longest unused one goes first.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "lissome/base.h"
#include "lissome/runtime/session/binding.h"

namespace lissome {

class BindingCache {
 public:
  // `most`: bindings that stay; at least one does.
  explicit BindingCache(int most);

  // The binding for the dtypes and sizes of these inputs. It holds until add(). Null if there is none, or if an input
  // is not dense in row order. Allocates nothing once inputs of this size were seen.
  Binding* find(std::span<const TensorView> inputs);
  // Keeps the binding for these inputs, which find() does not know.
  Binding& add(std::span<const TensorView> inputs, std::unique_ptr<Binding> binding);

  // Calls `visit` with each binding, the last used first.
  void for_each(const auto& visit) const {
    for (const Entry& entry : entries_) visit(static_cast<const Binding&>(*entry.binding));
  }

 private:
  using Key = std::vector<int64_t>;  // dtype and sizes of each input, one behind the other
  struct Entry {
    Key key;
    std::unique_ptr<Binding> binding;
  };
  void write_key(std::span<const TensorView> inputs);

  size_t most_;
  std::list<Entry> entries_;  // the last used first
  Key key_;                   // of the last inputs
};

}  // namespace lissome
