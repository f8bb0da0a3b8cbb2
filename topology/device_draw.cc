#include "topology/device_draw.h"

namespace foreshard {

const yaml::Table<DeviceDraw>& yaml_table(const DeviceDraw*) {
  using D = DeviceDraw;
  static const auto table =
      yaml::Table<D>("draw",
                     "What a device draws while it does what, as shares of the way from idle_power "
                     "to power.")
          .folder("devices/draw")
          .optional("products", &D::products, "Matrix products. Default: 1.", yaml::between(0, 1))
          .optional("attention", &D::attention, "Fused attention. Default: 1.", yaml::between(0, 1))
          .optional("passes", &D::passes,
                    "Memory-bound kernels, those of the optimizer among them. Default: 1.",
                    yaml::between(0, 1))
          .optional("communication", &D::communication,
                    "Communication while no kernel runs. Default: 1.", yaml::between(0, 1))
          .optional("waiting", &D::waiting,
                    "Waiting for the host or for other devices, with a program loaded. Default: 0.",
                    yaml::between(0, 1));
  return table;
}

}  // namespace foreshard
