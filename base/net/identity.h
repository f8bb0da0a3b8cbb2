/// \file
/// The rank of a process, the number of ranks, and how the ranks find each other, from the
/// environment variables that launchers set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace foreshard::net {

struct Identity {
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  std::int32_t local_rank = 0;  ///< Rank among this host's ranks: selects its device.
  std::string source{};         ///< "RANK, WORLD_SIZE", "SLURM_PROCID ..."; empty: none was set.
  /// Tells this job from others that meet at the same place: FORESHARD_TOKEN, else the launcher's
  /// name for the job; empty where neither is known. It protects against mix-ups, not against
  /// attackers: launchers' names can be guessed, and the token crosses the network in the clear.
  std::string token{};
};

/// Looks up a variable of the environment; empty where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// The environment of this process.
Environment environment();

/// The identity from RANK, WORLD_SIZE and LOCAL_RANK (torchrun, by hand), else
/// OMPI_COMM_WORLD_RANK, _SIZE and _LOCAL_RANK (mpirun of Open MPI), else FLUX_TASK_RANK,
/// FLUX_JOB_SIZE and FLUX_TASK_LOCAL_ID (Flux), else PALS_RANKID, PMI_SIZE and PALS_LOCAL_RANKID
/// (mpiexec of HPE's PALS), else PMI_RANK, PMI_SIZE and MPI_LOCALRANKID (Hydra: mpiexec of MPICH
/// and Intel MPI), else SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID (srun). One rank alone where
/// none of them is set. SLURM's variables come last, because a batch script, and what mpirun starts
/// in it, has them too. Flux and srun may also set PMI's variables, so the three variables of Flux,
/// PALS or Hydra count only if all of them are set.
/// Source: PyTorch, "torchrun (Elastic Launch)"; Open MPI 5.0, section 11.1, "Environment variables
/// set for MPI applications"; flux-core, src/shell/task.c; MPICH, src/pm/hydra, proxy; Argonne
/// Leadership Computing Facility, "Running Jobs on Aurora" (PALS); Slurm, srun(1), "Output
/// environment variables".
/// \return kInvalidInput where some of the three variables of torchrun, Open MPI or Slurm are
///     missing, any variable is no number in range, or RANK and OMPI_COMM_WORLD_RANK contradict
///     each other (unless torchrun says RANK).
Result<Identity> identity_from(const Environment& environment);

/// Where the ranks find rank 0.
struct Rendezvous {
  enum class Kind : std::uint8_t {
    kAlone,    ///< One rank.
    kTcp,      ///< Rank 0 listens at `address` and `port`.
    kOneHost,  ///< All on this host: rank 0 takes a free port and writes it into `file`.
  };
  Kind kind = Kind::kAlone;
  std::string address{};
  std::uint16_t port = 0;
  std::string file{};
};

/// Uses MASTER_ADDR and MASTER_PORT (default: 29500; plus one under torchrun, whose own store holds
/// that port). Else ranks that mpirun, Flux or PALS started on one host meet by their job's name.
/// Else ranks that srun started meet at the first host of the step, on a port that follows from the
/// numbers of job and step.
/// Source: see identity_from.
/// \return kInvalidInput where rank 0's place is not known; the message names what to set.
Result<Rendezvous> rendezvous_from(const Environment& environment, const Identity& identity);

/// "node[07-09,12],other" -> "node07": the first of Slurm's list of hosts.
std::string first_host(const std::string& list);

// The file in which rank 0 says where it listens, for ranks that see the same folder: "PORT HOST",
// or "PORT" where they are all on this host.

inline constexpr const char* kLoopback = "127.0.0.1";

struct RankZero {
  std::string host{};  ///< Empty: this host.
  std::uint16_t port = 0;

  /// The address at which this host reaches rank 0. A host reaches itself even where it cannot
  /// resolve the name that others use.
  std::string address() const;
};

/// What this host calls itself.
std::string own_name();

/// \return kIo as write_file.
Status write_rank_zero(const std::filesystem::path& file, const RankZero& place);

/// What rank 0 wrote; nothing if there is no such file. The file must be a regular file of this
/// user, since other users may write to the folder (to /tmp, for example).
std::optional<RankZero> rank_zero_in(const std::filesystem::path& file);

}  // namespace foreshard::net
