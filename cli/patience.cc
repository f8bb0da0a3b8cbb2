#include "cli/patience.h"

#include <fmt/format.h>

#include "base/quantity.h"

namespace foreshard::cli {

Result<Seconds> patience(const std::string& text) {
  const auto refuse = [](const std::string& why) {
    return Error{Error::Code::kInvalidInput, "--budget: " + why};
  };
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789.") == text.npos;
  if (is_number)
    return refuse(fmt::format("'{0}' has no unit\n   help: write '{0}s' or '{0}min'", text));
  const auto time = parse<Seconds>(text);
  if (!time) return refuse(time.error().message);
  if (!(*time > Seconds{})) return refuse("must be positive\n   help: write for example '60s'");
  return *time;
}

}  // namespace foreshard::cli
