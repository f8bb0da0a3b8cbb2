/// \file
/// Which rank of how many a process is, and how it finds the others: what launchers put into the
/// environment.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace foreshard::net {

struct Identity {
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  std::int32_t local_rank = 0;  ///< Among those of this host: which of its devices to take.
  std::string source{};         ///< "RANK, WORLD_SIZE", "SLURM_PROCID ..."; empty: none was set.
  /// Tells this job from others that meet at the same place: FORESHARD_TOKEN, else what the
  /// launcher calls the job; empty where neither is known. Against mix-ups, not against attackers:
  /// launchers' names can be guessed, and the token crosses the network as it is.
  std::string token{};
};

/// Looks up a variable of the environment; empty where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// That of this process.
Environment environment();

/// From RANK, WORLD_SIZE and LOCAL_RANK (torchrun, by hand), else OMPI_COMM_WORLD_RANK, _SIZE and
/// _LOCAL_RANK (mpirun of Open MPI), else FLUX_TASK_RANK, FLUX_JOB_SIZE and FLUX_TASK_LOCAL_ID
/// (Flux), else PALS_RANKID, PMI_SIZE and PALS_LOCAL_RANKID (mpiexec of HPE's PALS), else PMI_RANK,
/// PMI_SIZE and MPI_LOCALRANKID (Hydra: mpiexec of MPICH and Intel MPI), else SLURM_PROCID,
/// SLURM_NTASKS and SLURM_LOCALID (srun). One rank alone where none of them is set. SLURM's come
/// last, because a batch script, and what mpirun starts in it, has them too. Flux and srun may also
/// set PMI's: of Flux, PALS and Hydra all three must be there to count.
/// Source: PyTorch, "torchrun (Elastic Launch)"; Open MPI 5.0, section 11.1, "Environment variables
/// set for MPI applications"; flux-core, src/shell/task.c; MPICH, src/pm/hydra, proxy; Argonne
/// Leadership Computing Facility, "Running Jobs on Aurora" (PALS); Slurm, srun(1), "Output
/// environment variables".
/// \return kInvalidInput where some of the three of torchrun, Open MPI or Slurm are missing, any
///     is no number in range, or RANK and OMPI_COMM_WORLD_RANK contradict each other (unless
///     torchrun says RANK).
Result<Identity> identity_from(const Environment& environment);

/// Where rank 0 is to be found.
struct Meeting {
  enum class Kind : std::uint8_t {
    kAlone,    ///< One rank.
    kTcp,      ///< At `address` and `port`.
    kOneHost,  ///< All on this host: rank 0 takes a free port and writes it into `file`.
  };
  Kind kind = Kind::kAlone;
  std::string address{};
  std::uint16_t port = 0;
  std::string file{};
};

/// MASTER_ADDR and MASTER_PORT (29500 without; one more under torchrun, whose own store holds that
/// port); else, of ranks that mpirun, Flux or PALS started on one host, its job's name; else, of
/// ranks that srun started, the first host of the step and a port by the step's number.
/// Source: as of identity_from.
/// \return kInvalidInput where it is not known; the message names what to set.
Result<Meeting> meeting_from(const Environment& environment, const Identity& identity);

/// "node[07-09,12],other" -> "node07": the first of Slurm's list of hosts.
std::string first_host(const std::string& list);

}  // namespace foreshard::net
