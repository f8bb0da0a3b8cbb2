// In the place of server.cc where there is no libcpp-httplib.
#include "base/http/server.h"

namespace foreshard::http {

Result<std::unique_ptr<Server>> Server::start(std::uint16_t, Handler) {
  return Error{Error::Code::kUnsupported,
               "this program was built without a server: install libcpp-httplib-dev and build it "
               "again; foreshard report makes a page without one"};
}

}  // namespace foreshard::http
