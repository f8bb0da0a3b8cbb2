#include "base/net/identity.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/caller.h"
#include "base/file.h"
#include "base/net/faults.h"
#include "base/net/socket.h"
#include "base/text.h"

namespace foreshard::net {
namespace {

constexpr std::int32_t kMostRanks = 1 << 24;
constexpr std::uint16_t kDefaultPort = 29500;  // torchrun's.

// The variables that a launcher sets.
struct Launcher {
  std::array<const char*, 3> names;  // Rank, number of ranks, local rank.
  std::array<const char*, 2> job{};  // Variables that together name the job.
  bool complete = true;              // Whether it is a mistake to set only some of the three.
};
constexpr Launcher kPlain{.names = {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
                          .job = {"TORCHELASTIC_RUN_ID"}};
constexpr Launcher kOpenMpi{
    .names = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    .job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}};
constexpr Launcher kFlux{.names = {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"},
                         .job = {"FLUX_JOB_ID"},
                         .complete = false};
constexpr Launcher kPals{.names = {"PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID"},
                         .job = {"PALS_APID"},
                         .complete = false};
constexpr Launcher kHydra{.names = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}, .complete = false};
constexpr const char* kSlurmTasks = "SLURM_STEP_NUM_TASKS";
constexpr Launcher kSlurm{.names = {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
                          .job = {"SLURM_JOB_ID", "SLURM_STEP_ID"}};

// The job's name; empty where the launcher gives none.
std::string job_by(const Environment& environment, const Launcher& launcher) {
  std::vector<std::string> parts;
  for (const char* name : launcher.job)
    if (const auto part = name == nullptr ? std::nullopt : environment(name))
      parts.push_back(*part);
  return join(parts, ".");
}

// Nothing if none of the three is set, or if `complete` is false and one is missing.
Result<std::optional<Identity>> read(const Environment& environment, const Launcher& launcher) {
  const auto& names = launcher.names;
  std::array<std::int64_t, 3> values{};
  std::vector<std::string> set, missing;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto text = environment(names.at(i));
    if (!text) {
      missing.emplace_back(names.at(i));
      continue;
    }
    set.emplace_back(names.at(i));
    const auto value = whole_number_in(*text);
    const std::int64_t least = i == 1 ? 1 : 0;
    if (!value || *value < least || *value > kMostRanks)
      return bad(std::string(names.at(i)) + " is '" + *text + "', not a whole number of " +
                 std::to_string(least) + " or more");
    values.at(i) = *value;
  }
  if (set.empty() || (!missing.empty() && !launcher.complete)) return std::optional<Identity>();
  if (!missing.empty())
    return bad(
        join(set, " and ") + " set, but not " + join(missing, " and ") +
        ": a launcher (torchrun, mpirun, srun) sets all three; unset them to run one rank alone");
  if (values[0] >= values[1])
    return bad(std::string(names[0]) + " is " + std::to_string(values[0]) + ", but " + names[1] +
               " is " + std::to_string(values[1]) + ": ranks count from 0");
  if (values[2] > values[0])
    return bad(std::string(names[2]) + " is " + std::to_string(values[2]) + ", but " + names[0] +
               " is " + std::to_string(values[0]) + ": a host's ranks are among all");
  return std::optional<Identity>(Identity{.rank = static_cast<std::int32_t>(values[0]),
                                          .ranks = static_cast<std::int32_t>(values[1]),
                                          .local_rank = static_cast<std::int32_t>(values[2]),
                                          .source = join(set, ", "),
                                          .token = job_by(environment, launcher)});
}

bool by_torchrun(const Environment& environment) {
  return environment("TORCHELASTIC_RUN_ID").has_value();
}

Result<Rendezvous> at_master(const Environment& environment, const std::string& address) {
  Rendezvous meeting{.kind = Rendezvous::Kind::kTcp, .address = address, .port = kDefaultPort};
  if (const auto text = environment("MASTER_PORT")) {
    const auto port = whole_number_in(*text);
    if (!port || *port < 1 || *port > 65534)
      return bad("MASTER_PORT is '" + *text + "', not a port from 1 to 65534");
    meeting.port = static_cast<std::uint16_t>(*port);
  }
  if (by_torchrun(environment)) ++meeting.port;
  return meeting;
}

// The job's name, as part of a file name.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? c : '_';
  return out;
}

// A file under which the ranks of one host meet.
Result<Rendezvous> by_file(const std::string& job) {
  std::error_code fault;
  const auto folder = std::filesystem::temp_directory_path(fault);
  if (fault)
    return bad("there is no folder for temporary files, in which the ranks would meet (" +
               fault.message() + "): set TMPDIR to one, or give --rendezvous FOLDER");
  return Rendezvous{
      .kind = Rendezvous::Kind::kOneHost,
      .file = (folder / ("foreshard-replay-" + std::to_string(::getuid()) + "-" + plain(job)))
                  .string()};
}

// Slurm's variables, where srun started this process; else nothing. Batch scripts, shells of salloc
// and what sbatch started from one of those have the job's SLURM_NTASKS and may have SLURM_PROCID
// 0, although they are alone: srun counts the tasks of its step in SLURM_STEP_NUM_TASKS, and names
// it in SLURM_STEP_ID. Tasks other than 0 are srun's in any case.
std::optional<Launcher> slurm_of(const Environment& environment) {
  Launcher slurm = kSlurm;
  const auto rank = environment(slurm.names[0]);
  if (environment(kSlurmTasks))
    slurm.names[1] = kSlurmTasks;
  else if (rank == "0" && !environment("SLURM_STEP_ID"))
    return std::nullopt;
  return rank ? std::optional(slurm) : std::nullopt;
}

Result<Identity> launched(const Environment& environment) {
  std::vector<Identity> found;
  for (const Launcher& launcher : {kPlain, kOpenMpi}) {
    FORESHARD_ASSIGN(const auto identity, read(environment, launcher));
    if (identity) found.push_back(*identity);
  }
  if (found.size() == 2 && !by_torchrun(environment) &&
      (found[0].rank != found[1].rank || found[0].ranks != found[1].ranks))
    return bad("RANK and WORLD_SIZE say rank " + std::to_string(found[0].rank) + " of " +
               std::to_string(found[0].ranks) + ", but OMPI_COMM_WORLD_RANK and _SIZE say " +
               std::to_string(found[1].rank) + " of " + std::to_string(found[1].ranks) +
               "; unset those that are wrong");
  if (!found.empty()) return found.front();
  std::vector<Launcher> others{kFlux, kPals, kHydra};
  if (const auto slurm = slurm_of(environment)) others.push_back(*slurm);
  for (const Launcher& launcher : others) {
    FORESHARD_ASSIGN(const auto identity, read(environment, launcher));
    if (identity) return *identity;
  }
  return Identity{};
}

}  // namespace

std::optional<std::int64_t> whole_number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Environment environment() {
  if (current_caller != nullptr) return [](const std::string&) { return std::nullopt; };
  return [](const std::string& name) {
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody sets it
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

Result<Identity> identity_from(const Environment& environment) {
  FORESHARD_ASSIGN(Identity identity, launched(environment));
  if (const auto token = environment("FORESHARD_TOKEN")) identity.token = *token;
  return identity;
}

bool on_one_host(const Environment& environment, const Identity& identity) {
  if (identity.ranks == 1) return true;
  if (const auto address = environment("MASTER_ADDR")) return is_local(*address);
  const auto is = [&](const char* name, const std::string& value) {
    return environment(name) == value;
  };
  const std::string ranks = std::to_string(identity.ranks);
  if (identity.source.starts_with(kPlain.names[0])) return true;
  if (identity.source.starts_with(kSlurm.names[0])) return is("SLURM_STEP_NUM_NODES", "1");
  return is("OMPI_COMM_WORLD_LOCAL_SIZE", ranks) || is("FLUX_JOB_NNODES", "1") ||
         is("PALS_LOCAL_SIZE", ranks) || is("MPI_LOCALNRANKS", ranks);
}

std::string first_host(const std::string& list) {
  const auto end = list.find_first_of("[,");
  if (end == std::string::npos || list[end] == ',') return list.substr(0, end);
  const auto number = list.substr(end + 1, list.find_first_of("-,]", end) - end - 1);
  // The text after the bracket belongs to the name, too: "rack[1-2]-a".
  const auto close = list.find(']', end);
  const auto rest = close == std::string::npos ? std::string() : list.substr(close + 1);
  return list.substr(0, end) + number + rest.substr(0, rest.find(','));
}

Result<Rendezvous> rendezvous_from(const Environment& environment, const Identity& identity) {
  if (identity.ranks == 1) return Rendezvous{};
  if (const auto address = environment("MASTER_ADDR")) return at_master(environment, *address);
  if (environment("MASTER_PORT"))
    return bad("MASTER_PORT is set, but not MASTER_ADDR: the host of rank 0");
  const auto here = [&](const Launcher& launcher, const char* ranks_here) {
    const auto ranks = environment(launcher.names[1]);
    return ranks && environment(ranks_here) == ranks && !job_by(environment, launcher).empty();
  };
  if (here(kOpenMpi, "OMPI_COMM_WORLD_LOCAL_SIZE")) return by_file(job_by(environment, kOpenMpi));
  if (environment(kOpenMpi.names[1]))
    return bad(
        "mpirun started ranks on several hosts: name the host of rank 0 (mpirun -x "
        "MASTER_ADDR=HOST), or give a folder that all of them see (--rendezvous FOLDER)");
  if (environment("FLUX_JOB_NNODES") == "1" && environment(kFlux.job[0]))
    return by_file(job_by(environment, kFlux));
  if (here(kPals, "PALS_LOCAL_SIZE")) return by_file(job_by(environment, kPals));
  if (environment(kSlurm.names[0])) {
    auto hosts = environment("SLURM_STEP_NODELIST");
    if (!hosts) hosts = environment("SLURM_JOB_NODELIST");
    const auto job = whole_number_in(environment("SLURM_JOB_ID").value_or(""));
    const auto step = whole_number_in(environment("SLURM_STEP_ID").value_or("0"));
    if (hosts && job && step)
      return Rendezvous{.kind = Rendezvous::Kind::kTcp,
                        .address = first_host(*hosts),
                        // Below the range of ports that systems hand out by themselves (32768 ...).
                        .port = static_cast<std::uint16_t>(20000 + (*job * 64 + *step) % 12000)};
  }
  return bad("rank " + std::to_string(identity.rank) + " of " + std::to_string(identity.ranks) +
             " does not know where rank 0 is: set MASTER_ADDR (and MASTER_PORT), or give a folder "
             "that all of them see (--rendezvous FOLDER)");
}

std::string RankZero::address() const {
  return host.empty() || host == own_name() ? kLoopback : host;
}

std::string own_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

Status write_rank_zero(const std::filesystem::path& file, const RankZero& place) {
  const std::string host = place.host.empty() ? "" : " " + place.host;
  return write_file(file, std::to_string(place.port) + host + "\n");
}

std::optional<RankZero> rank_zero_in(const std::filesystem::path& file) {
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::getuid())
    return std::nullopt;
  const auto text = read_file(file, 512_B);
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  int port = 0;
  RankZero place;
  words >> port >> place.host;
  if (port < 1 || port > 65535) return std::nullopt;
  place.port = static_cast<std::uint16_t>(port);
  return place;
}

}  // namespace foreshard::net
