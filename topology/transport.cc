#include "topology/transport.h"

namespace foreshard {

const yaml::Table<Transport>& yaml_table(const Transport*) {
  using T = Transport;
  static const auto table =
      yaml::Table<T>("transport", "How a network's adapters are driven.")
          .folder("transports")
          .required("name", &T::name, "Name in reports.")
          .optional("summary", &T::summary, "Which adapters and driver, in a sentence.")
          .optional("latency", &T::latency,
                    "Latency of every message, on top of the library's own.", yaml::non_negative())
          .optional("rendezvous", &T::rendezvous, "Additional time of long messages.",
                    yaml::non_negative())
          .optional("eager_limit", &T::eager_limit, "Size at which half of `rendezvous` is paid.",
                    yaml::positive())
          .optional("exchange_efficiency", &T::exchange_efficiency,
                    "Part of the rate of one stream that messages to many peers reach.",
                    yaml::positive(), yaml::at_most(1.0))
          .optional("ordered", &T::ordered,
                    "False where writes may overtake each other: LL and LL128 cannot be used.");
  return table;
}

}  // namespace foreshard
